package traces

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"strings"
)

// Merge writes the tokens of the sources to dst, one source after the other. The sources must be of
// the same model and recorded the same way. Sequences are renumbered 0, 1, … in that order;
// positions stay. Tool, seed, sampling and host are those of the first source. The host fact
// "merged" lists the hashes of all sources. The result is marked incomplete if a source is.
func Merge(ctx context.Context, dst string, srcs ...string) (err error) {
	if len(srcs) == 0 {
		return errors.New("traces: merge: no sources")
	}
	readers := make([]*Reader, 0, len(srcs))
	defer func() {
		for _, r := range readers {
			err = errors.Join(err, r.Close())
		}
	}()
	complete := true
	var sums []string
	for _, src := range srcs {
		if filepath.Clean(src) == filepath.Clean(dst) {
			return fmt.Errorf("traces: merge: %s is both source and destination", src)
		}
		r, err := Open(ctx, src)
		if err != nil {
			return err
		}
		readers = append(readers, r)
		if name, a, b := difference(readers[0].Header(), r.Header()); name != "" {
			return fmt.Errorf("traces: merge: %s and %s differ in %s (%v and %v): %w", srcs[0], src,
				name, a, b, ErrFormat)
		}
		complete = complete && r.Complete()
		sums = append(sums, r.SHA256())
	}
	head := *readers[0].Header()
	head.Host = maps.Clone(head.Host)
	if head.Host == nil {
		head.Host = map[string]string{}
	}
	head.Host["merged"] = strings.Join(sums, " ")
	w, err := Create(dst, head, WriteOptions{Compress: readers[0].Compress()})
	if err != nil {
		return err
	}
	if err := concat(w, readers); err != nil {
		return errors.Join(err, w.Abort())
	}
	return w.finish(dst, complete)
}

// concat appends all tokens with new sequence numbers.
func concat(w *Writer, readers []*Reader) error {
	next := uint32(0) // sequences so far
	var t Token
	for _, r := range readers {
		var sequences Sequences
		for i := range r.Tokens() {
			if err := r.Token(i, &t); err != nil {
				return err
			}
			if sequences.Begins(t.Seq) {
				next++
			}
			t.Seq = next - 1
			if err := w.Append(&t); err != nil {
				return err
			}
		}
	}
	return nil
}

// difference returns the first field in which two headers differ although they must agree, by its
// name in the file.
func difference(a, b *Header) (name string, va, vb any) {
	fields := []struct {
		name string
		a, b any
	}{
		{"unit_kind", a.UnitKind, b.UnitKind},
		{"layers", a.Layers, b.Layers},
		{"units", a.Units, b.Units},
		{"bytes_per_unit", a.UnitBytes, b.UnitBytes},
		{"model", a.Model, b.Model},
		{"model_sha256", a.ModelSHA256, b.ModelSHA256},
		{"shape", a.Shape, b.Shape},
		{"tokenizer_sha256", a.Tokenizer, b.Tokenizer},
		{"activation", a.Activation, b.Activation},
		{"threshold", a.Threshold, b.Threshold},
		{"dtype", a.DType, b.DType},
		{"synthetic", a.Synthetic, b.Synthetic},
		{"has_predicted", a.HasPredicted, b.HasPredicted},
		{"has_magnitude", a.HasMagnitude, b.HasMagnitude},
		{"feature_kind", a.FeatureKind, b.FeatureKind},
		{"feature_width", a.FeatureWidth, b.FeatureWidth},
		{"derived_by", a.DerivedBy, b.DerivedBy},
	}
	for _, f := range fields {
		if f.a != f.b {
			return f.name, f.a, f.b
		}
	}
	return "", nil, nil
}

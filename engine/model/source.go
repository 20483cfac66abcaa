package model

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/windrow-sim/windrow/engine/checkpoint"
)

// source is a Hugging Face folder with an OPT model in it.
type source struct {
	folder *checkpoint.Folder
	config Config
	names  map[string]string // name without prefix → name in the folder, for the tensors that are used
	notes  []string
	buf    scratch
}

// openSource opens a folder and demands that it holds exactly the tensors of the model that its config.json describes.
func openSource(dir string, opt checkpoint.FolderOptions) (*source, error) {
	folder, err := checkpoint.OpenFolder(dir, opt)
	if err != nil {
		return nil, err
	}
	s := &source{folder: folder, names: map[string]string{}, notes: folder.Notes()}
	if s.config, err = parseConfig(folder.Config()); err == nil {
		err = s.bind()
	}
	if err != nil {
		folder.Close()
		return nil, fmt.Errorf("model: %s: %w", dir, err)
	}
	return s, nil
}

// used lists the tensors that the computation needs with their shapes, by name without prefix.
func (s *source) used() map[string][]int64 {
	shape := s.config.Shape
	d, ffn := int64(shape.DModel), int64(shape.DFFN)
	list := map[string][]int64{}
	for _, r := range newWeights(shape).residents() {
		list[r.source] = r.shape
	}
	for l := range shape.Layers {
		list[upSource(l)] = []int64{ffn, d}
		list[downSource(l)] = []int64{d, ffn}
	}
	return list
}

// bind finds every tensor under either prefix and refuses what is missing, misshapen or left over.
func (s *source) bind() error {
	used := s.used()
	var unknown []string
	for _, t := range s.folder.Tensors() {
		bare, prefixed := strings.CutPrefix(strings.TrimPrefix(t.Name, "model."), "decoder.")
		switch {
		case t.Name == headSource || prefixed && bare == "version": // the latter is a relic without meaning
		case !prefixed || used[bare] == nil:
			unknown = append(unknown, t.Name)
		case s.names[bare] != "":
			return fmt.Errorf("%w: %q and %q are the same tensor", checkpoint.ErrFormat, s.names[bare], t.Name)
		default:
			s.names[bare] = t.Name
		}
	}
	if len(unknown) > 0 {
		return fmt.Errorf("%w: tensors that no part of an OPT model uses: %s", checkpoint.ErrUnsupported, shorten(unknown))
	}
	if err := s.bindHead(); err != nil {
		return err
	}
	var missing []string
	for _, name := range slices.Sorted(maps.Keys(used)) {
		shape := used[name]
		t, ok := s.folder.Tensor(s.names[name])
		if !ok {
			missing = append(missing, name)
		} else if !slices.Equal(t.Shape, shape) {
			return fmt.Errorf("tensor %q: %w: shape %v, but config.json means %v", t.Name, checkpoint.ErrFormat, t.Shape, shape)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("%w: missing tensors (after the prefix model.decoder. or decoder.): %s", checkpoint.ErrFormat, shorten(missing))
	}
	return nil
}

// bindHead applies the tie of embedding and output head.
func (s *source) bindHead() error {
	head, hasHead := s.folder.Tensor(headSource)
	switch embed := s.names[embedSource]; {
	case embed == "" && !hasHead:
		return fmt.Errorf("%w: neither %s nor %s is there; one of them is needed as embedding and output head",
			checkpoint.ErrFormat, embedSource, headSource)
	case embed == "" && s.config.Tied:
		s.names[embedSource] = head.Name
		s.notes = append(s.notes, headSource+" serves as embedding too, because there is no "+embedSource)
	case !s.config.Tied && !hasHead:
		return fmt.Errorf("%w: tie_word_embeddings is false, but there is no %s", checkpoint.ErrFormat, headSource)
	}
	return nil
}

// shorten joins names, at most a dozen.
func shorten(names []string) string {
	const most = 12
	if len(names) > most {
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", len(names)-most)
	}
	return strings.Join(names, ", ")
}

// checkTypes demands F16 matrices unless they may be converted. Vectors may be of any float type: they become F32 exactly.
func (s *source) checkTypes(conv bool) error {
	types := map[checkpoint.DType]bool{}
	for _, name := range s.sorted() {
		t, _ := s.folder.Tensor(s.names[name])
		switch t.DType {
		case checkpoint.F16, checkpoint.BF16, checkpoint.F32:
		default:
			return fmt.Errorf("model: tensor %q: %w: dtype %s; F16, BF16 and F32 are", t.Name, checkpoint.ErrUnsupported, t.DType)
		}
		if len(t.Shape) < 2 {
			continue
		}
		types[t.DType] = true
		if t.DType != checkpoint.F16 && !conv {
			return fmt.Errorf("model: tensor %q: %w: dtype %s; ask for conversion to F16, which rounds the weights",
				t.Name, checkpoint.ErrUnsupported, t.DType)
		}
	}
	hint := map[string]checkpoint.DType{"float16": checkpoint.F16, "bfloat16": checkpoint.BF16, "float32": checkpoint.F32}[s.config.DType]
	if s.config.DType != "" && (len(types) != 1 || !types[hint]) {
		s.notes = append(s.notes, fmt.Sprintf("config.json says dtype %s, the tensors differ; theirs was used", s.config.DType))
	}
	return nil
}

// sorted returns the names without prefix of the used tensors.
func (s *source) sorted() []string { return slices.Sorted(maps.Keys(s.names)) }

// tensor opens a used tensor by its name without prefix.
func (s *source) tensor(name string) (tensor, error) {
	info, _ := s.folder.Tensor(s.names[name])
	r, err := s.folder.Section(s.names[name])
	return tensor{info, r, &s.buf}, err
}

// bytes is the size of the used tensors.
func (s *source) bytes() int64 {
	total := int64(0)
	for _, full := range s.names {
		t, _ := s.folder.Tensor(full)
		total += t.Size
	}
	return total
}

// hash identifies the weights: SHA-256 over the used tensors in the order of their names without prefix, for each a line
// with name, dtype and shape, then the bytes. It does not depend on how the tensors are spread over files. It
// also reads every weight once, and so refuses the ones that are not finite before anything is written.
func (s *source) hash(ctx context.Context, moved func(int64)) (string, error) {
	h := sha256.New()
	for _, name := range s.sorted() {
		t, err := s.tensor(name)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(h, "%s %s %v\n", name, t.DType, t.Shape)
		err = t.stream(ctx, t.DType, func(p []byte) error {
			h.Write(p)
			moved(int64(len(p)))
			return nil
		})
		if err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(h.Sum(nil)), s.checkHead(ctx)
}

// checkHead compares an output head that is there besides the embedding with it. An untied head that differs is not
// supported; a tied one is ignored, as the reference implementation does.
func (s *source) checkHead(ctx context.Context) error {
	info, ok := s.folder.Tensor(headSource)
	if !ok || s.names[embedSource] == headSource {
		return nil
	}
	embed, err := s.tensor(embedSource)
	if err != nil {
		return err
	}
	r, err := s.folder.Section(headSource)
	if err != nil {
		return err
	}
	same, err := equal(ctx, tensor{info, r, &s.buf}, embed)
	switch {
	case err != nil || same:
		return err
	case !s.config.Tied:
		return fmt.Errorf("model: tensor %q: %w: it differs from %s; only a tied head is", headSource, checkpoint.ErrUnsupported, embedSource)
	}
	s.notes = append(s.notes, headSource+" differs from "+embedSource+" and was ignored, because config.json ties them")
	return nil
}

// Close closes the folder.
func (s *source) Close() error { return s.folder.Close() }

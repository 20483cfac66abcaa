package model

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/windrow-sim/windrow/engine/checkpoint"
	"github.com/windrow-sim/windrow/internal/refusal"
	"github.com/windrow-sim/windrow/kernels/ref"
)

// source is a Hugging Face folder, or a GGUF file, with a model in it.
type source struct {
	folder checkpoint.Model
	config Config
	// name without prefix → name in the folder, for the tensors that are used
	names map[string]string
	notes []string
	buf   scratch
}

// openSource opens a folder and demands exactly the tensors of the model that its config.json
// describes.
func openSource(ctx context.Context, dir string, opt PackOptions) (*source, error) {
	folder, err := checkpoint.OpenModel(ctx, dir,
		checkpoint.FolderOptions{IgnoreIndex: opt.IgnoreIndex})
	if err != nil {
		return nil, err
	}
	s := &source{folder: folder, names: map[string]string{}, notes: folder.Notes()}
	s.config, err = parseConfig(folder.Config(), configOptions{opt.IgnoreKeys, folder.Tensor})
	if err == nil {
		s.notes = append(s.notes, s.config.notes...)
		err = s.bind()
	}
	if err == nil {
		err = s.checkHead(ctx)
	}
	if err == nil {
		err = s.ends()
	}
	if err != nil {
		folder.Close()
		return nil, fmt.Errorf("model: %s: %w", dir, err)
	}
	return s, nil
}

// ends reads the ids that end a text: those of config.json and of generation_config.json together.
func (s *source) ends() error {
	for _, from := range []struct {
		file   string
		object checkpoint.Object
	}{{"config.json", s.folder.Config()}, {"generation_config.json", s.folder.Generation()}} {
		ids, notes, err := endIDs(from.object, from.file, s.config.Arch.Shape.Vocab)
		if err != nil {
			return err
		}
		s.config.Ends, s.notes = union(s.config.Ends, ids), append(s.notes, notes...)
	}
	return nil
}

// used lists the needed tensors with their shapes, by name without prefix.
func (s *source) used() map[string][]int64 {
	a := &s.config.Arch
	list := map[string][]int64{}
	for _, r := range newWeights(*a, Precision{}).residents() {
		list[r.source] = r.sourceShape()
	}
	for l := range a.Shape.Layers {
		for _, m := range a.ffnSources(l) {
			list[m.name] = m.whole
		}
	}
	return list
}

// bind finds every needed tensor under one of the prefixes, and refuses missing, misshapen and
// unknown tensors.
func (s *source) bind() error {
	if err := s.adapt(); err != nil {
		return err
	}
	names, used := namesOf(&s.config.Arch), s.used()
	head := names.head + ".weight"
	var unknown []string
	for _, t := range s.folder.Tensors() {
		bare, prefixed := s.bare(t.Name)
		switch {
		case t.Name == head && s.config.Arch.Tied || prefixed && s.relic(bare):
		case !prefixed || used[bare] == nil:
			unknown = append(unknown, t.Name)
		case s.names[bare] != "":
			return fmt.Errorf("%w: %q and %q are the same tensor", checkpoint.ErrFormat,
				s.names[bare], t.Name)
		default:
			s.names[bare] = t.Name
		}
	}
	if len(unknown) > 0 {
		return fmt.Errorf("%w: tensors that no part of a model of family %s uses: %s",
			checkpoint.ErrUnsupported, s.config.Arch.Family, shorten(unknown))
	}
	if err := s.bindHead(names); err != nil {
		return err
	}
	var missing []string
	for _, name := range slices.Sorted(maps.Keys(used)) {
		shape := used[name]
		t, ok := s.folder.Tensor(s.names[name])
		if !ok {
			missing = append(missing, name)
		} else if !slices.Equal(t.Shape, shape) {
			return fmt.Errorf("tensor %q: %w: shape %v, but the configuration means %v", t.Name,
				checkpoint.ErrFormat, t.Shape, shape)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("%w: missing tensors (after the prefix %s): %s", checkpoint.ErrFormat,
			strings.Join(names.prefixes, " or "), shorten(missing))
	}
	return nil
}

// bare is a tensor's name without the family's prefix; the head has none.
func (s *source) bare(name string) (bare string, prefixed bool) {
	names := namesOf(&s.config.Arch)
	if strings.HasPrefix(name, names.head+".") {
		return name, true
	}
	for _, prefix := range names.prefixes {
		if bare, ok := strings.CutPrefix(name, prefix); ok {
			return bare, true
		}
	}
	return name, false
}

// relic reports whether a tensor has no meaning.
func (s *source) relic(bare string) bool {
	return slices.ContainsFunc(namesOf(&s.config.Arch).relics, func(r string) bool {
		return bare == r || strings.HasSuffix(bare, "."+r)
	})
}

// adapt lets the tensors decide whether there is a final norm, where config.json may be wrong.
func (s *source) adapt() error {
	a := &s.config.Arch
	if !familyOf(a).finalNormByTensors || a.PostNorm {
		return nil
	}
	names, there := namesOf(a), false
	for _, prefix := range names.prefixes {
		_, ok := s.folder.Tensor(prefix + names.finalNorm + ".weight")
		there = there || ok
	}
	if there != a.FinalNorm {
		s.notes = append(s.notes, fmt.Sprintf("config.json says _remove_final_layer_norm %v, "+
			"but a final norm is there: %v; the tensors were followed", !a.FinalNorm, there))
		a.FinalNorm = there
	}
	return nil
}

// bindHead applies the tie of embedding and output head.
func (s *source) bindHead(names naming) error {
	headSource, embedSource := names.head+".weight", names.embed+".weight"
	head, hasHead := s.folder.Tensor(headSource)
	embed := s.names[embedSource]
	switch {
	case embed == "" && !hasHead:
		return fmt.Errorf("%w: neither %s nor %s is there; one of them is needed as embedding "+
			"and output head",
			checkpoint.ErrFormat, embedSource, headSource)
	case embed == "" && s.config.Arch.Tied:
		s.names[embedSource] = head.Name
		s.notes = append(s.notes,
			headSource+" serves as embedding too, because there is no "+embedSource)
	case !s.config.Arch.Tied && !hasHead && !s.config.tied:
		return fmt.Errorf("%w: config.json has no tie_word_embeddings, which means false in this "+
			"family, and there is no %s; set it to true if the embedding is the output head",
			checkpoint.ErrFormat, headSource)
	case !s.config.Arch.Tied && !hasHead:
		return fmt.Errorf("%w: tie_word_embeddings is false, but there is no %s; set it to true "+
			"in config.json if the embedding is the output head", checkpoint.ErrFormat, headSource)
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

// precision decides the types of the stored weights. Matrices keep their type. With a type in want
// they are converted to it; with a quantised one the bundles are quantised and all others become
// F16. Vectors of any float type become F32, exactly.
func (s *source) precision(want *ref.Format) (Precision, error) {
	types := map[checkpoint.DType]string{} // with an example
	for _, name := range s.sorted() {
		t, _ := s.folder.Tensor(s.names[name])
		if _, ok := formatOf(t.DType); !ok {
			return Precision{}, fmt.Errorf("model: tensor %q: %w: dtype %s; F16, BF16 and F32 are",
				t.Name, checkpoint.ErrUnsupported, t.DType)
		}
		if len(t.Shape) >= 2 {
			types[t.DType] = t.Name
		}
	}
	hint := map[string]checkpoint.DType{"float16": checkpoint.F16, "bfloat16": checkpoint.BF16,
		"float32": checkpoint.F32}[s.config.DType]
	if s.config.DType != "" && (len(types) != 1 || types[hint] == "") {
		s.notes = append(s.notes, fmt.Sprintf("config.json says dtype %s, the tensors differ; "+
			"theirs was used", s.config.DType))
	}
	p := Precision{}
	switch {
	case want != nil && want.Group() > 1:
		p = Precision{ref.F16, *want}
	case want != nil:
		p = Precision{*want, *want}
	case len(types) > 1 && s.quantised() != "":
		p = Precision{ref.F32, ref.F32} // which holds all of them exactly
	case len(types) > 1:
		var list []string
		for _, dtype := range slices.Sorted(maps.Keys(types)) {
			list = append(list, fmt.Sprintf("%q is %s", types[dtype], dtype))
		}
		return p, fmt.Errorf("model: %w: %w", checkpoint.ErrUnsupported, refusal.Input(
			"matrices of several types: %s; choose one for all with {Dtype} f16, bf16 or f32",
			strings.Join(list, ", ")))
	default:
		for dtype := range types {
			f, _ := formatOf(dtype)
			p = Precision{f, f}
		}
	}
	if q := s.quantised(); q != "" && want == nil {
		s.notes = append(s.notes, fmt.Sprintf("the weights are quantised (%s); the image holds "+
			"them as %s, which is exact; F16, Q8 and Q4 take less", q, p.Resident))
	}
	s.config.Arch.Shape.DTypeSize = p.Resident.Size(1)
	if err := p.check(s.config.Arch.Shape); err != nil {
		return p, fmt.Errorf("model: %w", err)
	}
	return p, nil
}

// quantised lists the types of quantisation of the file; "" if there are none.
func (s *source) quantised() string {
	if m, ok := s.folder.(interface{ Quantised() []string }); ok {
		return strings.Join(m.Quantised(), ", ")
	}
	return ""
}

// stored reports whether all matrices have a format already.
func (s *source) stored(f ref.Format) bool {
	for _, full := range s.names {
		if t, _ := s.folder.Tensor(full); len(t.Shape) >= 2 && t.DType != dtypeOf(f) {
			return false
		}
	}
	return true
}

// sorted returns the names without prefix of the used tensors.
func (s *source) sorted() []string { return slices.Sorted(maps.Keys(s.names)) }

// tensor opens a used tensor by its name without prefix.
func (s *source) tensor(name string) (tensor, error) {
	info, _ := s.folder.Tensor(s.names[name])
	r, err := s.folder.Section(s.names[name])
	return tensor{TensorInfo: info, r: r, s: &s.buf}, err
}

// resident opens the tensor that a resident tensor is made of.
func (s *source) resident(r resident) (tensor, error) {
	t, err := s.tensor(r.source)
	t.plus = r.plus
	return t, err
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

// hash identifies the weights: SHA-256 over the used tensors in the order of their names without
// prefix, for each a line with name, dtype and shape, then the bytes. It does not depend on how the
// tensors are spread over files. It reads every weight once, so weights that are not finite are
// refused before anything is written.
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
	return hex.EncodeToString(h.Sum(nil)), nil
}

// checkHead handles an output head that is in the checkpoint beside the embedding although
// config.json ties them. One that differs is ignored up to version 4 of transformers and used since
// version 5: the version that saved the file decides.
func (s *source) checkHead(ctx context.Context) error {
	names := namesOf(&s.config.Arch)
	headSource, embedSource := names.head+".weight", names.embed+".weight"
	info, ok := s.folder.Tensor(headSource)
	if !ok || !s.config.Arch.Tied || s.names[embedSource] == headSource {
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
	same, err := equal(ctx, tensor{TensorInfo: info, r: r, s: &s.buf}, embed)
	if err != nil || same {
		return err
	}
	version, _, _ := strings.Cut(s.config.version, ".")
	since5, err := strconv.Atoi(version)
	if err == nil && since5 >= 5 {
		if !slices.Equal(info.Shape, embed.Shape) {
			return fmt.Errorf("tensor %q: %w: shape %v, but config.json means %v", headSource,
				checkpoint.ErrFormat, info.Shape, embed.Shape)
		}
		s.config.Arch.Tied, s.names[headSource] = false, headSource
		s.notes = append(s.notes, fmt.Sprintf("%s differs from %s although config.json ties "+
			"them: it was taken, as transformers %s takes it, which saved the model", headSource,
			embedSource, s.config.version))
		return nil
	}
	s.notes = append(s.notes, headSource+" differs from "+embedSource+" and was ignored, "+
		"because config.json ties them: so did transformers up to version 4")
	return nil
}

// Close closes the folder.
func (s *source) Close() error { return s.folder.Close() }

package gguf

import (
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/windrow-sim/windrow/engine/checkpoint/internal/tensor"
)

// Original shows a file of a known architecture as the Hugging Face model that it was made from:
// its config.json, the names of its tensors, and their rows in the order of the original. Its
// methods are safe for concurrent use.
type Original struct {
	file   *File
	arch   *architecture
	config map[string]any
	heads  int64           // of queries
	kv     int64           // heads of keys and values
	size   int64           // of a head
	known  map[string]bool // metadata of the architecture that was read, without its prefix
	views  map[string]view // by the name in the original
	notes  []string
}

// view is where a tensor of the original lies in the file.
type view struct {
	source string // name of the tensor in the file
	count  int64  // rows
	// rows returns the row of source that is a row of the original, and how many rows from there on
	// follow each other in both. nil: the tensor is source as it is.
	rows func(row int64) (source, run int64)
}

// NewOriginal reads the metadata and demands that every tensor has a name of the original. Metadata
// and tensors that change the computation and are not part of the plain architecture, such as
// experts, are a checkpoint.ErrUnsupported that lists them. The caller closes the file, after the
// Original.
func NewOriginal(f *File) (*Original, error) {
	o := &Original{file: f, known: map[string]bool{}, views: map[string]view{}, notes: f.Notes()}
	err := o.configure()
	if err == nil {
		err = o.bind()
	}
	if err == nil {
		err = o.rotary()
	}
	if err == nil {
		err = o.refuseUnknown()
	}
	if err != nil {
		return nil, fmt.Errorf("gguf: %s: %w", f.Name(), err)
	}
	return o, nil
}

// configure makes the keys of config.json from the metadata.
func (o *Original) configure() error {
	kind, given, err := Get[string](o.file, "general.type")
	if err != nil {
		return err
	}
	if given && kind != "model" {
		return fmt.Errorf("%w: the file is of type %.40q (general.type), not a whole model; name "+
			"the file with the model", errUnsupported, kind)
	}
	name, _, err := Get[string](o.file, "general.architecture")
	if err != nil {
		return err
	}
	if o.arch = findArchitecture(name); o.arch == nil {
		return fmt.Errorf("%w: architecture %.40q; %s are", errUnsupported, name,
			listed(Architectures()))
	}
	o.config = map[string]any{"architectures": []string{o.arch.class},
		"model_type": o.arch.modelType}
	maps.Copy(o.config, o.arch.fixed)
	for _, step := range []func() error{o.numbers, o.headSize, o.epsilon, o.tokens} {
		if err := step(); err != nil {
			return err
		}
	}
	_, hasHead := o.file.Tensor("output.weight")
	o.config["tie_word_embeddings"] = !hasHead
	o.arch.finish(o)
	return nil
}

// key returns a key with the prefix of the architecture, and notes that it was read.
func (o *Original) key(name string) string {
	o.known[name] = true
	return o.arch.name + "." + name
}

// maxCount bounds every dimension, so that the product of two does not overflow. Package model has
// the bounds of what can be run.
const maxCount = 1 << 30

// count reads a positive number; 0 if the key is absent.
func (o *Original) count(name string) (int64, error) {
	v, ok, err := o.file.Int(o.key(name))
	if err == nil && ok && (v < 1 || v > maxCount) {
		err = fmt.Errorf("%w: %s.%s is %d; 1 to %d are possible", errFormat, o.arch.name, name, v,
			maxCount)
	}
	return v, err
}

// numbers reads the dimensions.
func (o *Original) numbers() error {
	for _, n := range []struct {
		key, field string
		need       bool
	}{
		{"block_count", "num_hidden_layers", true},
		{"embedding_length", "hidden_size", true},
		{"feed_forward_length", o.arch.ffn, true},
		{"attention.head_count", "num_attention_heads", true},
		{"attention.head_count_kv", o.arch.kv, false},
		{"context_length", "max_position_embeddings", true},
		{"vocab_size", "vocab_size", false},
	} {
		v, err := o.count(n.key)
		switch {
		case err != nil:
			return err
		case v > 0:
			o.config[n.field] = v
		case n.need:
			return fmt.Errorf("%w: no %s.%s", errFormat, o.arch.name, n.key)
		}
	}
	o.heads = o.config["num_attention_heads"].(int64)
	if o.config[o.arch.kv] == nil {
		o.config[o.arch.kv] = o.heads
	}
	if o.kv = o.config[o.arch.kv].(int64); o.heads%o.kv != 0 {
		return fmt.Errorf("%w: %s.attention.head_count_kv is %d, which does not divide the %d "+
			"heads of attention.head_count", errFormat, o.arch.name, o.kv, o.heads)
	}
	if o.config["vocab_size"] == nil {
		if t, ok := o.file.Tensor("token_embd.weight"); ok && len(t.Shape) == 2 {
			o.config["vocab_size"] = t.Shape[0]
		}
	}
	return nil
}

// headSize reads the size of a head, which is the same for queries, keys and values.
func (o *Original) headSize() error {
	width := o.config["hidden_size"].(int64)
	key, err := o.count("attention.key_length")
	if err != nil {
		return err
	}
	value, err := o.count("attention.value_length")
	if err != nil {
		return err
	}
	if o.size = key; key == 0 {
		if width%o.heads != 0 {
			return fmt.Errorf("%w: %s.embedding_length %d is not a multiple of attention."+
				"head_count %d, and there is no attention.key_length", errFormat, o.arch.name,
				width, o.heads)
		}
		o.size = width / o.heads
	}
	switch {
	case value > 0 && value != o.size:
		return fmt.Errorf("%w: %s.attention.value_length is %d, the size of keys %d; the same "+
			"size is", errUnsupported, o.arch.name, value, o.size)
	case o.arch.headSize && key > 0:
		o.config["head_dim"] = key
	case !o.arch.headSize && o.size*o.heads != width:
		return fmt.Errorf("%w: %s.attention.key_length is %d; with %d heads, %d is", errUnsupported,
			o.arch.name, o.size, o.heads, width/o.heads)
	}
	return nil
}

// number reads a number with a fraction: exactly the float32, and as the decimal number that was
// meant, the shortest that means this float32: 1e-05, not 9.999999747378752e-06.
func (o *Original) number(name string) (v float64, ok bool, err error) {
	f, ok, err := Get[float32](o.file, o.key(name))
	if err != nil || !ok {
		return 0, ok, err
	}
	if !(f > 0 && f < 1e30) {
		return 0, true, fmt.Errorf("%w: %s.%s is %v", errFormat, o.arch.name, name, f)
	}
	v, err = strconv.ParseFloat(strconv.FormatFloat(float64(f), 'g', -1, 32), 64)
	return v, true, err
}

// epsilon reads the epsilon of the norms.
func (o *Original) epsilon() error {
	v, ok, err := o.number(o.arch.epsilonKey)
	if err == nil && !ok {
		err = fmt.Errorf("%w: no %s.%s", errFormat, o.arch.name, o.arch.epsilonKey)
	}
	o.config[o.arch.epsilon] = v
	return err
}

// tokens reads the special tokens. A text ends with any of those that end a text, a turn or a
// message.
func (o *Original) tokens() error {
	const none = 1<<32 - 1 // llama.cpp's −1
	for field, keys := range map[string][]string{"bos_token_id": {"bos"},
		"eos_token_id": {"eos", "eot", "eom"}} {
		var ids []int64
		for _, key := range keys {
			id, ok, err := o.file.Int("tokenizer.ggml." + key + "_token_id")
			if err != nil {
				return err
			}
			if ok && id != none && !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
		switch len(ids) {
		case 0:
		case 1:
			o.config[field] = ids[0]
		default:
			o.config[field] = ids
		}
	}
	return nil
}

// neutral reports whether a value of a key that no plain model needs changes nothing.
func neutral(name string, value any) bool {
	switch name {
	case "expert_count", "expert_used_count", "expert_shared_count", "expert_group_count",
		"expert_group_used_count", "leading_dense_block_count", "pooling_type",
		"attention.sliding_window", "nextn_predict_layers":
		return value == uint32(0)
	case "attention.causal":
		return value == true
	case "attention.max_alibi_bias", "attention.clamp_kqv", "attn_logit_softcapping",
		"final_logit_softcapping":
		return value == float32(0)
	case "logit_scale", "residual_scale", "embedding_scale":
		return value == float32(0) || value == float32(1)
	case "tensor_data_layout", "rope.scaling.finetuned":
		return true // what converters say of themselves
	}
	return false
}

// refuseUnknown refuses metadata of the architecture that is not part of the plain computation.
func (o *Original) refuseUnknown() error {
	var unknown []string
	for _, p := range o.file.meta {
		name, ok := strings.CutPrefix(p.key, o.arch.name+".")
		if ok && !o.known[name] && !neutral(name, p.value) {
			unknown = append(unknown, tensor.Clip(p.key)+brief(p.value))
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	return fmt.Errorf("%w: features of the model that its plain architecture lacks: %s",
		errUnsupported, strings.Join(unknown[:min(len(unknown), 12)], ", "))
}

// brief shows a number, a truth or a text in an error; lists may be long.
func brief(value any) string {
	switch v := value.(type) {
	case string:
		return fmt.Sprintf(" = %.40q", v)
	case bool, uint8, int8, uint16, int16, uint32, int32, uint64, int64, float32, float64:
		return fmt.Sprintf(" = %v", v)
	}
	return ""
}

// split cuts the name of a tensor of a layer, "blk.0.attn_q.weight", into the layer, its part and
// the kind of tensor.
func split(name string) (layer, part, kind string, ok bool) {
	rest, ok := strings.CutPrefix(name, "blk.")
	layer, part, found := strings.Cut(rest, ".")
	n, err := strconv.ParseUint(layer, 10, 31)
	part, kind, _ = strings.Cut(part, ".")
	return layer, part, kind, ok && found && err == nil && strconv.FormatUint(n, 10) == layer
}

// hasPart reports whether any layer has a tensor.
func (o *Original) hasPart(part, kind string) bool {
	return slices.ContainsFunc(o.file.tensors, func(t stored) bool {
		_, p, k, ok := split(t.Name)
		return ok && p == part && k == kind
	})
}

// bind finds the place of every tensor of the original.
func (o *Original) bind() error {
	var unknown []string
	for _, t := range o.file.tensors {
		switch {
		case strings.HasSuffix(t.Name, ".attn_rot_embd"), strings.HasSuffix(t.Name,
			".attn_rot_embd.weight"):
			o.notes = append(o.notes, tensor.Clip(t.Name)+": not read, because the rotary table "+
				"follows from the configuration")
			continue
		case t.Name == ropeFactors:
			continue // of rotary
		}
		found, err := o.show(t.Info)
		if err != nil {
			return err
		}
		if !found {
			unknown = append(unknown, tensor.Clip(t.Name))
		}
	}
	if len(unknown) > 0 {
		slices.Sort(unknown)
		return fmt.Errorf("%w: tensors that no part of a model of architecture %s uses: %s",
			errUnsupported, o.arch.name, strings.Join(unknown[:min(len(unknown), 12)], ", "))
	}
	return nil
}

// show adds the views of a tensor of the file.
func (o *Original) show(t tensor.Info) (found bool, err error) {
	if prefix, kind, _ := strings.Cut(t.Name, "."); weightOrBias(kind) && o.arch.top[prefix] != "" {
		return true, o.add(o.arch.top[prefix]+"."+kind, view{source: t.Name})
	}
	layer, part, kind, ok := split(t.Name)
	if !ok || !weightOrBias(kind) {
		return false, nil
	}
	at := o.arch.layer + layer + "."
	if part == fused {
		return true, o.showFused(t, at, kind)
	}
	theirs := o.arch.parts[part]
	if o.arch.rename != nil {
		theirs = o.arch.rename(o, part, theirs)
	}
	if theirs == "" {
		return false, nil
	}
	v := view{source: t.Name}
	if heads := o.permuted(part); heads > 0 {
		if v.count, err = o.rowsOf(t, heads*o.size); err != nil {
			return true, err
		}
		v.rows = neighbours(0, heads, o.size)
	}
	return true, o.add(at+theirs+"."+kind, v)
}

// add adds the view of a tensor of the original. It must be in the file once.
func (o *Original) add(name string, v view) error {
	if other, ok := o.views[name]; ok {
		return fmt.Errorf("%w: tensors %q and %q are both %s of the original", errFormat,
			tensor.Clip(other.source), tensor.Clip(v.source), tensor.Clip(name))
	}
	o.views[name] = v
	return nil
}

func weightOrBias(kind string) bool { return kind == "weight" || kind == "bias" }

// showFused adds the views of a tensor with the rows of queries, keys and values behind each other.
func (o *Original) showFused(t tensor.Info, at, kind string) error {
	q, kv := o.heads*o.size, o.kv*o.size
	all, err := o.rowsOf(t, q+2*kv)
	if err != nil {
		return err
	}
	if o.arch.grouped != "" {
		return o.add(at+o.arch.grouped+"."+kind, view{t.Name, all, groups(o.heads, o.kv, o.size)})
	}
	first := int64(0)
	for _, p := range []struct {
		part        string
		count, head int64
	}{{"attn_q", q, o.heads}, {"attn_k", kv, o.kv}, {"attn_v", kv, 0}} {
		rows := stretch(first, p.count)
		if o.arch.neighbours && p.head > 0 {
			rows = neighbours(first, p.head, o.size)
		}
		err := o.add(at+o.arch.parts[p.part]+"."+kind, view{t.Name, p.count, rows})
		if err != nil {
			return err
		}
		first += p.count
	}
	return nil
}

// rowsOf demands a number of rows.
func (o *Original) rowsOf(t tensor.Info, want int64) (int64, error) {
	if len(t.Shape) == 0 || t.Shape[0] != want {
		return 0, fmt.Errorf("%w: tensor %q of shape %v; with %d heads of %d, and %d of keys and "+
			"values, it has %d rows", errFormat, tensor.Clip(t.Name), t.Shape, o.heads, o.size,
			o.kv, want)
	}
	return want, nil
}

// permuted returns the number of heads of a tensor with rows that llama.cpp permutes, 0 for the
// others.
func (o *Original) permuted(part string) int64 {
	switch {
	case !o.arch.neighbours:
	case part == "attn_q":
		return o.heads
	case part == "attn_k":
		return o.kv
	}
	return 0
}

// Config returns the fields of the original's config.json that the file has.
func (o *Original) Config() map[string]any { return maps.Clone(o.config) }

// Quantised lists the types of quantisation that tensors have, sorted.
func (o *Original) Quantised() []string {
	types := map[string]bool{}
	for i := range o.file.tensors {
		if e := o.file.tensors[i].encoding(); e.decode != nil {
			types[e.name] = true
		}
	}
	return slices.Sorted(maps.Keys(types))
}

// Notes returns whole sentences about ignored parts and oddities, to be shown above the results.
func (o *Original) Notes() []string { return slices.Clone(o.notes) }

// Tensors returns all tensors under the names of the original, sorted by name.
func (o *Original) Tensors() []tensor.Info {
	var list []tensor.Info
	for _, name := range slices.Sorted(maps.Keys(o.views)) {
		t, _ := o.Tensor(name)
		list = append(list, t)
	}
	return list
}

// Tensor finds a tensor by its exact name in the original.
func (o *Original) Tensor(name string) (tensor.Info, bool) {
	v := o.views[name]
	t, ok := o.file.Tensor(v.source)
	if !ok {
		return t, false
	}
	t.Name = name
	if v.rows != nil {
		t.Size = t.Size / t.Shape[0] * v.count
		t.Shape = append([]int64{v.count}, t.Shape[1:]...)
		t.Encoding = strings.TrimSpace(t.Encoding + " permuted")
	}
	return t, true
}

// Section returns a reader over the elements of one tensor, by its name in the original, with its
// rows in the original's order. It must not be used after the file was closed.
func (o *Original) Section(name string) (*io.SectionReader, error) {
	t, ok := o.Tensor(name)
	if !ok {
		return nil, fmt.Errorf("gguf: %s: tensor %q: %w", o.file.Name(), name, fs.ErrNotExist)
	}
	v := o.views[name]
	s, err := o.file.Section(v.source)
	if err != nil || v.rows == nil {
		return s, err
	}
	row := t.Size / v.count
	return io.NewSectionReader(&tensor.Blocks{Size: t.Size, Block: row, Decode: func(dst []byte,
		first int64) error {
		for len(dst) > 0 {
			source, run := v.rows(first)
			run = min(run, int64(len(dst))/row)
			if _, err := s.ReadAt(dst[:run*row], source*row); err != nil {
				return err
			}
			dst, first = dst[run*row:], first+run
		}
		return nil
	}}, 0, t.Size), nil
}

// Close closes the file.
func (o *Original) Close() error { return o.file.Close() }

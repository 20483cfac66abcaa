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

// Llama shows a file of the architecture llama as its Hugging Face original: the names of
// LlamaForCausalLM, and the rows of the query and key projections in their order there. Its methods
// are safe for concurrent use.
type Llama struct {
	file   *File
	config map[string]any
	heads  int64
	kv     int64             // heads of keys and values
	names  map[string]string // Hugging Face → GGUF
	notes  []string
}

// NewLlama reads the metadata and demands that every tensor has a name of the original. Features
// that change the computation and are not part of the plain architecture, such as experts or scaled
// rotary positions, are a checkpoint.ErrUnsupported that lists them. The caller closes the file,
// after the Llama.
func NewLlama(f *File) (*Llama, error) {
	l := &Llama{file: f, names: map[string]string{}, notes: f.Notes()}
	err := l.configure()
	if err == nil {
		err = l.bind()
	}
	if err != nil {
		return nil, fmt.Errorf("gguf: %s: %w", f.Name(), err)
	}
	return l, nil
}

// configure makes the keys of a Hugging Face config.json from the metadata.
func (l *Llama) configure() error {
	arch, _, err := Get[string](l.file, "general.architecture")
	if err != nil {
		return err
	}
	if arch != "llama" {
		return fmt.Errorf("%w: architecture %q; llama is", errUnsupported, arch)
	}
	// llama.cpp computes SiLU for this architecture; the file cannot say otherwise.
	l.config = map[string]any{"architectures": []string{"LlamaForCausalLM"}, "model_type": "llama",
		"hidden_act": "silu"}
	if err := l.refuseFeatures(); err != nil {
		return err
	}
	for _, n := range []struct {
		gguf, name string
		need       bool
	}{
		{"block_count", "num_hidden_layers", true},
		{"embedding_length", "hidden_size", true},
		{"feed_forward_length", "intermediate_size", true},
		{"attention.head_count", "num_attention_heads", true},
		{"attention.head_count_kv", "num_key_value_heads", false},
		{"context_length", "max_position_embeddings", true},
		{"vocab_size", "vocab_size", false},
		{"attention.key_length", "head_dim", false},
	} {
		v, ok, err := l.file.Int("llama." + n.gguf)
		switch {
		case err != nil:
			return err
		case ok && v < 1:
			return fmt.Errorf("%w: llama.%s is %d", errFormat, n.gguf, v)
		case ok:
			l.config[n.name] = v
		case n.need:
			return fmt.Errorf("%w: no llama.%s", errFormat, n.gguf)
		}
	}
	if l.config["num_key_value_heads"] == nil {
		l.config["num_key_value_heads"] = l.config["num_attention_heads"]
	}
	l.heads, l.kv = l.config["num_attention_heads"].(int64), l.config["num_key_value_heads"].(int64)
	return l.configureRest()
}

// configureRest reads the numbers with a fraction, the special tokens and whether the output head
// is the embedding.
func (l *Llama) configureRest() error {
	for _, n := range []struct {
		gguf, name string
		without    float32
	}{
		{"attention.layer_norm_rms_epsilon", "rms_norm_eps", 0},
		{"rope.freq_base", "rope_theta", 10000}, // llama.cpp's default and Hugging Face's
	} {
		v, ok, err := Get[float32](l.file, "llama."+n.gguf)
		switch {
		case err != nil:
			return err
		case !ok && n.without == 0:
			return fmt.Errorf("%w: no llama.%s", errFormat, n.gguf)
		case !ok:
			v = n.without
		case !(v > 0 && v < 1e30):
			return fmt.Errorf("%w: llama.%s is %v", errFormat, n.gguf, v)
		}
		// The shortest text that means this float32: 1e-05, not 9.999999747378752e-06.
		exact, err := strconv.ParseFloat(strconv.FormatFloat(float64(v), 'g', -1, 32), 64)
		if err != nil {
			return err
		}
		l.config[n.name] = exact
	}
	for gguf, name := range map[string]string{"bos": "bos_token_id", "eos": "eos_token_id"} {
		if id, ok, err := l.file.Int("tokenizer.ggml." + gguf + "_token_id"); err != nil {
			return err
		} else if ok {
			l.config[name] = id
		}
	}
	_, hasHead := l.file.Tensor("output.weight")
	l.config["tie_word_embeddings"] = !hasHead
	return nil
}

// refuseFeatures refuses metadata of the architecture that is not part of the plain computation.
func (l *Llama) refuseFeatures() error {
	var unknown []string
	for _, p := range l.file.meta {
		name, ok := strings.CutPrefix(p.key, "llama.")
		if !ok {
			continue
		}
		switch name {
		case "block_count", "embedding_length", "feed_forward_length", "attention.head_count",
			"attention.head_count_kv", "context_length",
			"vocab_size", "attention.key_length", "attention.value_length",
			"attention.layer_norm_rms_epsilon", "rope.freq_base", "rope.dimension_count":
			continue
		case "expert_count", "expert_used_count":
			if p.value == uint32(0) {
				continue
			}
		case "rope.scaling.type":
			if p.value == "none" {
				continue
			}
		}
		unknown = append(unknown, tensor.Clip(p.key))
	}
	if len(unknown) == 0 {
		return nil
	}
	return fmt.Errorf("%w: features of the model that its plain architecture lacks: %s",
		errUnsupported, strings.Join(unknown, ", "))
}

// llamaName returns the Hugging Face name of a tensor, "" if there is none.
func llamaName(name string) string {
	switch name {
	case "token_embd.weight":
		return "model.embed_tokens.weight"
	case "output_norm.weight":
		return "model.norm.weight"
	case "output.weight":
		return "lm_head.weight"
	}
	rest, ok := strings.CutPrefix(name, "blk.")
	layer, part, found := strings.Cut(rest, ".")
	n, err := strconv.ParseUint(layer, 10, 31)
	if !ok || !found || err != nil || strconv.FormatUint(n, 10) != layer {
		return ""
	}
	part, kind, _ := strings.Cut(part, ".")
	theirs := map[string]string{
		"attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm",
		"attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
		"attn_output": "self_attn.o_proj",
		"ffn_gate":    "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj",
	}[part]
	if theirs == "" || kind != "weight" && kind != "bias" {
		return ""
	}
	return "model.layers." + layer + "." + theirs + "." + kind
}

// bind names all tensors and checks those with permuted rows.
func (l *Llama) bind() error {
	var unknown []string
	for _, t := range l.file.tensors {
		name := llamaName(t.Name)
		switch {
		case strings.HasSuffix(t.Name, ".attn_rot_embd"), strings.HasSuffix(t.Name,
			".attn_rot_embd.weight"):
			l.notes = append(l.notes, t.Name+": not read, because the rotary table follows from "+
				"the configuration")
			continue
		case name == "":
			unknown = append(unknown, tensor.Clip(t.Name))
			continue
		}
		l.names[name] = t.Name
		if heads := l.permuted(name); heads > 0 && (len(t.Shape) == 0 ||
			t.Shape[0]%(2*heads) != 0) {
			return fmt.Errorf("%w: tensor %q of shape %v does not divide into %d heads of an "+
				"even size", errFormat, t.Name, t.Shape, heads)
		}
	}
	if len(unknown) > 0 {
		slices.Sort(unknown)
		return fmt.Errorf("%w: tensors that no part of a Llama model uses: %s", errUnsupported,
			strings.Join(unknown[:min(len(unknown), 12)], ", "))
	}
	if l.config["vocab_size"] == nil {
		if t, ok := l.file.Tensor("token_embd.weight"); ok && len(t.Shape) == 2 {
			l.config["vocab_size"] = t.Shape[0]
		}
	}
	return nil
}

// permuted returns the number of heads of a tensor with rows that llama.cpp permutes, 0 for the
// others.
func (l *Llama) permuted(name string) int64 {
	switch {
	case strings.Contains(name, ".self_attn.q_proj."):
		return l.heads
	case strings.Contains(name, ".self_attn.k_proj."):
		return l.kv
	}
	return 0
}

// Unpermute returns the row of a GGUF query or key projection for a row of the Hugging Face
// original. The original rotates element i of a head with element i + size/2. llama.cpp rotates
// neighbours, 2·i with 2·i + 1, and its converter moves the rows there (LlamaModel.permute). rows
// must be a multiple of 2·heads.
func Unpermute(row, rows, heads int64) int64 {
	size := rows / heads
	head, in := row/size, row%size
	return head*size + in%(size/2)*2 + in/(size/2)
}

// Config returns the fields of the original's config.json that the file has.
func (l *Llama) Config() map[string]any { return maps.Clone(l.config) }

// Notes returns whole sentences about ignored parts and oddities, to be shown above the results.
func (l *Llama) Notes() []string { return slices.Clone(l.notes) }

// Tensors returns all tensors under the names of the original, sorted by name.
func (l *Llama) Tensors() []tensor.Info {
	var list []tensor.Info
	for _, name := range slices.Sorted(maps.Keys(l.names)) {
		t, _ := l.Tensor(name)
		list = append(list, t)
	}
	return list
}

// Tensor finds a tensor by its exact name in the original.
func (l *Llama) Tensor(name string) (tensor.Info, bool) {
	t, ok := l.file.Tensor(l.names[name])
	if !ok {
		return t, false
	}
	t.Name = name
	if l.permuted(name) > 0 {
		t.Encoding = strings.TrimSpace(t.Encoding + " permuted")
	}
	return t, true
}

// Section returns a reader over the elements of one tensor, by its name in the original, with its
// rows in the original's order. It must not be used after the file was closed.
func (l *Llama) Section(name string) (*io.SectionReader, error) {
	t, ok := l.Tensor(name)
	if !ok {
		return nil, fmt.Errorf("gguf: %s: tensor %q: %w", l.file.Name(), name, fs.ErrNotExist)
	}
	s, err := l.file.Section(l.names[name])
	heads := l.permuted(name)
	if err != nil || heads == 0 {
		return s, err
	}
	rows := t.Shape[0]
	row := t.Size / rows
	return io.NewSectionReader(&tensor.Blocks{Size: t.Size, Block: row, Decode: func(dst []byte,
		first int64) error {
		for i := int64(0); i*row < int64(len(dst)); i++ {
			if _, err := s.ReadAt(dst[i*row:][:row], Unpermute(first+i, rows,
				heads)*row); err != nil {
				return err
			}
		}
		return nil
	}}, 0, t.Size), nil
}

// Close closes the file.
func (l *Llama) Close() error { return l.file.Close() }

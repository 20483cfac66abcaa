package model

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/engine/checkpoint"
	"github.com/windrow-sim/windrow/kernels/ref"
)

// tiny is the shape of most tests.
func tiny() Shape {
	return Shape{DModel: 16, Layers: 2, DFFN: 64, Heads: 4, KVHeads: 4, HeadDim: 4, Vocab: 40,
		MaxPos: 24, Rows: 2, DTypeSize: 2}
}

// Names of OPT's tensors, without prefix.
const (
	embedSource = "embed_tokens.weight"
	headSource  = "lm_head.weight"
)

func upSource(layer int) string   { return fmt.Sprintf("layers.%d.fc1.weight", layer) }
func downSource(layer int) string { return fmt.Sprintf("layers.%d.fc2.weight", layer) }

// factsOf returns the facts of an OPT model of a shape in F16.
func factsOf(s Shape) facts {
	f := facts{arch: versionOne(s), precision: Precision{ref.F16, ref.F16}}
	f.stride = f.record()
	return f
}

// format is for PackOptions.
func format(f ref.Format) *ref.Format { return &f }

// fixture is a Hugging Face folder to be.
type fixture struct {
	shape   Shape
	prefix  string
	dtype   checkpoint.DType // of all tensors
	config  map[string]any   // replaces or, with nil, removes fields
	tensors map[string][]float32
	shapes  map[string][]int64
}

// newFixture makes the tensors of a random OPT model whose values float16 holds exactly.
func newFixture(s Shape) *fixture {
	f := &fixture{shape: s, prefix: "model.decoder.", dtype: checkpoint.F16,
		config:  map[string]any{},
		tensors: map[string][]float32{}, shapes: map[string][]int64{}}
	d, ffn := int64(s.DModel), int64(s.DFFN)
	f.add("embed_tokens.weight", int64(s.Vocab), d)
	f.add("embed_positions.weight", int64(s.MaxPos+2), d)
	f.norm("final_layer_norm", d)
	for l := range s.Layers {
		p := fmt.Sprintf("layers.%d.", l)
		for _, q := range []string{"q", "k", "v", "out"} {
			f.add(p+"self_attn."+q+"_proj.weight", d, d)
			f.add(p+"self_attn."+q+"_proj.bias", d)
		}
		f.norm(p+"self_attn_layer_norm", d)
		f.norm(p+"final_layer_norm", d)
		f.add(p+"fc1.weight", ffn, d)
		f.add(p+"fc1.bias", ffn)
		f.add(p+"fc2.weight", d, ffn)
		f.add(p+"fc2.bias", d)
	}
	return f
}

func (f *fixture) norm(name string, d int64) {
	f.add(name+".weight", d)
	f.add(name+".bias", d)
}

func (f *fixture) add(name string, shape ...int64) {
	n := int64(1)
	for _, dim := range shape {
		n *= dim
	}
	r := rand.New(rand.NewPCG(7, uint64(len(f.tensors))))
	list := make([]float32, n)
	for i := range list {
		list[i] = ref.F16ToF32(ref.F32ToF16(float32(r.NormFloat64())))
	}
	f.tensors[name], f.shapes[name] = list, shape
}

func (f *fixture) remove(name string) {
	delete(f.tensors, name)
	delete(f.shapes, name)
}

func encodeAs(dtype checkpoint.DType, list []float32) []byte {
	var out []byte
	for _, v := range list {
		switch dtype {
		case checkpoint.F16:
			out = binary.LittleEndian.AppendUint16(out, ref.F32ToF16(v))
		case checkpoint.BF16:
			out = binary.LittleEndian.AppendUint16(out, uint16(math.Float32bits(v)>>16))
		default:
			out = binary.LittleEndian.AppendUint32(out, math.Float32bits(v))
		}
	}
	return out
}

// fullName adds the prefix to the names that have one.
func (f *fixture) fullName(name string) string {
	if name == headSource || strings.HasPrefix(name, "/") {
		return strings.TrimPrefix(name, "/")
	}
	return f.prefix + name
}

// write makes the folder, its weights spread over a number of files.
func (f *fixture) write(t testing.TB, files int) string {
	t.Helper()
	dir := t.TempDir()
	s := f.shape
	config := map[string]any{
		"model_type": "opt", "architectures": []string{"OPTForCausalLM"}, "hidden_size": s.DModel,
		"num_hidden_layers": s.Layers,
		"ffn_dim":           s.DFFN, "num_attention_heads": s.Heads, "vocab_size": s.Vocab,
		"max_position_embeddings": s.MaxPos,
		"word_embed_proj_dim":     s.DModel, "activation_function": "relu",
		"do_layer_norm_before": true, "torch_dtype": "float16",
	}
	maps.Copy(config, f.config)
	writeJSON(t, filepath.Join(dir, "config.json"), config)
	names := slices.Sorted(maps.Keys(f.tensors))
	weightMap := map[string]string{}
	for i := range files {
		file := "model.safetensors"
		if files > 1 {
			file = fmt.Sprintf("model-%05d-of-%05d.safetensors", i+1, files)
		}
		var mine []string
		for j, name := range names {
			if j%files == i {
				mine = append(mine, name)
				weightMap[f.fullName(name)] = file
			}
		}
		f.writeTensors(t, filepath.Join(dir, file), mine)
	}
	if files > 1 {
		writeJSON(t, filepath.Join(dir, "model.safetensors.index.json"), map[string]any{
			"weight_map": weightMap})
	}
	return dir
}

func (f *fixture) writeTensors(t testing.TB, path string, names []string) {
	t.Helper()
	var infos []checkpoint.TensorInfo
	for _, name := range names {
		infos = append(infos, checkpoint.TensorInfo{Name: f.fullName(name), DType: f.dtype,
			Shape: f.shapes[name]})
	}
	w, err := checkpoint.NewWriter(path, infos, map[string]string{"format": "pt"},
		checkpoint.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	for _, name := range names {
		if err := w.Begin(f.fullName(name)); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(encodeAs(f.dtype, f.tensors[name])); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Commit(); err != nil {
		t.Fatal(err)
	}
}

func writeJSON(t testing.TB, path string, v any) {
	t.Helper()
	text, err := json.Marshal(v)
	if err == nil {
		err = os.WriteFile(path, text, 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// refused demands an error of a kind that contains every one of the texts.
func refused(t *testing.T, err, kind error, texts ...string) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Fatalf("got %v, want an error of kind %v", err, kind)
	}
	for _, s := range texts {
		if !strings.Contains(err.Error(), s) {
			t.Errorf("%q does not say %q", err, s)
		}
	}
}

// pack packs a folder and opens the image.
func pack(t *testing.T, dir string, opt PackOptions) (*Image, *PackReport) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "x.flash.safetensors")
	report, err := Pack(t.Context(), dir, out, opt)
	if err != nil {
		t.Fatal(err)
	}
	img, err := OpenImage(t.Context(), out)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { img.Close() })
	return img, report
}

// folderIsEmpty demands that nothing was left in a folder.
func folderIsEmpty(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		t.Errorf("%s was left behind", e.Name())
	}
}

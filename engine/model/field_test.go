package model

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/engine/checkpoint"
	"github.com/windrow-sim/windrow/kernels/ref"
)

func TestField_M12_TruncatedShardStopsThePack(t *testing.T) {
	dir := newFixture(tiny()).write(t, 2)
	shard := filepath.Join(dir, "model-00002-of-00002.safetensors")
	st, err := os.Stat(shard)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(shard, st.Size()-4096); err != nil {
		t.Fatal(err)
	}
	out := t.TempDir()
	_, err = Pack(t.Context(), dir, filepath.Join(out, "x"), PackOptions{})
	refused(t, err, checkpoint.ErrFormat, shard, fmt.Sprint(st.Size()), fmt.Sprint(st.Size()-4096))
	folderIsEmpty(t, out)
}

func TestField_M10_IgnoreIndexPacks(t *testing.T) {
	dir := newFixture(tiny()).write(t, 1)
	stale := `{"weight_map":{"a":"model-00001-of-00030.safetensors"}}`
	if err := os.WriteFile(filepath.Join(dir, "model.safetensors.index.json"), []byte(stale),
		0o666); err != nil {
		t.Fatal(err)
	}
	_, err := Pack(t.Context(), dir, filepath.Join(t.TempDir(), "x"), PackOptions{})
	refused(t, err, checkpoint.ErrFormat, "model-00001-of-00030.safetensors")
	pack(t, dir, PackOptions{IgnoreIndex: true})
}

func TestField_M3_TiedHead(t *testing.T) {
	embed := func(f *fixture) []float32 { return f.tensors[embedSource] }
	load := func(f *fixture) (*Image, *PackReport, error) {
		out := filepath.Join(t.TempDir(), "x")
		report, err := Pack(t.Context(), f.write(t, 1), out, PackOptions{})
		if err != nil {
			return nil, nil, err
		}
		img, err := OpenImage(t.Context(), out)
		if err == nil {
			t.Cleanup(func() { img.Close() })
		}
		return img, report, err
	}
	plain := newFixture(tiny())
	base, _, err := load(plain)
	if err != nil {
		t.Fatal(err)
	}

	onlyHead := newFixture(tiny())
	onlyHead.tensors[headSource], onlyHead.shapes[headSource] = embed(onlyHead),
		onlyHead.shapes[embedSource]
	onlyHead.remove(embedSource)
	img, report, err := load(onlyHead)
	if err != nil || img.Hash != base.Hash || len(report.Notes) != 1 {
		t.Errorf("only lm_head: %v, %+v", err, report)
	}

	neither := newFixture(tiny())
	neither.remove(embedSource)
	_, _, err = load(neither)
	refused(t, err, checkpoint.ErrFormat, embedSource, headSource)

	both := newFixture(tiny())
	both.tensors[headSource], both.shapes[headSource] = embed(both), both.shapes[embedSource]
	both.config["tie_word_embeddings"] = true
	if img, report, err := load(both); err != nil || len(report.Notes) != 0 ||
		img.Hash != base.Hash || !img.Arch.Tied {
		t.Errorf("equal head, tied: %v, %+v", err, report)
	}
	both.config["tie_word_embeddings"] = false
	if img, report, err := load(both); err != nil || len(report.Notes) != 0 || img.Arch.Tied {
		t.Errorf("equal head, not tied: %v, %+v", err, report)
	}
	other := append([]float32{}, embed(both)...)
	other[7]++
	both.tensors[headSource] = other
	if img, report, err := load(both); err != nil || len(report.Notes) != 0 || img.Arch.Tied {
		t.Errorf("another head, not tied: %v, %+v", err, report)
	}
	both.config["tie_word_embeddings"] = true
	if _, report, err := load(both); err != nil || len(report.Notes) != 1 ||
		!strings.Contains(report.Notes[0], "ignored") {
		t.Errorf("tied with another head: %v, %+v", err, report)
	}
	plain.config["tie_word_embeddings"] = false
	_, _, err = load(plain)
	refused(t, err, checkpoint.ErrFormat, headSource)
}

func TestField_M5_DTypeComesFromTheTensors(t *testing.T) {
	for name, c := range map[string]struct {
		config map[string]any
		notes  int
	}{
		"null":       {map[string]any{"torch_dtype": nil}, 0},
		"only dtype": {map[string]any{"torch_dtype": nil, "dtype": "float16"}, 0},
		"wrong":      {map[string]any{"torch_dtype": "float32"}, 1},
		"right":      {map[string]any{"torch_dtype": "float16"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(tiny())
			f.config = c.config
			img, report := pack(t, f.write(t, 1), PackOptions{})
			if img.DType != "F16" || img.Geometry().Record != 64 || len(report.Notes) != c.notes {
				t.Errorf("dtype %s, notes %v", img.DType, report.Notes)
			}
		})
	}
}

// OPT-350M: embeddings of half the width with projections, norms behind the residual. That the
// logits are transformers' is tested in package engine (TestGolden/opt-350m).
func TestField_M1_OPT350M(t *testing.T) {
	make350 := func() *fixture {
		f := newFixture(tiny())
		f.config = map[string]any{"do_layer_norm_before": false, "word_embed_proj_dim": 8}
		f.remove("final_layer_norm.weight")
		f.remove("final_layer_norm.bias")
		f.add(embedSource, 40, 8)
		f.add("project_in.weight", 16, 8)
		f.add("project_out.weight", 8, 16)
		return f
	}
	img, _ := pack(t, make350().write(t, 1), PackOptions{})
	w, err := img.Weights(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if a := img.Arch; !a.PostNorm || a.FinalNorm || a.Embed != 8 || w.In.Rows != 16 ||
		w.In.Cols != 8 || w.Out.Rows != 8 || w.Out.Cols != 16 || w.Embed.Cols != 8 {
		t.Errorf("architecture %+v", img.Arch)
	}
	without := make350()
	without.remove("project_in.weight")
	_, err = Pack(t.Context(), without.write(t, 1), filepath.Join(t.TempDir(), "x"), PackOptions{})
	refused(t, err, checkpoint.ErrFormat, "project_in.weight")
}

func TestField_M2_FinalNormByPresence(t *testing.T) {
	for _, c := range []struct {
		removed, there bool
		notes          int
	}{{false, true, 0}, {true, false, 0}, {false, false, 1}, {true, true, 1}} {
		f := newFixture(tiny())
		f.config = map[string]any{"_remove_final_layer_norm": c.removed}
		if !c.there {
			f.remove("final_layer_norm.weight")
			f.remove("final_layer_norm.bias")
		}
		img, report := pack(t, f.write(t, 1), PackOptions{})
		if img.Arch.FinalNorm != c.there || len(report.Notes) != c.notes {
			t.Errorf("removed %v, there %v: final norm %v, notes %q", c.removed, c.there,
				img.Arch.FinalNorm, report.Notes)
		}
	}
}

// TestField_M7_KVHeads: as many key heads as config.json says, and as queries where it says
// nothing. The logits of both are tested in package engine (TestGolden/llama and
// TestGolden/llama-no-kv-heads).
func TestField_M7_KVHeads(t *testing.T) {
	const llama = `{"model_type":"llama","hidden_size":32,"num_hidden_layers":1,"intermediate_size":64,"num_attention_heads":8,"vocab_size":40`
	for text, want := range map[string]int{llama + `,"num_key_value_heads":2}`: 2, llama + `}`: 8,
		llama + `,"num_key_value_heads":null}`: 8} {
		c, err := parse(t, text)
		if err != nil || c.Arch.Shape.KVHeads != want {
			t.Errorf("%s: %d key heads, %v; want %d", text, c.Arch.Shape.KVHeads, err, want)
		}
	}
	for _, bad := range []string{"3", "0", "16"} {
		_, err := parse(t, llama+`,"num_key_value_heads":`+bad+"}")
		refused(t, err, checkpoint.ErrFormat, "kv_heads "+bad)
	}
}

// TestPackGGUF packs a GGUF file of a Llama: its quantised matrices become F32, or the wanted type.
func TestPackGGUF(t *testing.T) {
	const file = "../checkpoint/gguf/testdata"
	names, err := filepath.Glob(filepath.Join(file, "*.gguf"))
	if err != nil || len(names) == 0 {
		t.Fatalf("no fixtures: %v", err)
	}
	packed := 0
	for _, name := range names {
		out := filepath.Join(t.TempDir(), "x")
		if _, err := Pack(t.Context(), name, out, PackOptions{
			Format: format(ref.F16)}); err != nil {
			t.Logf("%s: %v", name, err)
			continue
		}
		img, err := OpenImage(t.Context(), out)
		if err != nil {
			t.Fatal(err)
		}
		if img.Arch.Family != Llama || img.DType != "F16" {
			t.Errorf("%s: %+v", name, img.Arch)
		}
		img.Close()
		packed++
	}
	if packed == 0 {
		t.Error("no GGUF file could be packed")
	}
}

package model

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/engine/checkpoint"
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
	if err := os.WriteFile(filepath.Join(dir, "model.safetensors.index.json"), []byte(stale), 0o666); err != nil {
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
		img, err := OpenImage(out)
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
	onlyHead.tensors[headSource], onlyHead.shapes[headSource] = embed(onlyHead), onlyHead.shapes[embedSource]
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
	for _, tied := range []bool{true, false} {
		both.config["tie_word_embeddings"] = tied
		if img, report, err := load(both); err != nil || len(report.Notes) != 0 || img.Hash != base.Hash {
			t.Errorf("equal head, tied %v: %v, %+v", tied, err, report)
		}
	}
	other := append([]float32{}, embed(both)...)
	other[7]++
	both.tensors[headSource] = other
	_, _, err = load(both)
	refused(t, err, checkpoint.ErrUnsupported, headSource, "differs")
	both.config["tie_word_embeddings"] = true
	if _, report, err := load(both); err != nil || len(report.Notes) != 1 || !strings.Contains(report.Notes[0], "ignored") {
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

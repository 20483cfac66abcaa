package engine

import (
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/engine/checkpoint"
	"github.com/windrow-sim/windrow/engine/flashio"
	"github.com/windrow-sim/windrow/engine/model"
	"github.com/windrow-sim/windrow/internal/decisions/layout"
	"github.com/windrow-sim/windrow/internal/decisions/policy"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/kernels/ref"
)

const familiesDir = "testdata/families"

// familyCases are the tiny checkpoints that tools/goldens made with transformers.
func familyCases(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir(familiesDir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	families := map[string]bool{}
	for _, name := range names {
		family, _, _ := strings.Cut(name, "-")
		families[family] = true
	}
	for _, family := range []string{"opt", "llama", "mistral", "falcon", "persimmon", "phi",
		"qwen2", "qwen3", "gptneox", "phi3", "gemma2", "gemma3"} {
		if !families[family] {
			t.Errorf("no checkpoint of family %s", family)
		}
	}
	return names
}

// familyForms are the checkpoints without those that transformers 5 saved of the same forms: what
// the computation is does not depend on who saved them (TestSavedByBothVersions in engine/model).
func familyForms(t *testing.T) []string {
	t.Helper()
	return slices.DeleteFunc(familyCases(t), func(name string) bool {
		return strings.HasSuffix(name, "-t5")
	})
}

// goldenRun is a prompt and transformers' logits for it.
type goldenRun struct {
	ids    []uint32
	logits [][]float32
}

func goldenRuns(t *testing.T, path string, vocab int) (runs [2]goldenRun) {
	t.Helper()
	file, err := checkpoint.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	read := func(name string) []byte {
		info, ok := file.Tensor(name)
		if !ok {
			t.Fatalf("%s: no tensor %s", path, name)
		}
		raw := make([]byte, info.Size)
		if err := file.ReadTensor(name, raw); err != nil {
			t.Fatal(err)
		}
		return raw
	}
	for i, suffix := range []string{"0", "1"} {
		ids, logits := read("ids_"+suffix), read("logits_"+suffix)
		for at := 0; at < len(ids); at += 4 {
			runs[i].ids = append(runs[i].ids, binary.LittleEndian.Uint32(ids[at:]))
		}
		for pos := range runs[i].ids {
			row := make([]float32, vocab)
			ref.F32.Decode(row, logits[4*pos*vocab:][:4*vocab])
			runs[i].logits = append(runs[i].logits, row)
		}
	}
	return runs
}

// newDense returns a dense engine over a folder.
func newDense(t *testing.T, dir string, cfg Config) (*Engine, *model.Weights, [][]byte) {
	t.Helper()
	w, bundles, _, err := model.LoadFolder(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := NewResident(w, bundles, geometry(w))
	if err != nil {
		t.Fatal(err)
	}
	e, err := New(w, rows, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e, w, bundles
}

func geometry(w *model.Weights) layout.Geometry {
	return layout.Uniform(w.Shape.Layers, w.Shape.DFFN, units.Bytes(w.RecordBytes()))
}

// TestGolden compares every family with transformers' logits. The context ends with the longer
// prompt: what LongRoPE does depends on it, as in transformers on the prompt's length.
func TestGolden(t *testing.T) {
	for _, name := range familyCases(t) {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(familiesDir, name)
			hasGoldenLogits(t, dir, filepath.Join(dir, "golden.safetensors"))
		})
	}
}

// hasGoldenLogits compares a model, a folder or a GGUF file, with transformers' logits.
func hasGoldenLogits(t *testing.T, path, golden string) {
	t.Helper()
	const tolerance, context = 1e-3, 17
	e, w, _ := newDense(t, path, Config{Threads: 2, Context: context})
	worst := 0.0
	for _, run := range goldenRuns(t, golden, w.Shape.Vocab) {
		e.Reset()
		for pos, id := range run.ids {
			logits, err := e.Forward(Token{Pos: pos, ID: id})
			if err != nil {
				t.Fatal(err)
			}
			for j, got := range logits {
				worst = max(worst, math.Abs(float64(got)-float64(run.logits[pos][j])))
			}
			if argmax(logits) != argmax(run.logits[pos]) {
				t.Errorf("position %d: argmax %d, want %d", pos, argmax(logits),
					argmax(run.logits[pos]))
			}
		}
	}
	t.Logf("largest absolute error %.1e", worst)
	if !(worst <= tolerance) {
		t.Errorf("largest absolute error %.2e, want at most %g", worst, tolerance)
	}
}

// TestFlashIsDense packs every family in every precision that its rows allow and demands bit-equal
// logits from flash-resident rows with true masks.
func TestFlashIsDense(t *testing.T) {
	formats := []*ref.Format{nil}
	for _, f := range []ref.Format{ref.F16, ref.BF16, ref.F32, ref.Q8, ref.Q4} {
		formats = append(formats, &f)
	}
	for _, name := range familyForms(t) {
		for _, format := range formats {
			label := name + "/as-stored"
			if format != nil {
				label = name + "/" + format.String()
			}
			t.Run(label, func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "x.flash.safetensors")
				if _, err := model.Pack(t.Context(), filepath.Join(familiesDir, name), path,
					model.PackOptions{Format: format}); err != nil {
					t.Fatal(err)
				}
				flashEqualsDense(t, path)
			})
		}
	}
}

// flashEqualsDense runs an image dense, then from flash with the masks that were recorded.
func flashEqualsDense(t *testing.T, path string) {
	image, err := model.OpenImage(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer image.Close()
	w, err := image.Weights(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	bundles := make([][]byte, w.Shape.Layers)
	for l := range bundles {
		bundles[l] = make([]byte, image.LayerBytes())
		if err := image.Bundles(l, bundles[l]); err != nil {
			t.Fatal(err)
		}
	}
	resident, err := NewResident(w, bundles, image.Geometry())
	if err != nil {
		t.Fatal(err)
	}
	const positions = 14
	want := &recorded{}
	dense, err := New(w, resident, Config{Threads: 2, Context: positions, Observer: want})
	if err != nil {
		t.Fatal(err)
	}
	defer dense.Close()
	for pos := range positions {
		id := uint32(5 + pos*7%80)
		logits, err := dense.Forward(Token{Pos: pos, ID: id})
		if err != nil {
			t.Fatal(err)
		}
		want.ids, want.logits = append(want.ids, id), append(want.logits, slices.Clone(logits))
	}
	reader, err := flashio.Open(path, flashio.Options{Engine: flashio.EnginePread, Parallel: 2})
	if err != nil {
		t.Fatal(err)
	}
	rows, err := NewFlash(w, image.Geometry(), reader, FlashConfig{Policy: policy.SlidingWindow(2),
		Layout: layout.Options{Coalesce: true}})
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	checkEqual(t, w, rows, 1, want)
}

package cuda_test

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/engine"
	"github.com/windrow-sim/windrow/engine/cuda"
	"github.com/windrow-sim/windrow/engine/flashio"
	"github.com/windrow-sim/windrow/engine/model"
	"github.com/windrow-sim/windrow/internal/decisions/layout"
	"github.com/windrow-sim/windrow/internal/decisions/policy"
	"github.com/windrow-sim/windrow/internal/mask"
	kernels "github.com/windrow-sim/windrow/kernels/cuda"
	"github.com/windrow-sim/windrow/kernels/ref"
)

const (
	familiesDir = "../testdata/families"
	talesDir    = "../../examples/models/tales"
)

// TestMain holds the context of a real device for as long as tests run: making one takes long, and
// then it is made once.
func TestMain(m *testing.M) {
	if name := os.Getenv(cuda.LibraryVariable); name != "" {
		driver, err := kernels.OpenLibrary(name)
		if err == nil {
			err = driver.Use(0)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

// loaded is a model in memory and as a flash image, for devices of a kind.
type loaded struct {
	on      *cuda.TestDriver
	w       *model.Weights
	bundles [][]byte
	geo     layout.Geometry
	path    string
}

// pack makes a flash image of a checkpoint and loads it.
func pack(t testing.TB, on *cuda.TestDriver, dir string, format *ref.Format) *loaded {
	t.Helper()
	m := &loaded{on: on, path: filepath.Join(t.TempDir(), "x.flash.safetensors")}
	if _, err := model.Pack(t.Context(), dir, m.path, model.PackOptions{
		Format: format}); err != nil {
		t.Fatal(err)
	}
	image, err := model.OpenImage(t.Context(), m.path)
	if err != nil {
		t.Fatal(err)
	}
	defer image.Close()
	if m.w, err = image.Weights(t.Context()); err != nil {
		t.Fatal(err)
	}
	m.geo = image.Geometry()
	for l := range m.w.Layers {
		data := make([]byte, image.LayerBytes())
		if err := image.Bundles(l, data); err != nil {
			t.Fatal(err)
		}
		m.bundles = append(m.bundles, data)
	}
	return m
}

func (m *loaded) resident(t testing.TB) *engine.Resident {
	t.Helper()
	rows, err := engine.NewResident(m.w, m.bundles, m.geo)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func (m *loaded) flash(t testing.TB, cfg engine.FlashConfig) *engine.Flash {
	t.Helper()
	rows, err := m.openFlash(t, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func (m *loaded) openFlash(t testing.TB, cfg engine.FlashConfig) (*engine.Flash, error) {
	t.Helper()
	reader, err := flashio.Open(m.path, flashio.Options{Engine: flashio.EnginePread, Parallel: 2})
	if err != nil {
		t.Fatal(err)
	}
	cfg.Layout = layout.Options{Coalesce: true}
	rows, err := engine.NewFlash(m.w, m.geo, reader, cfg)
	if err != nil {
		return nil, errors.Join(err, reader.Close())
	}
	return rows, nil
}

// backend puts a model on the device; it is closed with the test.
func (m *loaded) backend(t testing.TB) *cuda.Backend {
	t.Helper()
	b, err := cuda.New(m.on.Device(t), m.w, cuda.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return b
}

// seen records the results of an engine.
type seen struct {
	masks  [][]mask.Mask // by token and layer
	inputs [][][]float32
	values [][]float32 // by layer of each token, ascending by unit
	counts [][5]int    // hits, misses, evictions, requests, bytes copied
	layer  []mask.Mask
	input  [][]float32
	logits [][]float32
	ids    []uint32
}

func (r *seen) Layer(ev *engine.LayerEvent) error {
	r.layer, r.input = append(r.layer, slices.Clone(ev.Active)), append(r.input,
		slices.Clone(ev.Feature))
	r.values = append(r.values, slices.Clone(ev.Values))
	r.counts = append(r.counts, [5]int{ev.Hits, ev.Misses, ev.Evictions, ev.Requests,
		int(ev.Copied)})
	return nil
}

func (r *seen) Token(*engine.TokenEvent) error {
	r.masks, r.inputs = append(r.masks, r.layer), append(r.inputs, r.input)
	r.layer, r.input = nil, nil
	return nil
}

// run computes a prompt and then greedily, up to so many positions; masks, if not nil, come with
// the tokens.
func run(t testing.TB, e *engine.Engine, prompt []uint32, positions int,
	masks [][]mask.Mask) *seen {
	t.Helper()
	r := &seen{ids: slices.Clone(prompt)}
	e.Observe(r)
	e.Reset()
	for pos := range positions {
		token := engine.Token{Pos: pos, ID: r.ids[pos]}
		if masks != nil {
			token.Masks = masks[pos]
		}
		logits, err := e.Forward(token)
		if err != nil {
			t.Fatal(err)
		}
		r.logits = append(r.logits, slices.Clone(logits))
		if pos+1 == len(r.ids) {
			r.ids = append(r.ids, argmax(logits))
		}
	}
	return r
}

func argmax(list []float32) uint32 {
	best := 0
	for i, v := range list {
		if v > list[best] {
			best = i
		}
	}
	return uint32(best)
}

// otherUnits is the largest value of a unit that is active in one of two masks only, as a share of
// the largest value. The values are of the active units.
func otherUnits(a, b mask.Mask, valuesA, valuesB []float32) float64 {
	largest, apart := 0.0, 0.0
	for _, side := range []struct {
		own, other mask.Mask
		values     []float32
	}{{a, b, valuesA}, {b, a, valuesB}} {
		i := 0
		for unit := range side.own.Each {
			v := math.Abs(float64(side.values[i]))
			i++
			if largest = max(largest, v); !side.other.Has(unit) {
				apart = max(apart, v)
			}
		}
	}
	return apart / largest
}

// near compares two runs: tokens and masks are the same, and numbers up to 1e-3 of the largest.
// sparse says that the activation function has exact zeros: the masks are then exactly the same on
// a stand-in; a device rounds otherwise, and other functions have values that are zero in float32
// and not in float64.
func near(t *testing.T, what string, got, want *seen, sparse bool) {
	t.Helper()
	exact := sparse && cuda.Emulated()
	if !slices.Equal(got.ids, want.ids) {
		t.Fatalf("%s: tokens %v, want %v", what, got.ids, want.ids)
	}
	worst := 0.0
	compare := func(got, want []float32) {
		largest, apart := 0.0, 0.0
		for i := range want {
			largest, apart = max(largest, math.Abs(float64(want[i]))),
				max(apart, math.Abs(float64(got[i])-float64(want[i])))
		}
		worst = max(worst, apart/largest)
	}
	for pos := range want.logits {
		compare(got.logits[pos], want.logits[pos])
		for l := range want.masks[pos] {
			at := pos*len(want.masks[pos]) + l
			if slices.Equal(got.masks[pos][l], want.masks[pos][l]) {
				compare(got.values[at], want.values[at])
			} else if apart := otherUnits(got.masks[pos][l], want.masks[pos][l], got.values[at],
				want.values[at]); exact || apart > 1e-5 {
				t.Errorf("%s: position %d, layer %d: other units are active, up to %.1e of the "+
					"largest value", what, pos, l, apart)
			}
			compare(got.inputs[pos][l], want.inputs[pos][l])
		}
	}
	if !(worst <= 1e-3) {
		t.Errorf("%s: apart by %.1e of the largest", what, worst)
	}
	t.Logf("%s: apart by %.1e of the largest", what, worst)
}

// made makes an engine that is closed by the test itself, before its rows.
func made(t testing.TB, m *loaded, rows engine.Rows, cfg engine.Config) *engine.Engine {
	t.Helper()
	if cfg.Threads == 0 {
		cfg.Threads = 1
	}
	e, err := engine.New(m.w, rows, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// TestFamilies runs every tiny checkpoint and the shipped model on the CPU and on the device:
// dense, then from flash with the true masks.
func TestFamilies(t *testing.T) { cuda.EachDriver(t, testFamilies) }

func testFamilies(t *testing.T, on *cuda.TestDriver) {
	entries, err := os.ReadDir(familiesDir)
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]string{"tales": talesDir}
	for _, e := range entries {
		// What transformers 5 saved is of the same forms.
		if !strings.HasSuffix(e.Name(), "-t5") {
			cases[e.Name()] = filepath.Join(familiesDir, e.Name())
		}
	}
	for name, dir := range cases {
		t.Run(name, func(t *testing.T) { sameAsCPU(t, on, dir, nil) })
	}
	for _, c := range []struct {
		name   string
		format ref.Format
	}{{"opt", ref.Q8}, {"llama-relu", ref.Q4}, {"phi-relu", ref.BF16}, {"falcon-7b-relu",
		ref.F16}} {
		t.Run(c.name+"-"+c.format.String(), func(t *testing.T) {
			sameAsCPU(t, on,
				filepath.Join(familiesDir, c.name), &c.format)
		})
	}
}

func sameAsCPU(t *testing.T, on *cuda.TestDriver, dir string, format *ref.Format) {
	m := pack(t, on, dir, format)
	const positions = 6
	prompt := []uint32{5, 40, 17, 62}
	e := made(t, m, m.resident(t), engine.Config{Context: positions})
	want := run(t, e, prompt, positions, nil)
	e.Close()
	b := m.backend(t)
	e = made(t, m, m.resident(t), engine.Config{Context: positions, Backend: b})
	dense := run(t, e, prompt, positions, nil)
	e.Close()
	near(t, "dense", dense, want, m.w.Arch.Activation.Sparse())

	host := m.flash(t, engine.FlashConfig{Policy: policy.SlidingWindow(2)})
	e = made(t, m, host, engine.Config{Context: positions})
	counted := run(t, e, prompt, positions, dense.masks)
	e.Close()
	host.Close()
	rows := m.flash(t, engine.FlashConfig{Policy: policy.SlidingWindow(2), Store: b})
	e = made(t, m, rows, engine.Config{Context: positions, Backend: b})
	flash := run(t, e, prompt, positions, dense.masks)
	e.Close()
	if err := rows.Close(); err != nil {
		t.Error(err)
	}
	for pos := range dense.logits {
		if !slices.Equal(flash.logits[pos], dense.logits[pos]) {
			t.Errorf("position %d: flash-resident logits are not those of a dense run", pos)
		}
	}
	if !slices.Equal(flash.counts, counted.counts) {
		t.Errorf("hits, misses, evictions, requests and copies are not the CPU's: %v, want %v",
			flash.counts, counted.counts)
	}
}

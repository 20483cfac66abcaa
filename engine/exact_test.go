package engine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/engine/flashio"
	"github.com/windrow-sim/windrow/engine/model"
	"github.com/windrow-sim/windrow/engine/tokenizer"
	"github.com/windrow-sim/windrow/internal/decisions/layout"
	"github.com/windrow-sim/windrow/internal/decisions/policy"
	"github.com/windrow-sim/windrow/internal/decisions/schedule"
	"github.com/windrow-sim/windrow/internal/mask"
	"github.com/windrow-sim/windrow/internal/units"
)

// recorded is a dense run: the tokens, their true masks and their logits.
type recorded struct {
	ids    []uint32
	masks  [][]mask.Mask
	logits [][]float32
	layer  []mask.Mask
}

func (r *recorded) Layer(ev *LayerEvent) error {
	r.layer = append(r.layer, slices.Clone(ev.Active))
	return nil
}

func (r *recorded) Token(*TokenEvent) error {
	r.masks = append(r.masks, r.layer)
	r.layer = nil
	return nil
}

// recordDense generates greedily after a prompt and keeps everything.
func recordDense(t testing.TB, threads, tokens int) *recorded {
	t.Helper()
	tok, err := tokenizer.Load(t.Context(), talesDir)
	if err != nil {
		t.Fatal(err)
	}
	e := denseEngine(t, threads)
	r := &recorded{ids: tok.Encode("Once upon a time a fox came to the mill")}
	e.Observe(r)
	for pos := range tokens {
		logits, err := e.Forward(Token{Pos: pos, ID: r.ids[pos]})
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

// packTales makes a flash image of the shipped model.
func packTales(t testing.TB) *model.Image {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tales.flash.safetensors")
	if _, err := model.Pack(context.Background(), talesDir, path, model.PackOptions{}); err != nil {
		t.Fatal(err)
	}
	image, err := model.OpenImage(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { image.Close() })
	return image
}

// checkEqual runs the recorded tokens on flash rows and demands the same bits in every logit.
func checkEqual(t *testing.T, w *model.Weights, rows Rows, threads int, want *recorded) {
	t.Helper()
	e, err := New(w, rows, Config{Threads: threads, Context: len(want.logits)})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	for pos := range want.logits {
		logits, err := e.Forward(Token{Pos: pos, ID: want.ids[pos], Masks: want.masks[pos]})
		if err != nil {
			t.Fatal(err)
		}
		for j := range logits {
			if math.Float32bits(logits[j]) != math.Float32bits(want.logits[pos][j]) {
				t.Fatalf("position %d, logit %d: %v, dense %v", pos, j, logits[j],
					want.logits[pos][j])
			}
		}
	}
}

// TestFlashEqualsDense is invariant 6: for every window, I/O engine, depth, request shape and
// number of threads, flash-resident logits have the bits of dense ones.
func TestFlashEqualsDense(t *testing.T) {
	want := recordDense(t, 1, 16)
	image := packTales(t)
	w, err := image.Weights(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	geo := image.Geometry()
	type variant struct {
		io      flashio.Options
		window  int
		threads int
		lay     layout.Options
	}
	layouts := []layout.Options{{}, {Coalesce: true}, {Coalesce: true, MaxRequest: 4 * units.KiB},
		{Coalesce: true, Gap: 3}, {Gap: 0, MaxRequest: 8 * units.KiB}}
	var variants []variant
	for _, io := range []flashio.Options{
		{Engine: flashio.EnginePread, Parallel: 1}, {Engine: flashio.EnginePread, Parallel: 32},
		{Engine: flashio.EnginePread, Parallel: 8, Direct: flashio.DirectOff},
		{Engine: flashio.EngineMmap}, {Engine: flashio.EngineMem},
		{Engine: flashio.EngineUring, Parallel: 1}, {Engine: flashio.EngineUring, Parallel: 64},
		{Engine: flashio.EngineUring, Parallel: 256},
	} {
		for _, window := range []int{0, 1, 4, 64} {
			for _, threads := range []int{1, 2, 5} {
				lay := layouts[len(variants)%len(layouts)]
				variants = append(variants, variant{io, window, threads, lay})
			}
		}
	}
	for _, v := range variants {
		name := fmt.Sprintf("%s-%d-%s-k%d-t%d", v.io.Engine, v.io.Parallel, v.io.Direct, v.window,
			v.threads)
		t.Run(name, func(t *testing.T) {
			reader, err := flashio.Open(image.Path, v.io)
			if errors.Is(err, flashio.ErrEnvironment) {
				t.Skipf("not on this host or in this build: %v", err)
			} else if err != nil {
				t.Fatal(err)
			}
			flash, err := NewFlash(w, geo, reader, FlashConfig{
				Policy: policy.SlidingWindow(v.window), Layout: v.lay})
			if err != nil {
				t.Fatal(err)
			}
			defer flash.Close()
			checkEqual(t, w, flash, v.threads, want)
		})
	}
}

// Masks that name more rows than are active cost time and change no value, and the true mask is
// still found.
func TestWiderMasksChangeNothing(t *testing.T) {
	e, want := memoryFlash(t, "", FlashConfig{Policy: policy.SlidingWindow(2),
		Layout: layout.Options{Coalesce: true}})
	seen := &recorded{}
	e.Observe(seen)
	for pos := range want.logits {
		var wide []mask.Mask
		for _, mask := range want.masks[pos] {
			wider := slices.Clone(mask)
			for i := range wider {
				wider[i] |= 0x8040201008040201 << (pos % 8)
			}
			wide = append(wide, wider)
		}
		logits, err := e.Forward(Token{Pos: pos, ID: want.ids[pos], Masks: wide})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(logits, want.logits[pos]) {
			t.Fatalf("position %d: logits differ", pos)
		}
		for l, mask := range seen.masks[pos] {
			if !slices.Equal(mask, want.masks[pos][l]) {
				t.Fatalf("position %d, layer %d: the true mask was not found", pos, l)
			}
		}
	}
}

func TestDenseIsTheSameForAnyThreads(t *testing.T) {
	a, b := recordDense(t, 1, 16), recordDense(t, 5, 16)
	for pos := range a.logits {
		if !slices.Equal(a.logits[pos], b.logits[pos]) {
			t.Fatalf("position %d: logits differ between 1 and 5 threads", pos)
		}
	}
}

// memoryFlash is a Flash engine over the bundles in memory, with a fault script if wanted.
func memoryFlash(t *testing.T, script string, cfg FlashConfig) (*Engine, *recorded) {
	t.Helper()
	w, bundles, geo := tales(t)
	var reader flashio.Reader = flashio.NewMem(slices.Concat(bundles...))
	if script != "" {
		var err error
		if reader, err = flashio.WithFaults(reader, script); err != nil {
			t.Fatal(err)
		}
	}
	flash, err := NewFlash(w, geo, reader, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { flash.Close() })
	e, err := New(w, flash, Config{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e, recordDense(t, 1, 12)
}

// A failing read is an error that says where, never a wrong logit.
func TestReadErrorsStopTheToken(t *testing.T) {
	e, want := memoryFlash(t, "eio at read 400", FlashConfig{Policy: policy.SlidingWindow(2)})
	var failed error
	for pos := range want.logits {
		if _, failed = e.Forward(Token{Pos: pos, ID: want.ids[pos],
			Masks: want.masks[pos]}); failed != nil {
			break
		}
	}
	if failed == nil || !strings.Contains(failed.Error(), "layer") ||
		!strings.Contains(failed.Error(), "position") {
		t.Fatalf("error %v does not say where", failed)
	}
}

// Invariant 9: memory never exceeds the stated budget.
func TestRowCacheTooSmall(t *testing.T) {
	capacity := make([]int, 6)
	e, want := memoryFlash(t, "", FlashConfig{Policy: policy.SlidingWindow(2), Capacity: capacity})
	_, err := e.Forward(Token{ID: want.ids[0], Masks: want.masks[0]})
	if err == nil || !strings.Contains(err.Error(), "rows") {
		t.Fatalf("a cache of no rows gave %v", err)
	}
}

func TestForwardRefuses(t *testing.T) {
	e, want := memoryFlash(t, "", FlashConfig{})
	for name, token := range map[string]Token{
		"position out of order": {Pos: 3, Masks: want.masks[0]},
		"id beyond vocabulary":  {ID: 1 << 30, Masks: want.masks[0]},
		"no masks":              {ID: 2},
	} {
		if _, err := e.Forward(token); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	w, _, _ := tales(t)
	if _, err := New(w, &Resident{}, Config{Schedule: "tomorrow"}); !errors.Is(err,
		schedule.ErrSpec) {
		t.Errorf("a schedule that there is not: %v", err)
	}
	if _, err := New(w, &Resident{}, Config{Context: 1 << 20}); err == nil {
		t.Error("a context beyond the model's gave no error")
	}
}

package cuda_test

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/engine"
	"github.com/windrow-sim/windrow/engine/cuda"
	"github.com/windrow-sim/windrow/internal/decisions/policy"
	"github.com/windrow-sim/windrow/internal/decisions/schedule"
	"github.com/windrow-sim/windrow/internal/mask"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/kernels/cpu"
	kernels "github.com/windrow-sim/windrow/kernels/cuda"
)

// TestStepsOfSeveralTokens runs sequences side by side, prompts in chunks, dense and with the masks
// of each token from flash: the bits of single tokens. Then a sequence goes back, as after a
// rejected draft.
func TestStepsOfSeveralTokens(t *testing.T) { cuda.EachDriver(t, testStepsOfSeveralTokens) }

func testStepsOfSeveralTokens(t *testing.T, on *cuda.TestDriver) {
	for _, name := range []string{"opt", "mistral-window", "falcon-40b", "persimmon"} {
		t.Run(name, func(t *testing.T) {
			m := pack(t, on, filepath.Join(familiesDir, name), nil)
			const sequences, length, chunk = 3, 6, 2
			cfg := engine.Config{Context: length, Sequences: sequences, Batch: sequences * chunk,
				Backend: m.backend(t)}
			e := made(t, m, m.resident(t), cfg)
			var alone []*seen
			for i := range sequences {
				alone = append(alone, run(t, e, []uint32{uint32(7 + 11*i), 30, uint32(50 + i), 9,
					12, uint32(70 - i)}, length, nil))
			}
			together(t, "dense", e, alone, chunk, false)
			e.Close()
			rows := m.flash(t, engine.FlashConfig{Policy: policy.SlidingWindow(1),
				Store: cfg.Backend.(*cuda.Backend)})
			defer rows.Close()
			e = made(t, m, rows, cfg)
			defer e.Close()
			together(t, "from flash", e, alone, chunk, true)
		})
	}
}

// together runs all sequences in steps of chunk tokens each, and the last step twice.
func together(t *testing.T, what string, e *engine.Engine, alone []*seen, chunk int, masked bool) {
	t.Helper()
	e.Observe(nil)
	e.Reset()
	length := len(alone[0].logits)
	step := func(from int) {
		t.Helper()
		var tokens []engine.Token
		for slot, want := range alone {
			for pos := from; pos < from+chunk; pos++ {
				token := engine.Token{SeqID: slot, Pos: pos, ID: want.ids[pos]}
				if masked {
					token.Masks = want.masks[pos]
				}
				tokens = append(tokens, token)
			}
		}
		logits, err := e.Step(tokens)
		if err != nil {
			t.Fatal(err)
		}
		for i, token := range tokens {
			if !slices.Equal(logits[i], alone[token.SeqID].logits[token.Pos]) {
				t.Fatalf("%s: sequence %d, position %d: the logits are not those of a single token",
					what, token.SeqID, token.Pos)
			}
		}
	}
	for from := 0; from < length; from += chunk {
		step(from)
	}
	for slot := range alone {
		e.Rewind(slot, length-chunk)
	}
	step(length - chunk)
}

// told is a perfect predictor: it predicts recorded masks, token by token.
type told struct {
	masks [][]mask.Mask
	pos   int
	ahead int // it predicts the masks of so many layers later
}

func (p *told) Predict(layer int, input []float32, need mask.Mask) error {
	copy(need, p.masks[p.pos][layer+p.ahead])
	return nil
}

func (p *told) PredictToken(_ []float32, masks []mask.Mask) error {
	for l := 1; l < len(masks); l++ {
		copy(masks[l], p.masks[p.pos][l])
	}
	return nil
}

// truths compares Check's true masks with the active units, which are the same with perfect
// predictors.
type truths struct{ layers, wrong int }

func (c *truths) Layer(ev *engine.LayerEvent) error {
	c.layers++
	if !slices.Equal(ev.True, ev.Active) {
		c.wrong++
	}
	return nil
}

func (c *truths) Token(*engine.TokenEvent) error { return nil }

// TestPredictorsAndSchedules lets predictors that know name the rows, from flash and in memory,
// under every schedule, with reads in the background.
func TestPredictorsAndSchedules(t *testing.T) { cuda.EachDriver(t, testPredictorsAndSchedules) }

func testPredictorsAndSchedules(t *testing.T, on *cuda.TestDriver) {
	m := pack(t, on, filepath.Join(familiesDir, "llama-relu"), nil)
	const positions = 8
	b := m.backend(t)
	e := made(t, m, m.resident(t), engine.Config{Context: positions, Backend: b})
	want := run(t, e, []uint32{5, 40, 17}, positions, nil)
	e.Close()
	for _, when := range []schedule.Kind{schedule.Demand, schedule.LookAhead,
		schedule.Token} {
		for _, flash := range []bool{false, true} {
			var rows engine.Rows = m.resident(t)
			if flash {
				rows = m.flash(t, engine.FlashConfig{Policy: policy.SlidingWindow(2),
					Dense: m.bundles[:1], Store: b,
					Prefetch: 16 << 10})
			}
			now, next := &told{masks: want.masks}, &told{masks: want.masks, ahead: 1}
			count := &truths{}
			e := made(t, m, rows, engine.Config{Context: positions, Backend: b, Schedule: when,
				Check: m.resident(t), Observer: count,
				Predictors: func(*cpu.Pool) (engine.Predictors, error) {
					return engine.Predictors{Layer: now, LookAhead: next, Token: now}, nil
				}})
			for pos := range positions {
				now.pos, next.pos = pos, pos
				logits, err := e.Forward(engine.Token{Pos: pos, ID: want.ids[pos]})
				if err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(logits, want.logits[pos]) {
					t.Fatalf("schedule %v, from flash %v: position %d has other logits", when,
						flash, pos)
				}
			}
			if count.wrong != 0 || count.layers != positions*m.w.Shape.Layers {
				t.Errorf("schedule %v, from flash %v: %d of %d true masks are wrong", when,
					flash, count.wrong, count.layers)
			}
			e.Close()
			if err := rows.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestPoliciesMoveRows runs policies that keep little and evict much from caches that are just
// large enough: dense bits, and the CPU's counters.
func TestPoliciesMoveRows(t *testing.T) { cuda.EachDriver(t, testPoliciesMoveRows) }

func testPoliciesMoveRows(t *testing.T, on *cuda.TestDriver) {
	m := pack(t, on, filepath.Join(familiesDir, "opt"), nil)
	const positions = 12
	b := m.backend(t)
	e := made(t, m, m.resident(t), engine.Config{Context: positions, Backend: b})
	want := run(t, e, []uint32{5, 40, 17}, positions, nil)
	e.Close()
	for _, text := range []string{"none", "window:1", "delta:20", "lru:30"} {
		spec, err := policy.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		for _, when := range []schedule.Kind{schedule.Demand, schedule.Token} {
			var counts [2][][5]int
			for i, store := range []engine.Store{nil, b} {
				cfg := engine.FlashConfig{Policy: spec, Store: store}
				if when == schedule.Token {
					cfg.Dense = m.bundles[:1]
				}
				rows := m.flash(t, cfg)
				cfgEngine := engine.Config{Context: positions, Schedule: when}
				if store != nil {
					cfgEngine.Backend = b
				}
				e := made(t, m, rows, cfgEngine)
				got := run(t, e, want.ids[:positions], positions, want.masks)
				unseen(t, e, want)
				e.Close()
				if err := rows.Close(); err != nil {
					t.Error(err)
				}
				if counts[i] = got.counts; store == nil {
					continue
				}
				for pos := range want.logits {
					if !slices.Equal(got.logits[pos], want.logits[pos]) {
						t.Fatalf("%s, schedule %v: position %d has other logits", text, when,
							pos)
					}
				}
			}
			if !slices.Equal(counts[0], counts[1]) {
				t.Errorf("%s, schedule %v: the counters are not the CPU's", text, when)
			}
		}
	}
}

// unseen runs recorded tokens without an observer. An observer would make the host wait for rows
// before they are used; without one only events keep the order.
func unseen(t *testing.T, e *engine.Engine, want *seen) {
	t.Helper()
	e.Observe(nil)
	e.Reset()
	for pos := range want.logits {
		logits, err := e.Forward(engine.Token{Pos: pos, ID: want.ids[pos], Masks: want.masks[pos]})
		if err != nil {
			t.Fatal(err)
		}
		if argmax(logits) != want.ids[pos+1] && pos >= 2 {
			t.Fatalf("position %d, without an observer: token %d, want %d", pos, argmax(logits),
				want.ids[pos+1])
		}
	}
}

// TestCutsAreTheCPUs drops small values.
func TestCutsAreTheCPUs(t *testing.T) { cuda.EachDriver(t, testCutsAreTheCPUs) }

func testCutsAreTheCPUs(t *testing.T, on *cuda.TestDriver) {
	m := pack(t, on, filepath.Join(familiesDir, "llama"), nil)
	const positions = 4
	cut := make([]float32, m.w.Shape.Layers)
	for l := range cut {
		cut[l] = 2e-2 * float32(l+1)
	}
	e := made(t, m, m.resident(t), engine.Config{Context: positions, Thresholds: cut})
	want := run(t, e, []uint32{5, 40}, positions, nil)
	e.Close()
	e = made(t, m, m.resident(t), engine.Config{Context: positions, Thresholds: cut,
		Backend: m.backend(t)})
	defer e.Close()
	near(t, "cut", run(t, e, []uint32{5, 40}, positions, nil), want, false)
	for at, values := range want.values {
		if len(values) == m.w.Shape.DFFN {
			t.Errorf("layer %d: nothing was cut", at)
		}
	}
}

// TestRefuses: parts that do not belong together are refused before anything runs.
func TestRefuses(t *testing.T) { cuda.EachDriver(t, testRefuses) }

func testRefuses(t *testing.T, on *cuda.TestDriver) {
	m, other := pack(t, on, filepath.Join(familiesDir, "opt"), nil),
		pack(t, on, filepath.Join(familiesDir, "phi-relu"), nil)
	b := m.backend(t)
	refused := func(what string, rows engine.Rows, w *loaded, cfg engine.Config, text string) {
		t.Helper()
		if _, err := engine.New(w.w, rows, cfg); err == nil || !strings.Contains(err.Error(),
			text) {
			t.Errorf("%s: %v, want %q", what, err, text)
		}
	}
	here := m.flash(t, engine.FlashConfig{Policy: policy.SlidingWindow(1)})
	refused("rows in main memory", here, m, engine.Config{Backend: b}, "FlashConfig.Store")
	here.Close()
	refused("another model", other.resident(t), other, engine.Config{Backend: b}, "another model")
	there := m.flash(t, engine.FlashConfig{Policy: policy.SlidingWindow(1), Store: b})
	refused("rows on a device", there, m, engine.Config{}, "FlashConfig.Store")
	if _, err := b.Cache(0, 4); err == nil || !strings.Contains(err.Error(), "already") {
		t.Errorf("a second cache of a layer: %v", err)
	}
	if _, err := b.Cache(99, 4); err == nil {
		t.Error("a cache of a layer that there is not was made")
	}
	there.Close()
	e := made(t, m, m.resident(t), engine.Config{Context: 4, Backend: b})
	defer e.Close()
	refused("a second engine", m.resident(t), m, engine.Config{Backend: b}, "already")
}

// TestBudget: device memory never exceeds the budget.
func TestBudget(t *testing.T) { cuda.EachDriver(t, testBudget) }

func testBudget(t *testing.T, on *cuda.TestDriver) {
	m := pack(t, on, filepath.Join(familiesDir, "opt"), nil)
	var need units.Bytes
	t.Run("measure", func(t *testing.T) { need = m.backend(t).Bytes() })
	for _, c := range []struct {
		name  string
		extra units.Bytes
		where string
	}{{"no room for weights", -1, "new"}, {"no room for activations", 1024, "engine"}} {
		t.Run(c.name, func(t *testing.T) {
			b, err := cuda.New(on.Device(t), m.w, cuda.Options{Memory: need + c.extra})
			if c.where == "new" {
				if !errors.Is(err, cuda.ErrBudget) || leastOf(t, err) < need ||
					leastOf(t, err) > need+need/100 {
					t.Errorf("%v: want the budget and %v or little more", err, need)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer b.Close()
			if _, err := engine.New(m.w, m.resident(t), engine.Config{Backend: b}); err == nil ||
				!strings.Contains(err.Error(), kernels.ErrMemory.Error()) {
				t.Errorf("%v: want ErrMemory", err)
			} else if floor := leastOf(t, err); floor <= need {
				t.Errorf("%v: weights alone are %v", err, need)
			} else {
				enough(t, m, floor)
			}
			if b.Bytes() != need {
				t.Errorf("%v are in use after the refusal, %v before", b.Bytes(), need)
			}
		})
	}
}

// leastOf is the floor that a refusal names.
func leastOf(t *testing.T, err error) units.Bytes {
	t.Helper()
	_, rest, _ := strings.Cut(err.Error(), "and ")
	text, _, _ := strings.Cut(rest, " are needed at least")
	least, parsed := units.ParseBytes(text)
	if parsed != nil {
		t.Fatalf("%v names no floor", err)
	}
	return least
}

// enough runs a dense engine in so much device memory, and refuses two percent less: texts are
// rounded.
func enough(t *testing.T, m *loaded, budget units.Bytes) {
	t.Helper()
	for _, less := range []units.Bytes{budget / 50, 0} {
		b, err := cuda.New(m.on.Device(t), m.w, cuda.Options{Memory: budget - less})
		if err != nil {
			t.Fatal(err)
		}
		e, err := engine.New(m.w, m.resident(t), engine.Config{Backend: b})
		if (err == nil) != (less == 0) {
			t.Errorf("with %v: %v", budget-less, err)
		}
		if err == nil {
			e.Close()
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestSmallCacheIsSaid: rows that there is no room for are an error, not wrong logits.
func TestSmallCacheIsSaid(t *testing.T) { cuda.EachDriver(t, testSmallCacheIsSaid) }

func testSmallCacheIsSaid(t *testing.T, on *cuda.TestDriver) {
	m := pack(t, on, filepath.Join(familiesDir, "opt"), nil)
	b := m.backend(t)
	rows := m.flash(t, engine.FlashConfig{Policy: policy.SlidingWindow(1), Store: b,
		Capacity: make([]int,
			m.w.Shape.Layers)})
	defer rows.Close()
	e := made(t, m, rows, engine.Config{Context: 4, Backend: b})
	defer e.Close()
	need := mask.New(m.w.Shape.DFFN)
	need[0] = 5
	masks := slices.Repeat([]mask.Mask{need}, m.w.Shape.Layers)
	if _, err := e.Forward(engine.Token{ID: 5, Masks: masks}); err == nil ||
		!strings.Contains(err.Error(), "rows are wanted") {
		t.Errorf("%v: want the number of rows", err)
	}
}

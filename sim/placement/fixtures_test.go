package placement

import (
	"math/rand/v2"
	"testing"

	"github.com/windrow-sim/windrow/devicemodels"
	"github.com/windrow-sim/windrow/internal/decisions/policy"
	"github.com/windrow-sim/windrow/internal/mask"
	"github.com/windrow-sim/windrow/sim"
	"github.com/windrow-sim/windrow/traces"
	"github.com/windrow-sim/windrow/traces/synth"
)

const recordBytes = 16384

// traceOf is a trace of one layer whose tokens need the given units, in sequences of so many
// tokens.
func traceOf(perLayer, sequence int, needs [][]uint32) *traces.Memory {
	m := &traces.Memory{Head: traces.Header{
		Layers: 1, Units: perLayer, UnitBytes: recordBytes, Shape: traces.Shape{DModel: 4096,
			Layers: 1, DFFN: perLayer, Rows: 2, DTypeSize: 2},
	}}
	for i, list := range needs {
		need := mask.New(perLayer)
		need.SetList(list)
		m.List = append(m.List, traces.Token{Seq: uint32(i / sequence), Pos: uint32(i % sequence),
			Phase: traces.Decode, Active: []mask.Mask{need}})
	}
	return m
}

// cliques is a trace of tokens that each need some whole cliques. The members of a clique are
// scattered; who is in which is returned as well.
func cliques(random *rand.Rand, count, size, tokens, active int) (m *traces.Memory, of []int) {
	of = make([]int, count*size)
	groups := make([][]uint32, count)
	for i, u := range random.Perm(count * size) {
		of[u] = i / size
		groups[i/size] = append(groups[i/size], uint32(u))
	}
	var needs [][]uint32
	for range tokens {
		var list []uint32
		for _, g := range random.Perm(count)[:active] {
			list = append(list, groups[g]...)
		}
		needs = append(needs, list)
	}
	return traceOf(count*size, tokens, needs), of
}

// popular is a trace whose units are independent: a few are needed by nearly all tokens, the others
// seldom.
func popular(random *rand.Rand, perLayer, hot, tokens int) *traces.Memory {
	var needs [][]uint32
	for range tokens {
		var list []uint32
		for u := range uint32(perLayer) {
			p := 0.05
			if u%uint32(perLayer/hot) == 3 {
				p = 0.95
			}
			if random.Float64() < p {
				list = append(list, u)
			}
		}
		needs = append(needs, list)
	}
	return traceOf(perLayer, tokens, needs)
}

func synthetic(t *testing.T, sequences, tokens int) *traces.Memory {
	t.Helper()
	m, err := synth.Collect(t.Context(), synth.Options{Like: "opt-6.7b", Layers: 2, Units: 2048,
		Sequences: sequences, Tokens: tokens, Seed: 42, Predicted: true})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// on is a configuration of a preset.
func on(t *testing.T, preset string, window int, gaps ...int) Config {
	t.Helper()
	d, err := devicemodels.Preset(preset)
	if err != nil {
		t.Fatal(err)
	}
	return Config{Sim: sim.Config{Policy: policy.SlidingWindow(window), Engine: "pread",
		Parallel: 32, Device: d},
		Gaps: gaps}
}

func compare(t *testing.T, src traces.Source, cfg Config) *Result {
	t.Helper()
	r, err := Run(t.Context(), src, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// row is the first row of a layout.
func row(t *testing.T, r *Result, layout string, joined bool) *Row {
	t.Helper()
	for i := range r.Rows {
		if r.Rows[i].Layout == layout && r.Rows[i].Joined == joined {
			return &r.Rows[i]
		}
	}
	t.Fatalf("no row of %s", layout)
	return nil
}

// about compares floating-point sums of whole numbers.
func about(a, b float64) bool { return a-b < 1e-6 && b-a < 1e-6 }

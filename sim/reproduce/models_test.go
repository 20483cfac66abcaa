package reproduce

import (
	"testing"

	"github.com/windrow-sim/windrow/internal/mask"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/traces"
)

func TestWeights(t *testing.T) {
	opt, err := modelOf("opt", "OPT-6.7B")
	if err != nil {
		t.Fatal(err)
	}
	if opt.attention != 32*4*4096*4096 || opt.ffn != 32*2*4096*16384 || opt.head != 50272*4096 ||
		opt.lookup != 0 || opt.moved() != opt.total {
		t.Errorf("OPT-6.7B: %+v", opt)
	}
	llama, err := modelOf("llama", "Llama-2-7B")
	if err != nil {
		t.Fatal(err)
	}
	if llama.lookup != 32000*4096 || llama.embedding != 2*llama.lookup ||
		llama.ffn != 32*3*4096*11008 {
		t.Errorf("Llama-2-7B: %+v", llama)
	}
}

func TestFriendsAndRuns(t *testing.T) {
	// Unit 0 is always active, unit 1 in three of four tokens, unit 3 in one; runs are {0,1} and
	// {0}, {3}.
	trace := &traces.Memory{Head: traces.Header{Layers: 1, Units: 16}}
	for _, word := range []uint64{0b0011, 0b0011, 0b0011, 0b1001} {
		trace.List = append(trace.List, traces.Token{Active: []mask.Mask{{word}},
			Predicted: []mask.Mask{{word}}})
	}
	friends := closest(trace, 1, 2)
	if friends[0] != (friend{75, 75}) || friends[1] != (friend{25, 25}) ||
		friends[2] != (friend{0, 0}) {
		t.Errorf("%+v", friends)
	}
	if got := meanRun(trace); got != 8.0/5 {
		t.Errorf("mean run %g, want 8 units in 5 runs", got)
	}
}

// Two tokens of two layers, with rows of 10 bytes: the evictions of a token take effect after it
// has computed.
func TestDigest(t *testing.T) {
	head := &traces.Header{Layers: 1, Units: 100, UnitBytes: 10}
	token := func(i uint32, misses, evictions uint32) []traces.RunRow {
		return []traces.RunRow{
			{Token: i, Part: traces.PartIO, Dur: 100, Bytes: units.Bytes(misses) * 10,
				Misses: misses},
			{Token: i, Part: traces.PartMemory, Bytes: 50, Evictions: evictions},
			{Token: i, Layer: traces.NoLayer, Part: traces.PartOther},
		}
	}
	run := &traces.Run{Rows: append(append(token(0, 8, 2), token(1, 3, 0)...), token(2, 1, 4)...)}
	m := digest(run, head, 1)
	if m.io != 100 || m.read != 20 || m.ffn != 1000 || len(m.byToken) != 3 {
		t.Errorf("%+v", m)
	}
	if m.resident != (90+100)/2 { // 8−2+3, and one more
		t.Errorf("%v resident, want 95 B", m.resident)
	}
}

package whatif

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/windrow-sim/windrow/internal/mask"
	"github.com/windrow-sim/windrow/traces"
)

// small is a trace of two sequences whose units are active in runs, some more than others. The last
// word of a mask is partly used.
func small(magnitudes bool) *traces.Memory {
	m := &traces.Memory{Head: traces.Header{SchemaVersion: traces.SchemaVersion,
		UnitKind: traces.Neuron, Layers: 3, Units: 150, Model: "small", HasMagnitude: magnitudes}}
	for i := range 240 {
		t := traces.Token{Seq: uint32(i / 120), Pos: uint32(i % 120), ID: uint32(i),
			Phase: traces.Decode}
		for l := range m.Head.Layers {
			active := mask.New(m.Head.Units)
			for u := range m.Head.Units {
				run := mix(uint64(l)<<48 + uint64(u)<<32 + uint64(i/(3+u%5)))
				if run%100 < uint64(4+8*l+u%7) {
					active.Set(uint32(u))
				}
			}
			t.Active = append(t.Active, active)
			if magnitudes {
				var codes []byte
				for u := range active.Each {
					codes = append(codes, byte(100+mix(uint64(i*1000)+uint64(u))%40))
				}
				t.Magnitude = append(t.Magnitude, codes)
			}
		}
		m.List = append(m.List, t)
	}
	return m
}

func apply(tb testing.TB, src traces.Source, opt Options) (traces.Source, Report) {
	tb.Helper()
	out, rep, err := Apply(src, opt)
	if err != nil {
		tb.Fatal(err)
	}
	return out, rep
}

// collect reads all tokens into memory of their own.
func collect(tb testing.TB, src traces.Source) *traces.Memory {
	tb.Helper()
	m := &traces.Memory{Head: *src.Header()}
	for i := range src.Tokens() {
		var t traces.Token
		if err := src.Token(i, &t); err != nil {
			tb.Fatal(err)
		}
		m.List = append(m.List, t)
	}
	return m
}

func equal(tb testing.TB, what string, want, got any) {
	tb.Helper()
	if d := cmp.Diff(want, got); d != "" {
		tb.Errorf("%s (-want +got):\n%s", what, d)
	}
}

// counted returns the share of active units of every layer, counted bit by bit.
func counted(m *traces.Memory) []float64 {
	shares := make([]float64, m.Head.Layers)
	for _, t := range m.List {
		for l, mask := range t.Active {
			shares[l] += float64(mask.Count()) / float64(m.Head.Units*len(m.List))
		}
	}
	return shares
}

func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// subset reports whether every unit of a is in b.
func subset(a, b []uint64) bool {
	for i := range a {
		if a[i]&^b[i] != 0 {
			return false
		}
	}
	return true
}

// nested fails unless the active (or predicted) units of every trace are among those of the next.
func nested(t *testing.T, masks func(*traces.Token) []mask.Mask, list ...*traces.Memory) {
	t.Helper()
	for k := range len(list) - 1 {
		for i := range list[k].List {
			for l := range list[k].Head.Layers {
				if !subset(masks(&list[k].List[i])[l], masks(&list[k+1].List[i])[l]) {
					t.Fatalf("trace %d, token %d, layer %d: not all units are in the next trace", k,
						i, l)
				}
			}
		}
	}
}

func activeOf(t *traces.Token) []mask.Mask    { return t.Active }
func predictedOf(t *traces.Token) []mask.Mask { return t.Predicted }

// failing is a source that fails at a token.
type failing struct {
	traces.Source
	at int
}

var errRead = errors.New("cannot read")

func (f failing) Token(i int, t *traces.Token) error {
	if i == f.at {
		return errRead
	}
	return f.Source.Token(i, t)
}

package answers

import (
	"context"
	"errors"
	"math"
	"reflect"
	"testing"

	"github.com/windrow-sim/windrow/devicemodels"
	"github.com/windrow-sim/windrow/devicemodels/flash"
	"github.com/windrow-sim/windrow/internal/decisions/layout"
	"github.com/windrow-sim/windrow/internal/mask"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/traces"
	"github.com/windrow-sim/windrow/traces/stats"
	"github.com/windrow-sim/windrow/traces/synth"
)

// latencyBound is a device whose reads all take 100 us, 32 at once, whatever their size, up to a
// link of 4 GB/s.
func latencyBound() *devicemodels.Device {
	return &devicemodels.Device{Name: "latency bound", Flash: flash.Spec{
		Servers: 32, LTFB: 100_000, LinkRate: 4_000_000_000, Align: 4096,
		Engines: map[string]flash.EngineCost{"pread": {}},
	}}
}

func question(t *testing.T) BreakEvenConfig {
	t.Helper()
	m, err := ModelLike("opt-6.7b")
	if err != nil {
		t.Fatal(err)
	}
	return BreakEvenConfig{Model: m, Device: latencyBound(), Engine: "pread", Parallel: 32,
		Budget: m.Bytes() / 2, Like: "opt-6.7b", Layers: 2, MostBatch: 8, Seed: 42}
}

// TestBreakEvenByHand: without coalescing 320,000 records per second of 16 KiB are 5.24 GB/s, more
// than the link, so that selective is slower once it reads more bytes; at 1 ms per read it is 0.524
// GB/s, and the share is the missing bytes times that over the link rate.
func TestBreakEvenByHand(t *testing.T) {
	for _, c := range []struct {
		ltfb units.Nanos
		rate float64 // of single records
	}{{100_000, 4e9}, {1_000_000, 32 * 16384 * 1e3 / (1 + 16384/4e6)}} {
		q := question(t)
		q.Device.Flash.LTFB, q.Tokens, q.MostBatch = c.ltfb, 1, 2
		b, err := FindBreakEven(context.Background(), q)
		if err != nil {
			t.Fatal(err)
		}
		sequential := float64(b.SequentialRate)
		want := float64(b.Missing) / sequential * c.rate / float64(q.Model.FFNBytes())
		if b.Share.Closed == nil || math.Abs(*b.Share.Closed/want-1) > 0.01 {
			t.Errorf("LTFB %v: closed form %v, by hand %g", c.ltfb, deref(b.Share.Closed), want)
		}
		if b.Share.Simulated == nil || math.Abs(*b.Share.Simulated/want-1) > 0.05 {
			t.Errorf("LTFB %v: simulated %v, by hand %g", c.ltfb, deref(b.Share.Simulated), want)
		}
		if math.Abs(b.HybridSim.Seconds()/b.HybridClosed.Seconds()-1) > 0.02 {
			t.Errorf("LTFB %v: hybrid takes %v in closed form and %v simulated", c.ltfb,
				b.HybridClosed, b.HybridSim)
		}
		// 35.48 % of the model is not FFN; the rest of its half holds 22.5 % of the rows.
		if math.Abs(b.Share.Fits-0.225) > 0.003 {
			t.Errorf("memory holds %g of the rows", b.Share.Fits)
		}
		if b.Share.WithCopies != nil || b.CopiesKnown {
			t.Error("row copies of a device without a host are not known")
		}
	}
}

func deref(v *float64) float64 {
	if v == nil {
		return math.NaN()
	}
	return *v
}

// TestBytesAreTheLimitOfAFastDevice: where small reads are as fast as large ones, break-even is
// where both read the same bytes, so that its share and the share that memory holds are all rows
// together, whatever the budget.
func TestBytesAreTheLimitOfAFastDevice(t *testing.T) {
	for _, percent := range []units.Bytes{45, 50, 70} {
		q := question(t)
		q.Device.Flash.LTFB, q.Budget = 1, q.Model.Bytes()*percent/100
		b, err := newBreaker(context.Background(), q)
		if err != nil {
			t.Fatal(err)
		}
		share, found, err := b.closedShare(0)
		if err != nil || !found || math.Abs(share+b.rowsFit()-1) > 0.005 {
			t.Errorf("%d %% in memory: break-even at %g, %v, %v; memory holds %g", percent, share,
				found, err, b.rowsFit())
		}
	}
}

// TestSelectiveEqualsHybridThere is invariant 2.
func TestSelectiveEqualsHybridThere(t *testing.T) {
	q := question(t)
	q.Device.Flash.LTFB, q.Layout.Coalesce, q.MostBatch = 1_000_000, true, 2
	b, err := newBreaker(context.Background(), q)
	if err != nil {
		t.Fatal(err)
	}
	out, err := FindBreakEven(context.Background(), q)
	if err != nil {
		t.Fatal(err)
	}
	at := func(share float64) float64 {
		curves, err := b.activity.at(share)
		if err != nil {
			t.Fatal(err)
		}
		return b.selective(curves, 0, 1)
	}
	s := *out.Share.Closed
	if r := at(s) / b.hybrid(); math.Abs(r-1) > 0.002 {
		t.Errorf("at a share of %g selective takes %g of hybrid", s, r)
	}
	if at(s-0.01) >= b.hybrid() || at(s+0.01) <= b.hybrid() {
		t.Errorf("selective is not faster below %g and slower above", s)
	}
	if !(math.Abs(deref(out.Share.Simulated)-s) < 0.03) {
		t.Errorf("closed form %g, simulated %g", s, deref(out.Share.Simulated))
	}
}

// TestSlowerSmallReadsLowerTheShare is metamorphic: a longer LTFB hurts records more than large
// reads, joined neighbours less than single ones, and more memory leaves hybrid less to read.
func TestSlowerSmallReadsLowerTheShare(t *testing.T) {
	closed := func(change func(q *BreakEvenConfig)) float64 {
		q := question(t)
		q.Device.Flash.LTFB = 400_000
		change(&q)
		b, err := newBreaker(context.Background(), q)
		if err != nil {
			t.Fatal(err)
		}
		share, found, err := b.closedShare(0)
		if err != nil || !found {
			t.Fatalf("found %v, %v", found, err)
		}
		return share
	}
	base := closed(func(*BreakEvenConfig) {})
	slower := closed(func(q *BreakEvenConfig) { q.Device.Flash.LTFB *= 2 })
	joined := closed(func(q *BreakEvenConfig) { q.Layout.Coalesce = true })
	more := closed(func(q *BreakEvenConfig) { q.Budget = q.Model.Bytes() * 6 / 10 })
	if !(slower < base && joined > base && more < base) {
		t.Errorf("share %g; with twice the LTFB %g, with joined reads %g, with more memory %g",
			base, slower, joined, more)
	}
}

// TestWindowHasNoBreakEvenButAMemory: what a window of 4 tokens misses is never as much as hybrid
// reads, since it holds nearly everything where much is active; what ends is the memory.
func TestWindowHasNoBreakEvenButAMemory(t *testing.T) {
	q := question(t)
	q.Window, q.Layers, q.Tokens, q.MostBatch = 4, 1, 1, 4
	b, err := FindBreakEven(context.Background(), q)
	if err != nil {
		t.Fatal(err)
	}
	w := b.ShareWindow
	if w.Closed != nil || w.Simulated != nil {
		t.Errorf("a break-even at %g and %g", deref(w.Closed), deref(w.Simulated))
	}
	e, err := synth.Expect(synth.Options{Like: "opt-6.7b", Tokens: 1, ActiveShare: w.Fits})
	if err != nil {
		t.Fatal(err)
	}
	if math.Abs(e.ActiveSAgg[5]-0.225) > 0.005 || w.Fits >= b.Share.Fits {
		t.Errorf("memory holds a share of %g, whose window of 4 tokens has %g of the rows; the "+
			"budget has room for 0.225", w.Fits, e.ActiveSAgg[5])
	}
	if b.BatchWindow.Fits > b.Batch.Fits {
		t.Errorf("memory holds a batch of %g with a window and of %g without", b.BatchWindow.Fits,
			b.Batch.Fits)
	}
}

// TestBatchOfTheClosedForm: with units alike, B sequences at a share s need 1−(1−s)^B of them.
func TestBatchOfTheClosedForm(t *testing.T) {
	q := question(t)
	q.Device.Flash.LTFB, q.Share, q.MostBatch = 1_000_000, 0.03, 16
	b, err := FindBreakEven(context.Background(), q)
	if err != nil {
		t.Fatal(err)
	}
	want := math.Log1p(-*b.Share.Closed) / math.Log1p(-0.03) // layers differ, so about
	if got := deref(b.Batch.Closed); math.Abs(got-want) > 1 {
		t.Errorf("batch %g, by hand %g", got, want)
	}
	if got := deref(b.Batch.Simulated); !(got >= deref(b.Batch.Closed)) {
		t.Errorf("simulated batch %g below that of the closed form %g: popular units make "+
			"unions smaller", got, deref(b.Batch.Closed))
	}
}

// TestMeasuredReuse takes the curve of a trace; at the trace's own share it must be the trace's.
func TestMeasuredReuse(t *testing.T) {
	m := synthetic(t, synth.Options{Layers: 3, Tokens: 24})
	s, err := stats.Compute(m, stats.Options{})
	if err != nil {
		t.Fatal(err)
	}
	q := question(t)
	q.Model, q.Measured, q.Window = ModelOf(&m.Head), s, 4
	a, err := newActivity(t.Context(), &q)
	if err != nil {
		t.Fatal(err)
	}
	own, err := a.ownShare()
	if err != nil || math.Abs(own-s.Total.Active.Mean) > 1e-9 {
		t.Fatalf("share %g, %v; the trace has %g", own, err, s.Total.Active.Mean)
	}
	same, err := a.at(own * (1 + 1e-9))
	if err != nil {
		t.Fatal(err)
	}
	double, err := a.at(2 * own)
	if err != nil {
		t.Fatal(err)
	}
	for k := 1; k <= 20; k++ {
		want := s.Total.Window.SAgg[k] / float64(s.Units)
		if math.Abs(mean(same, k)-want) > 1e-4 {
			t.Errorf("s_agg(%d) = %g, the trace has %g", k, mean(same, k), want)
		}
		if d := mean(double, k); d <= want || d > 2*want*(1+1e-9) {
			t.Errorf("at twice the share s_agg(%d) = %g, at the trace's own %g", k, d, want)
		}
	}
	if math.Abs(mean(double, 1)-2*own) > 1e-6 {
		t.Errorf("asked for a share of %g, got %g", 2*own, mean(double, 1))
	}
	q.Window = 30
	if _, err := newActivity(t.Context(), &q); !errors.Is(err, ErrInput) {
		t.Errorf("a window longer than the trace: %v", err)
	}
}

func TestUnion(t *testing.T) {
	m := &traces.Memory{Head: traces.Header{Units: 64, Layers: 1, HasPredicted: true}}
	for seq, masks := range [][]uint64{{1, 2, 4}, {8, 16}, {32, 64, 128}} {
		for pos, word := range masks {
			m.List = append(m.List, traces.Token{Seq: uint32(seq), Pos: uint32(pos),
				Active: []mask.Mask{{word}}})
		}
	}
	for n, want := range map[int][]uint64{1: {1, 2, 4}, 2: {9, 18}, 3: {41, 82}} {
		u := union(m, n)
		var got []uint64
		for i := range u.List {
			got = append(got, u.List[i].Active[0][0])
		}
		if !reflect.DeepEqual(got, want) || u.Head.HasPredicted {
			t.Errorf("union of %d: %v, want %v", n, got, want)
		}
	}
	if m.List[0].Active[0][0] != 1 {
		t.Error("the union changed the trace")
	}
}

// TestModelWithoutPublishedShare works with a given one.
func TestModelWithoutPublishedShare(t *testing.T) {
	q := question(t)
	var err error
	if q.Model, err = ModelLike("relullama-7b"); err != nil {
		t.Fatal(err)
	}
	q.Like, q.Budget, q.Layers, q.Tokens, q.MostBatch = "relullama-7b", q.Model.Bytes()/2, 1, 1, 1
	if _, err = FindBreakEven(context.Background(), q); !errors.Is(err, ErrInput) {
		t.Errorf("without a share: %v", err)
	}
	q.Share = 0.1
	if b, err := FindBreakEven(context.Background(), q); err != nil || b.ActiveShare != 0.1 {
		t.Errorf("%+v, %v", b, err)
	}
}

func TestBreakEvenRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		change func(q *BreakEvenConfig)
		kind   error
	}{
		"everything fits": {func(q *BreakEvenConfig) { q.Budget = q.Model.Bytes() },
			ErrInput},
		"no device":          {func(q *BreakEvenConfig) { q.Device = nil }, ErrInput},
		"an endless window":  {func(q *BreakEvenConfig) { q.Window = stats.MaxWindow }, ErrInput},
		"no reads in flight": {func(q *BreakEvenConfig) { q.Parallel = 0 }, ErrInput},
		"a gap": {func(q *BreakEvenConfig) {
			q.Layout = layout.Options{
				Coalesce: true, Gap: 1}
		}, ErrInput},
		"nearly everything active": {func(q *BreakEvenConfig) { q.Share = 0.95 }, ErrInput},
		"an unknown process":       {func(q *BreakEvenConfig) { q.Like = "nobody" }, ErrInput},
	} {
		q := question(t)
		c.change(&q)
		if _, err := FindBreakEven(context.Background(), q); !errors.Is(err, c.kind) {
			t.Errorf("%s: %v", name, err)
		}
	}
	q := question(t)
	q.Budget = units.GiB
	b, err := FindBreakEven(context.Background(), q)
	if err != nil || b.Fits || b.Resident <= b.Budget || (&BreakEvens{[]*BreakEven{b}}).No() == "" {
		t.Errorf("less than what stays: %+v, %v", b, err)
	}
}

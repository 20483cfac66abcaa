package answers_test

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/devicemodels"
	"github.com/windrow-sim/windrow/devicemodels/flash"
	"github.com/windrow-sim/windrow/internal/decisions/layout"
	"github.com/windrow-sim/windrow/internal/decisions/policy"
	"github.com/windrow-sim/windrow/internal/mask"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/sim"
	"github.com/windrow-sim/windrow/sim/answers"
	"github.com/windrow-sim/windrow/traces"
	"github.com/windrow-sim/windrow/traces/batch"
	"github.com/windrow-sim/windrow/traces/synth"
)

// plainDevice serves one read at a time: 3 µs and a microsecond for every 4096 bytes. Its host
// takes time for keys and values alone.
func plainDevice() *devicemodels.Device {
	return &devicemodels.Device{
		Name: "plain",
		Flash: flash.Spec{
			Servers: 1, LTFB: 3 * units.Microsecond, ServerRate: 4_096_000_000, Align: 4096,
			Engines: map[string]flash.EngineCost{"pread": {}},
		},
		Host: devicemodels.Host{Cores: 1, KVRate: 1_000_000_000},
	}
}

// oneEach is a trace of 64 tokens in sequences of the given length, each of which needs one unit of
// 64 that no other does.
func oneEach(sequence int) *traces.Memory {
	m := &traces.Memory{Head: traces.Header{Layers: 1, Units: 64, UnitBytes: 4096,
		Shape: traces.Shape{KVHeads: 1, HeadDim: 125}}}
	for i := range 64 {
		m.List = append(m.List, traces.Token{Seq: uint32(i / sequence), Pos: uint32(i % sequence),
			Phase: traces.Decode, Active: []mask.Mask{{1 << i}}})
	}
	return m
}

func run(t *testing.T, src traces.Source, cfg answers.BatchConfig) *answers.Batches {
	t.Helper()
	stream, err := batch.NewStream(src)
	if err != nil {
		t.Fatal(err)
	}
	r, err := answers.SimulateBatches(t.Context(), stream, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func config(d *devicemodels.Device, window int, sizes ...int) answers.BatchConfig {
	return answers.BatchConfig{Sim: sim.Config{Policy: policy.SlidingWindow(window),
		Engine: "pread", Parallel: 32,
		Device: d}, Sizes: sizes, AtLeast: 1}
}

func upTo(n int) (sizes []int) {
	for b := range n {
		sizes = append(sizes, b+1)
	}
	return sizes
}

// Every read costs 4 µs, and reading all 64 units at once 67 µs: the 17th read is one too many.
func TestStopsPayingByHand(t *testing.T) {
	r := run(t, oneEach(64), config(plainDevice(), 0, upTo(64)...))
	if r.StopsAt != 17 || r.StopsResident != 17 || r.FFNRead != 67*units.Microsecond ||
		r.FFNBytes != 64*4096 {
		t.Errorf("stops at %d and %d; %v are read in %v", r.StopsAt, r.StopsResident, r.FFNBytes,
			r.FFNRead)
	}
	for _, row := range r.Rows {
		b := units.Nanos(row.Size)
		if row.IO != 4*units.Microsecond || row.Requests != 1 || row.Bytes != 4096 ||
			math.Abs(row.Needed-float64(b)/64) > 1e-12 || row.Resident != 0 {
			t.Errorf("%+v", row)
		}
		if whole := row.Hybrid - row.Compute; (whole*b - 67*units.Microsecond).Seconds() > 64e-9 {
			t.Errorf("batch of %d: hybrid reads for %v", row.Size, whole)
		}
		if row.Flash != row.Decide+row.IO+row.Memory+row.Compute {
			t.Errorf("the parts do not add up: %+v", row)
		}
	}
}

// With a window of two steps, 2·B units stay between steps, and the hybrid reads the rest.
func TestHybridWithTheSameMemory(t *testing.T) {
	r := run(t, oneEach(64), config(plainDevice(), 2, 1, 2, 4, 8, 16, 32, 64))
	for _, row := range r.Rows {
		if row.Size > 16 { // two steps or one: the window never fills
			if row.Warm != 0 || row.Flash != 0 || row.Hybrid != 0 {
				t.Errorf("%+v", row)
			}
			continue
		}
		if row.Warm != row.Steps-2 || row.Resident != float64(row.Size)*2/64 {
			t.Errorf("%d of %d steps are warm, %g resident: %+v", row.Warm, row.Steps, row.Resident,
				row)
		}
		want := 67e3 * (1 - row.Resident) / float64(row.Size)
		if got := float64(row.HybridResident - row.Compute); math.Abs(got-want) > 1 {
			t.Errorf("batch of %d: the hybrid reads for %g ns, want %g", row.Size, got, want)
		}
	}
	// A read costs 4 µs. Of 67 µs, three quarters for 8 sequences are more, half for 16 are less.
	if r.NotWarm != 2 || r.StopsAt != 0 || r.StopsResident != 16 {
		t.Errorf("%d sizes are not warm, flash stops at %d and %d", r.NotWarm, r.StopsAt,
			r.StopsResident)
	}
}

// Every sequence reads its own keys and values: 1000 bytes, a microsecond, for every position up to
// its own.
func TestKeysAndValuesOfAllSequences(t *testing.T) {
	for _, row := range run(t, oneEach(16), config(plainDevice(), 0, 1, 4, 64)).Rows {
		if want := units.Nanos(8500); row.Compute != want { // mean of 1 … 16 µs
			t.Errorf("batch of %d: keys and values take %v for a token, want %v", row.Size,
				row.Compute, want)
		}
	}
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

func preset(t *testing.T) *devicemodels.Device {
	t.Helper()
	d, err := devicemodels.Preset("m1-max")
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// A batch of one is a simulation of the trace.
func TestBatchOfOneIsSim(t *testing.T) {
	m := synthetic(t, 1, 24)
	for _, predicted := range []bool{false, true} {
		cfg := config(preset(t), 0, 1)
		cfg.Sim.Predicted, cfg.Sim.Layout = predicted, layout.Options{Coalesce: true}
		alone, err := sim.Run(t.Context(), m, cfg.Sim)
		if err != nil {
			t.Fatal(err)
		}
		row, total := run(t, m, cfg).Rows[0], alone.Meta.Totals
		if d := row.Flash - total.Wall/24; d < -4 || d > 4 { // four parts are rounded
			t.Errorf("predicted %v: %v for a token, sim says %v", predicted, row.Flash,
				total.Wall/24)
		}
		if row.Bytes != float64(total.Bytes)/24 || row.Requests != float64(total.Requests)/24 ||
			row.Steps != 24 {
			t.Errorf("predicted %v: %+v, sim says %+v", predicted, row, total)
		}
	}
}

// A larger batch shares more: fewer bytes for each token, and less time for what all share.
func TestMonotone(t *testing.T) {
	m := synthetic(t, 16, 16)
	for _, atLeast := range []int{1, 2} {
		cfg := config(preset(t), 0, 2, 4, 8, 16, 32, 64)
		cfg.AtLeast, cfg.Sim.Layout = atLeast, layout.Options{Coalesce: true}
		r := run(t, m, cfg)
		for i, row := range r.Rows[1:] {
			last := r.Rows[i]
			if row.Needed < last.Needed || row.Compute > last.Compute || row.Hybrid > last.Hybrid {
				t.Errorf("at least %d: %+v after %+v", atLeast, row, last)
			}
			if atLeast == 1 && (row.Bytes > last.Bytes || row.IO > last.IO) {
				t.Errorf("a batch of %d reads %g for each token, of %d %g", row.Size, row.Bytes,
					last.Size, last.Bytes)
			}
		}
	}
}

func TestDeterministic(t *testing.T) {
	m, cfg := synthetic(t, 3, 20), config(preset(t), 1, 1, 3, 20)
	var want string
	for range 2 {
		got, err := json.Marshal(run(t, m, cfg))
		if err != nil {
			t.Fatal(err)
		}
		if want == "" {
			want = string(got)
		}
		if string(got) != want {
			t.Errorf("%s\nthen\n%s", want, got)
		}
	}
}

func TestErrors(t *testing.T) {
	stream, err := batch.NewStream(oneEach(64))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		want, says string
		change     func(*answers.BatchConfig)
	}{
		{"sizes", "must ascend", func(c *answers.BatchConfig) { c.Sizes = []int{2, 1} }},
		{"no sizes", "every step needs a token of each", func(c *answers.BatchConfig) {
			c.Sizes = nil
		}},
		{"too large", "every step needs a token of each", func(c *answers.BatchConfig) {
			c.Sizes = []int{65}
		}},
		{"at least 0", "1 to 4 are possible", func(c *answers.BatchConfig) { c.AtLeast = 0 }},
		{"fewer than asked for", "no units of at least 2", func(c *answers.BatchConfig) {
			c.AtLeast = 2
		}},
		{"no predicted masks", "no predicted masks", func(c *answers.BatchConfig) {
			c.Sim.Predicted = true
		}},
		{"unknown engine", "engine", func(c *answers.BatchConfig) { c.Sim.Engine = "abacus" }},
	} {
		cfg := config(plainDevice(), 0, 1, 2)
		c.change(&cfg)
		_, err := answers.SimulateBatches(t.Context(), stream, cfg)
		if err == nil || !strings.Contains(err.Error(), c.says) ||
			!errors.Is(err, answers.ErrInput) && !errors.Is(err, sim.ErrConfig) {
			t.Errorf("%s: error %v, want %q", c.want, err, c.says)
		}
	}
}

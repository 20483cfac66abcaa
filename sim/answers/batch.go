package answers

import (
	"context"
	"fmt"
	"slices"

	"github.com/windrow-sim/windrow/devicemodels"
	"github.com/windrow-sim/windrow/internal/document"
	"github.com/windrow-sim/windrow/internal/tell"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/sim"
	"github.com/windrow-sim/windrow/traces"
	"github.com/windrow-sim/windrow/traces/batch"
)

// BatchConfig describes a study of batches.
type BatchConfig struct {
	Sim   sim.Config // of every step; its window counts steps
	Sizes []int      // numbers of sequences, ascending; if empty, StudyBatches chooses them
	// AtLeast leaves out units that fewer sequences of the batch need; 1 = none. The effect on the
	// output is not simulated.
	AtLeast int
	// Group also measures batches of sequences with similar masks; for StudyBatches alone.
	Group bool
	Tell  tell.Tell // hears the number of steps or sizes done
}

// BatchRow has the costs of a token in a batch. Times are those of a step divided by Size.
type BatchRow struct {
	Size  int `json:"batch_count"`
	Steps int `json:"steps_count"`
	// steps with a full window before them; the other figures are means over them, 0 if there are
	// none
	Warm  int    `json:"warm_steps_count"`
	Basis string `json:"basis"` // of the simulation: traces.Basis

	Needed   float64     `json:"needed_share"` // of all units, by a step
	Resident float64     `json:"held_share"`   // of all units, resident between steps
	Bytes    float64     `json:"bytes_per_token"`
	Requests float64     `json:"requests_per_token"`
	Decide   units.Nanos `json:"decide_ns"`
	IO       units.Nanos `json:"io_ns"`
	Memory   units.Nanos `json:"memory_ns"`
	Compute  units.Nanos `json:"compute_ns"`

	Flash  units.Nanos `json:"flash_ns"`  // sum of the four
	Hybrid units.Nanos `json:"hybrid_ns"` // no FFN unit resident
	// the share Resident of the FFN units resident
	HybridResident units.Nanos `json:"hybrid_held_ns"`

	// The same three with their intervals; nil without a warm step.
	FlashEstimate          *document.Estimate `json:"flash_estimate_ms"`
	HybridEstimate         *document.Estimate `json:"hybrid_estimate_ms"`
	HybridResidentEstimate *document.Estimate `json:"hybrid_held_estimate_ms"`
	// of all sequences together, on flash
	TokensPerS *document.Estimate `json:"tokens_per_s_estimate"`
	Prediction *traces.Prediction `json:"prediction"` // of the steps, warm-up included
}

// Batches has a row for every size.
type Batches struct {
	Window   int         `json:"window_steps"`
	AtLeast  int         `json:"at_least_count"`
	FFNBytes units.Bytes `json:"ffn_bytes"`         // of all layers
	FFNRead  units.Nanos `json:"ffn_sequential_ns"` // to read them all
	// FFNEstimate is FFNRead with its interval.
	FFNEstimate document.Estimate `json:"ffn_sequential_estimate_ms"`
	Rows        []BatchRow        `json:"batches"` // in order of Size
	// smallest size at which flash is no faster than Hybrid; 0 = none
	StopsAt       int      `json:"stops_paying_at"`
	StopsResident int      `json:"stops_paying_held"`    // than HybridResident
	Warnings      []string `json:"warnings"`             // of all simulations
	NotWarm       int      `json:"sizes_not_warm_count"` // rows without a warm step
}

// SimulateBatches simulates every size on its own batches (batch.Stream.Union): with B sequences
// the trace has a B-th of its steps.
func SimulateBatches(ctx context.Context, stream *batch.Stream, cfg BatchConfig) (*Batches, error) {
	h := stream.Header()
	if err := checkBatches(stream, &cfg); err != nil {
		return nil, err
	}
	whole, sequential, err := sequentialRead(ctx, h, cfg.Sim)
	if err != nil {
		return nil, err
	}
	r := &Batches{Window: cfg.Sim.Policy.Window, AtLeast: cfg.AtLeast,
		FFNBytes: units.Bytes(h.Layers*h.Units) * h.UnitBytes, FFNRead: whole,
		FFNEstimate: sequential.Time(whole, whole), Warnings: []string{}}
	at := cfg.Tell.Stage("batch (sizes)")
	for i, size := range cfg.Sizes {
		src, err := stream.Union(size, cfg.AtLeast)
		if err != nil {
			return nil, fmt.Errorf("answers: batch: %w", err)
		}
		run, err := sim.Run(ctx, src, cfg.Sim)
		if err != nil {
			return nil, err
		}
		row := rowOf(src, run, cfg.Sim)
		row.sum(whole, sequential)
		r.add(row, run.Meta.Warnings)
		at(i+1, len(cfg.Sizes))
	}
	return r, nil
}

// batchLimits are the settings of BatchConfig.Sim that are refused.
func batchLimits() []sim.Limit {
	return []sim.Limit{
		{Setting: sim.SettingMaxTokens, Why: "batches are cut from the whole trace; cut the trace"},
		{Setting: sim.SettingSchedule, Why: "the sequential read that batches are compared with " +
			"is on demand; read on demand"},
		{Setting: sim.SettingBackend, Why: "several tokens in a step are not modelled on a GPU; " +
			"compute on the host"},
	}
}

func checkBatches(stream *batch.Stream, cfg *BatchConfig) error {
	last := 0
	for _, b := range cfg.Sizes {
		if b <= last {
			return fmt.Errorf("answers: batch: sizes %v sequences: sizes must ascend, from 1 or "+
				"more: %w", cfg.Sizes, ErrInput)
		}
		last = b
	}
	if last == 0 || last > stream.Tokens() {
		return fmt.Errorf("answers: batch: sizes %v sequences of %d tokens: every step needs a "+
			"token of each; record more, or name smaller batches: %w", cfg.Sizes, stream.Tokens(),
			ErrInput)
	}
	if cfg.AtLeast < 1 || cfg.AtLeast > batch.MaxAtLeast {
		return fmt.Errorf("answers: batch: units of at least %d sequences: 1 to %d are "+
			"possible: %w",
			cfg.AtLeast, batch.MaxAtLeast, ErrInput)
	}
	if cfg.Sizes[0] < cfg.AtLeast {
		return fmt.Errorf("answers: batch: %d sequences have no units of at least %d sequences: %w",
			cfg.Sizes[0], cfg.AtLeast, ErrInput)
	}
	return cfg.Sim.Refuse("answers", batchLimits()...)
}

// add appends a row with its warnings, and notes the sizes at which flash stops paying.
func (r *Batches) add(row BatchRow, warnings []string) {
	r.Rows = append(r.Rows, row)
	for _, w := range warnings {
		if w = fmt.Sprintf("batch of %d: %s", row.Size, w); !slices.Contains(r.Warnings, w) {
			r.Warnings = append(r.Warnings, w)
		}
	}
	if row.Warm == 0 {
		r.NotWarm++
		return
	}
	if r.StopsAt == 0 && row.Flash >= row.Hybrid {
		r.StopsAt = row.Size
	}
	if r.StopsResident == 0 && row.Flash >= row.HybridResident {
		r.StopsResident = row.Size
	}
}

// batchSums add up the warm steps of a run.
type batchSums struct {
	part             [traces.Parts]units.Nanos
	bytes            units.Bytes
	requests         int64
	needed, resident int64
	steps            int64
}

// rowOf averages the warm steps of a run.
func rowOf(src *batch.Source, run *traces.Run, cfg sim.Config) BatchRow {
	var s batchSums
	resident := int64(0) // units in memory after the rows so far
	for i := range run.Rows {
		r := &run.Rows[i]
		resident += int64(r.Misses) - int64(r.Evictions)
		if int(r.Token) < cfg.Policy.Window {
			continue
		}
		s.part[r.Part] += r.Dur
		s.needed += int64(r.Hits) + int64(r.Misses)
		if r.Part == traces.PartIO {
			s.bytes += r.Bytes
			s.requests += int64(r.Requests)
		}
		if r.Layer == traces.NoLayer {
			s.steps++
			s.resident += resident
		}
	}
	lanes := src.Lanes()
	row := BatchRow{Size: lanes.Count, Steps: lanes.Steps, Warm: int(s.steps),
		Basis: string(run.Meta.Prediction.Basis), Prediction: run.Meta.Prediction}
	if s.steps == 0 {
		return row
	}
	h := src.Header()
	tokens := s.steps * int64(lanes.Count)
	all := float64(s.steps) * float64(h.Layers) * float64(h.Units)
	row.Needed, row.Resident = float64(s.needed)/all, float64(s.resident)/all
	row.Bytes, row.Requests = float64(s.bytes)/float64(tokens), float64(s.requests)/float64(tokens)
	row.Decide, row.IO, row.Memory = perToken(s.part[traces.PartPredict], tokens),
		perToken(s.part[traces.PartIO], tokens), perToken(s.part[traces.PartMemory], tokens)
	compute := s.part[traces.PartAttention] + s.part[traces.PartFFN] + s.part[traces.PartOther]
	for step := lanes.Steps - row.Warm; step < lanes.Steps; step++ {
		compute += otherKeys(src, cfg.Device, step)
	}
	row.Compute = perToken(compute, tokens)
	return row
}

// otherKeys is the time of the keys and values of all sequences of a step beyond those that sim.Run
// charges: one sequence as long as the batch has steps. It is negative if the sequences are
// shorter.
func otherKeys(src *batch.Source, device *devicemodels.Device, step int) units.Nanos {
	h, lanes := src.Header(), src.Lanes()
	kv := device.Host.At(h.DType).KV
	at := func(positions int) units.Nanos {
		return kv.Time(h.Shape.KVBytes()*units.Bytes(positions),
			1)
	}
	return units.Nanos(h.Layers) * (at(lanes.Positions(step)) - at(step+1))
}

// perToken divides and rounds to the nearest nanosecond.
func perToken(sum units.Nanos, n int64) units.Nanos {
	return (sum + units.Nanos(n)/2) /
		units.Nanos(n)
}

// sum adds up the parts for flash and hybrid. whole is the sequential read of all units, of which
// sequential says how well it is known.
func (row *BatchRow) sum(whole units.Nanos, sequential *traces.Prediction) {
	if row.Warm == 0 {
		return
	}
	all, size := perToken(whole, int64(row.Size)), int64(row.Size)
	rest := perToken(units.Nanos(float64(whole)*(1-row.Resident)), size)
	row.Flash = row.Decide + row.IO + row.Memory + row.Compute
	row.Hybrid, row.HybridResident = row.Compute+all, row.Compute+rest

	p := row.Prediction
	hybrid := traces.Prediction{Basis: p.Basis.Weaker(sequential.Basis),
		IOPercent: sequential.IOPercent, HostPercent: p.HostPercent}
	flash, plain, resident := p.Time(row.Flash, row.IO), hybrid.Time(row.Hybrid, all),
		hybrid.Time(row.HybridResident, rest)
	row.FlashEstimate, row.HybridEstimate, row.HybridResidentEstimate = &flash, &plain, &resident
	if row.Flash > 0 {
		rate := flash.Inverse(1e3)
		row.TokensPerS = &rate
	}
}

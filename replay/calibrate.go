package replay

import (
	"errors"
	"fmt"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"github.com/windrow-sim/windrow/devicemodels"
	"github.com/windrow-sim/windrow/devicemodels/flash"
	"github.com/windrow-sim/windrow/internal/clock"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/traces"
)

// Calibrate sets the host constants that only the engine itself can measure, from the parts of a
// measured Run that are not I/O: a few tokens on any reader will do, the time of the reads is not
// looked at. The kernel rates that the probe measured stay, except where they contradict the
// engine.
//
//	ffn       = RowFixed + rows·record/RowRate
//	memory    = copies·(CopyFixed + record/CopyRate)
//	predict   = DecideFixed + units·DecideUnit
//	attention = LayerFixed + 4·DenseFixed + weights/DenseRate + cache/KVRate
//	other     = TokenFixed + DenseFixed + head/DenseRate
func Calibrate(host *devicemodels.Host, run *traces.Run, h *traces.Header) error {
	if err := steady(run); err != nil {
		return err
	}
	s := collect(run, h.UnitBytes)
	const fewest = 32 // layers of tokens: below that the slopes are noise
	if len(s.need) < fewest {
		return fmt.Errorf("replay: calibration: %d measured layers, %d are needed; replay more "+
			"tokens", len(s.need), fewest)
	}
	record := float64(h.UnitBytes)
	rowFixed, perUnit := line(s.need, s.ffn)
	host.RowFixed = units.Nanos(rowFixed)
	if host.RowRate = 0; perUnit > 0 { // all in the fixed part, when every layer needed the same
		host.RowRate = units.Rate(record * 1e9 / perUnit)
	}
	if copies := floats.Sum(s.copies); copies > 0 {
		perRow := floats.Sum(s.memory) / copies
		host.CopyFixed = max(units.Nanos(perRow)-host.CopyRate.Time(h.UnitBytes), 0)
		if host.CopyFixed == 0 {
			host.CopyRate = units.Rate(record * 1e9 / perRow)
		}
	}
	fixed, slope := line(s.need, s.predict)
	host.DecideFixed, host.DecideUnit = units.Nanos(fixed), units.Nanos(slope)
	calibrateDense(host, &s, h)
	return nil
}

// CalibrateBatch sets what a batch of reads costs the host besides its reads (waking threads and
// being woken, a processor that slept while the drive was idle) to what the measured I/O took
// beyond the simulated: two Runs of one configuration, the simulated one on the device as it is.
// The cost is not below zero.
func CalibrateBatch(spec *flash.Spec, engine string, simulated, measured *traces.Run) error {
	if err := steady(measured); err != nil {
		return err
	}
	batches := 0
	for _, r := range measured.Rows {
		if r.Part == traces.PartIO && r.Requests > 0 {
			batches++
		}
	}
	if batches == 0 {
		return errors.New("replay: calibration: the configuration reads nothing")
	}
	cost, known := spec.Engines[engine]
	if !known {
		return fmt.Errorf("replay: calibration: the device model has no costs for engine %q",
			engine)
	}
	beyond := measured.Meta.Totals.PartNanos[traces.PartIO] -
		simulated.Meta.Totals.PartNanos[traces.PartIO]
	cost.Batch = max(cost.Batch+beyond/units.Nanos(batches), 0)
	spec.Engines[engine] = cost
	return nil
}

// steady refuses a run during which the machine slept.
func steady(run *traces.Run) error {
	if jump := run.Meta.ClockJump; jump != 0 {
		return fmt.Errorf("replay: calibration: %s during the run, so that its times fit no "+
			"device; measure again", clock.Why(jump))
	}
	return nil
}

// samples are the measured layers and tokens, in nanoseconds and counts.
type samples struct {
	need, copies, ffn, memory, predict []float64 // by layer and token
	pos, attention                     []float64 // by layer and token
	other                              []float64 // by token
}

func collect(run *traces.Run, record units.Bytes) samples {
	var s samples
	for _, r := range run.Rows {
		if r.Token == run.Rows[0].Token {
			continue // the first token warms caches up
		}
		dur := float64(r.Dur)
		switch r.Part {
		case traces.PartAttention:
			s.attention, s.pos = append(s.attention, dur), append(s.pos, float64(r.Pos))
		case traces.PartPredict:
			s.predict = append(s.predict, dur)
		case traces.PartIO:
			s.need = append(s.need, float64(r.Hits+r.Misses))
		case traces.PartMemory:
			s.memory, s.copies = append(s.memory, dur), append(s.copies, float64(r.Bytes/record))
		case traces.PartFFN:
			s.ffn = append(s.ffn, dur)
		case traces.PartOther:
			s.other = append(s.other, dur)
		}
	}
	return s
}

// fewestPositions is the span of positions from which a slope over positions is believed.
const fewestPositions = 32

// calibrateDense splits what attention and the output head took into fixed parts and weights.
func calibrateDense(host *devicemodels.Host, s *samples, h *traces.Header) {
	weights, head := h.Shape.AttentionBytes(), h.Shape.HeadBytes()
	perPosition := float64(h.Shape.KVBytes())
	fixed := stat.Mean(s.attention, nil)
	if slices.Max(s.pos)-slices.Min(s.pos) >= fewestPositions {
		if _, slope := line(s.pos, s.attention); slope > 0 {
			host.KVRate = units.Rate(perPosition * 1e9 / slope)
		}
	}
	// what the simulator will charge, be it measured or the roofline
	if rate := host.At(h.DType).KV.Rate; rate > 0 {
		// position p reads p+1
		fixed -= (stat.Mean(s.pos, nil) + 1) * perPosition * 1e9 / float64(rate)
	}
	other := units.Nanos(stat.Mean(s.other, nil)) - host.DenseFixed
	// one large mat-vec and little else: the best measure of the rate
	if head > weights && other > 0 {
		host.DenseRate = head.Over(other)
	}
	rest := units.Nanos(fixed) - 4*host.DenseFixed
	host.LayerFixed = rest - host.DenseRate.Time(weights)
	if host.LayerFixed < 0 {
		host.LayerFixed = 0
		if rest > 0 {
			host.DenseRate = weights.Over(rest)
		}
	}
	host.TokenFixed = max(other-host.DenseRate.Time(head), 0)
}

// line fits y = fixed + slope·x with neither below zero. The slope is Theil and Sen's, the median
// over pairs of points, which single delays of the host do not turn; the fixed part keeps the mean
// of y, delays and all, since they are part of what a token takes.
func line(x, y []float64) (fixed, slope float64) {
	const most = 600 // points: more pairs than that tell nothing new
	step := len(x)/most + 1
	var slopes []float64
	for i := 0; i < len(x); i += step {
		for j := i + step; j < len(x); j += step {
			if x[i] != x[j] {
				slopes = append(slopes, (y[j]-y[i])/(x[j]-x[i]))
			}
		}
	}
	meanX, meanY := stat.Mean(x, nil), stat.Mean(y, nil)
	if len(slopes) == 0 {
		return meanY, 0
	}
	slices.Sort(slopes)
	slope = max(slopes[len(slopes)/2], 0)
	if fixed = meanY - slope*meanX; fixed < 0 {
		return 0, meanY / meanX
	}
	return fixed, slope
}

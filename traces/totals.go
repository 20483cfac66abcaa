package traces

import (
	"fmt"
	"math"

	"github.com/windrow-sim/windrow/internal/units"
)

// ComputeTotals sums the rows of a Run, which are ordered by token. Wall is the time from the start
// of the first row to the end of the last. TokensPerS is Tokens/Wall over all phases. MeanDepth
// weights the depth of I/O rows by their time.
func ComputeTotals(rows []RunRow) Totals {
	var t Totals
	if len(rows) == 0 {
		return t
	}
	start, end := units.Nanos(math.MaxInt64), units.Nanos(math.MinInt64)
	depth := 0.0
	for i := range rows {
		r := &rows[i]
		if i == 0 || r.Token != rows[i-1].Token {
			t.Tokens++
		}
		start, end = min(start, r.Start), max(end, r.Start+r.Dur)
		if r.Part < Parts {
			t.PartNanos[r.Part] += r.Dur
		}
		if r.Part == PartIO {
			t.Bytes += r.Bytes
			depth += float64(r.Depth) * float64(r.Dur)
		}
		t.Requests += int64(r.Requests)
		t.Hits += int64(r.Hits)
		t.Misses += int64(r.Misses)
		t.Evictions += int64(r.Evictions)
	}
	t.Wall = end - start
	if t.Wall > 0 {
		t.TokensPerS = float64(t.Tokens) / t.Wall.Seconds()
	}
	if io := t.PartNanos[PartIO]; io > 0 {
		t.MeanDepth = depth / float64(io)
	}
	if n := t.Hits + t.Misses; n > 0 {
		t.HitRatio = float64(t.Hits) / float64(n)
	}
	return t
}

// sameTotals returns an error that names the first field in which the stored totals differ from
// those of the rows. Ratios may differ in the last bits, because not every machine rounds a·b+c the
// same way.
func sameTotals(stored, rows Totals) error {
	ints := []struct {
		name string
		a, b int64
	}{
		{"tokens", int64(stored.Tokens), int64(rows.Tokens)},
		{"wall_ns", int64(stored.Wall), int64(rows.Wall)},
		{"flash_bytes_read", int64(stored.Bytes), int64(rows.Bytes)},
		{"requests", stored.Requests, rows.Requests},
		{"hits", stored.Hits, rows.Hits},
		{"misses", stored.Misses, rows.Misses},
		{"evictions", stored.Evictions, rows.Evictions},
		{"flash_bytes_written", int64(stored.BytesWritten), int64(rows.BytesWritten)},
	}
	for _, f := range ints {
		if f.a != f.b {
			return fmt.Errorf("totals say %s is %d, the rows %d: %w", f.name, f.a, f.b, ErrFormat)
		}
	}
	for p := range stored.PartNanos {
		if a, b := stored.PartNanos[p], rows.PartNanos[p]; a != b {
			return fmt.Errorf("totals say part_ns of %s is %d, the rows %d: %w", Part(p), int64(a),
				int64(b), ErrFormat)
		}
	}
	ratios := []struct {
		name string
		a, b float64
	}{
		{"tokens_per_s", stored.TokensPerS, rows.TokensPerS},
		{"mean_depth", stored.MeanDepth, rows.MeanDepth},
		{"hit_ratio", stored.HitRatio, rows.HitRatio},
	}
	for _, f := range ratios {
		if !(math.Abs(f.a-f.b) <= 1e-9*math.Abs(f.b)) {
			return fmt.Errorf("totals say %s is %g, the rows %g: %w", f.name, f.a, f.b, ErrFormat)
		}
	}
	return nil
}

// samePhases returns an error if the stored phases are not those of the rows.
func samePhases(stored *Phases, rows []RunRow) error {
	if stored.Clock != ClockEvents && stored.Clock != ClockModel {
		return fmt.Errorf("phases by the clock %q; known are %s and %s: %w", stored.Clock,
			ClockEvents, ClockModel, ErrFormat)
	}
	of := ComputePhases(rows, stored.Clock).All()
	for i, took := range stored.All() {
		if took != of[i] {
			return fmt.Errorf("phases say %s_ns is %d, the rows %d: %w", PhaseNames()[i],
				int64(took), int64(of[i]), ErrFormat)
		}
	}
	return nil
}

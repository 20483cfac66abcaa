package probe

import (
	"context"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

	"github.com/windrow-sim/windrow/devicemodels"
	"github.com/windrow-sim/windrow/internal/units"
)

// timed is one host constant: the same work in two sizes, whose times give a cost per call and a
// rate. A timed without a small work gives a rate alone.
type timed struct {
	name         string
	small, large work
}

// work is something to time.
type work struct {
	run   func()
	calls int         // how many times run does what the cost per call is for
	bytes units.Bytes // that one call reads (or copies once)
}

// workload is the set of timed works. close frees their memory and threads.
type workload struct {
	memory, dense, rows, copies, kv timed
	close                           func()
}

// maxRepetitions of one work: more tell nothing new about a median.
const maxRepetitions = 50

// measuredHost is the host, and within what percentage nine of ten of its times are; nil = not
// known.
type measuredHost struct {
	devicemodels.Host
	interval *float64
}

// measureHost times the host until end. Every work is run at least once, also when end has passed.
func measureHost(ctx context.Context, m *machine, end units.Nanos, seed uint64, step func(done,
	total int)) (measuredHost, error) {
	h := measuredHost{Host: devicemodels.Host{Cores: m.cores}}
	var spreads []float64
	w, err := m.workload(m.cores, seed)
	if err != nil {
		return h, fmt.Errorf("probe: host: %w", err)
	}
	defer w.close()
	parts := []struct {
		timed
		rate  *units.Rate
		fixed *units.Nanos
	}{
		{w.memory, &h.MemoryRate, nil},
		{w.dense, &h.DenseRate, &h.DenseFixed},
		{w.rows, &h.RowRate, &h.RowFixed},
		{w.copies, &h.CopyRate, &h.CopyFixed},
		{w.kv, &h.KVRate, nil},
	}
	for i, p := range parts {
		now := m.now()
		share := max(0, (end-now)/units.Nanos(len(parts)-i))
		fixed, rate, spread, err := measureTimed(ctx, m, p.timed, now+share)
		if err != nil {
			return h, err
		}
		spreads = append(spreads, spread)
		*p.rate = rate
		if p.fixed != nil {
			*p.fixed = fixed
		}
		step(i+1, len(parts))
	}
	if spread := floats.Norm(spreads, 2) / math.Sqrt(float64(len(spreads))); !math.IsNaN(spread) {
		spread = math.Round(1e5*spread) / 1e3
		h.interval = &spread
	}
	return h, nil
}

// spreadOf returns within what part of their median nine of ten times are, from the distance of
// their quartiles, which a few outliers do not move: 1.645 standard deviations, of which a normal
// distribution has 1.349 between its quartiles. It is NaN for too few times.
func spreadOf(times []units.Nanos) float64 {
	const few = 5
	if len(times) < few {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(times))
	quartiles := float64(sorted[3*len(sorted)/4] - sorted[len(sorted)/4])
	return 1.645 / 1.349 * quartiles / float64(sorted[len(sorted)/2])
}

// measureTimed returns the cost per call and the rate of t, from the medians of interleaved runs of
// both sizes: what slows the machine for a while slows both. The last number is spreadOf the runs
// of the large one.
func measureTimed(ctx context.Context, m *machine, t timed, end units.Nanos) (units.Nanos,
	units.Rate, float64, error) {
	var small, large []units.Nanos
	run := func(w work) units.Nanos {
		start := m.now()
		w.run()
		return (m.now() - start) / units.Nanos(w.calls)
	}
	for n := 0; n < maxRepetitions; n++ {
		if n > 0 && m.now() >= end {
			break
		}
		if err := ctx.Err(); err != nil {
			return 0, 0, 0, fmt.Errorf("probe: %w", err)
		}
		if t.small.run != nil {
			small = append(small, run(t.small))
		}
		large = append(large, run(t.large))
	}
	if t.small.run == nil {
		return 0, digits4(t.large.bytes.Over(median(large))), spreadOf(large), nil
	}
	fixed, rate := line(t.small.bytes, median(small), t.large.bytes, median(large))
	return digits4(fixed), digits4(rate), spreadOf(large), nil
}

// line puts a straight line time = fixed + bytes/rate through two points. Where noise makes the
// larger work the faster one, or the fixed part negative, it falls back to a line through the
// origin and the larger work.
func line(smallBytes units.Bytes, small units.Nanos, largeBytes units.Bytes,
	large units.Nanos) (units.Nanos, units.Rate) {
	rate := (largeBytes - smallBytes).Over(large - small)
	fixed := small - rate.Time(smallBytes)
	if rate <= 0 || fixed < 0 {
		return 0, largeBytes.Over(large)
	}
	return fixed, rate
}

func median(times []units.Nanos) units.Nanos {
	slices.Sort(times)
	return times[len(times)/2]
}

// digits4 keeps four significant digits, more than the measurement has, so that people can read the
// device file.
func digits4[T units.Rate | units.Nanos](v T) T {
	scale := T(1)
	for v/scale >= 10_000 {
		scale *= 10
	}
	return (v + scale/2) / scale * scale
}

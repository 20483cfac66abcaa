package reproduce

import (
	"fmt"

	"github.com/windrow-sim/windrow/internal/decisions/layout"
	"github.com/windrow-sim/windrow/internal/decisions/policy"
	"github.com/windrow-sim/windrow/internal/ioengine"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/sim"
	"github.com/windrow-sim/windrow/traces"
	"github.com/windrow-sim/windrow/traces/shapes"
	"github.com/windrow-sim/windrow/traces/synth"
)

// traceTokens is the length of a synthetic trace. The runs of the papers have 256 tokens. Fewer are
// enough here: a token has half a million units.
const traceTokens = 40

// threads is the number of read threads of LLM in a flash, section 4.1.
const threads = 32

// workload is one simulated configuration.
type workload struct {
	like      string // model
	dtype     int    // bytes per weight
	window    int    // tokens before the current one whose rows are kept
	unbundled bool   // up and down rows are separate reads
	machine   string
}

// measured has the means per token of a simulated trace, after the window has filled.
type measured struct {
	io       units.Nanos
	read     units.Bytes
	copied   units.Bytes // inside memory: rows appended, and rows that fill gaps
	resident units.Bytes // rows in memory while the token computes
	ffn      units.Bytes // of the whole model

	byToken []units.Nanos // I/O of every token
}

// share is b as percent of the FFN.
func (m *measured) share(b units.Bytes) float64 { return 100 * float64(b) / float64(m.ffn) }

// rate is the throughput of the reads, with the ends of batches.
func (m *measured) rate() units.Rate { return m.read.Over(m.io) }

// simulate runs a workload once and keeps the result.
func (s *study) simulate(w workload) (*measured, error) {
	if m := s.workloads[w]; m != nil {
		return m, nil
	}
	trace, err := s.trace(w)
	if err != nil {
		return nil, err
	}
	device, ok := s.machines.devices[w.machine]
	if !ok {
		return nil, fmt.Errorf("no machine %q", w.machine)
	}
	cfg := sim.Config{Policy: policy.SlidingWindow(w.window), Engine: ioengine.Pread,
		Parallel: threads, Predicted: true,
		Device: device,
		// Reads past the page cache need no alignment on macOS (F_NOCACHE), and records of 4 KiB
		// multiples have it anyway.
		Layout: layout.Options{Align: 1}}
	if w.unbundled {
		cfg.Layout.MaxRequest = trace.Head.UnitBytes / units.Bytes(trace.Head.Shape.Rows)
	}
	run, err := sim.Run(s.ctx, trace, cfg)
	if err != nil {
		return nil, err
	}
	m := digest(run, &trace.Head, max(w.window, 1))
	s.workloads[w] = m
	return m, nil
}

// traceKey holds everything that a synthetic trace depends on.
type traceKey struct {
	like  string
	dtype int
}

// trace makes the synthetic trace of a workload, once.
func (s *study) trace(w workload) (*traces.Memory, error) {
	key := traceKey{w.like, w.dtype}
	if t := s.traces[key]; t != nil {
		return t, nil
	}
	shape, _, err := shapes.Lookup(w.like)
	if err != nil {
		return nil, err
	}
	shape.DTypeSize = w.dtype
	trace, err := synth.Collect(s.ctx, synth.Options{Like: w.like, Shape: shape,
		Tokens: traceTokens,
		Seed:   s.seed, Predicted: true})
	if err != nil {
		return nil, err
	}
	if w.dtype == 4 {
		trace.Head.DType = "f32"
	}
	s.traces[key] = trace
	return trace, nil
}

// digest computes the means over the tokens from warm on.
func digest(run *traces.Run, head *traces.Header, warm int) *measured {
	m := &measured{ffn: units.Bytes(head.Layers*head.Units) * head.UnitBytes}
	var resident, evicted int64
	var cached units.Bytes
	last := -1
	count := 0
	for i := range run.Rows {
		r := &run.Rows[i]
		if int(r.Token) != last { // the evictions of a token take effect before the next one
			resident, evicted, last = resident-evicted, 0, int(r.Token)
			m.byToken = append(m.byToken, 0)
			if last >= warm {
				count++
			}
		}
		resident += int64(r.Misses)
		evicted += int64(r.Evictions)
		if r.Part == traces.PartIO {
			m.byToken[last] += r.Dur
		}
		if last < warm {
			continue
		}
		switch r.Part {
		case traces.PartIO:
			m.io, m.read = m.io+r.Dur, m.read+r.Bytes
		case traces.PartMemory:
			m.copied += r.Bytes
		case traces.PartOther:
			cached += units.Bytes(resident) * head.UnitBytes
		}
	}
	n := units.Bytes(max(count, 1))
	m.io, m.read, m.copied, m.resident = m.io/units.Nanos(n), m.read/n, m.copied/n, cached/n
	return m
}

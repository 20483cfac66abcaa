package serving

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/windrow-sim/windrow/internal/mask"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/sim"
	"github.com/windrow-sim/windrow/traces/arrivals"
)

// sequence is a running request.
type sequence struct {
	arrival, first, last units.Nanos // arrival; first and last output token so far
	prompt, output       int
	computed             int // prompt tokens computed
	delivered            int // output tokens delivered
	promptAt             int // first positions in the rings
	decodeAt             int
	kv                   units.Bytes // reserved
}

// run is the state of one simulation.
type run struct {
	*Server
	src     Source
	machine *sim.Machine
	unions  []mask.Mask // of a step, by layer
	step    step        // reused

	now     units.Nanos
	running []sequence // in the order of their admission
	next    arrivals.Request
	waiting bool // next holds a request
	ended   bool // the source has no more
	number  int64
	kv      units.Bytes // reserved

	sum  sums
	most int64 // requests that may miss the objectives before the run stops; below 0: all
}

// Run simulates a load. If the context ends, it returns the result so far and an error that wraps
// the context's cause. Other errors are those of the source and of the flash model; they come
// without a result.
func (s *Server) Run(ctx context.Context, src Source) (*Result, error) {
	return s.run(ctx, src, -1)
}

func (s *Server) run(ctx context.Context, src Source, most int64) (*Result, error) {
	r, err := s.begin(src, most)
	if err != nil {
		return nil, err
	}
	for {
		if ctx.Err() != nil {
			r.sum.stopped = Interrupted
			return r.result(), fmt.Errorf("serving: %d requests had been served: %w",
				r.sum.finished, context.Cause(ctx))
		}
		if err := r.admit(); err != nil {
			return nil, err
		}
		switch {
		case r.sum.stopped != "": // GivenUp
			return r.result(), nil
		case len(r.running) == 0 && !r.waiting:
			return r.result(), nil
		case len(r.running) == 0:
			r.idle()
		}
		if s.cfg.Deadline > 0 && r.now >= s.cfg.Deadline {
			return r.late(ctx)
		}
		if len(r.running) == 0 {
			continue
		}
		if err := r.advance(); err != nil {
			return nil, err
		}
		if s.cfg.Progress != nil {
			s.cfg.Progress(r.sum.finished + r.sum.failed + r.sum.tooLong + r.sum.tooLarge)
		}
	}
}

// idle advances the clock to the next request, or to the deadline.
func (r *run) idle() {
	r.now = max(r.now, r.next.At)
	if d := r.cfg.Deadline; d > 0 {
		r.now = min(r.now, d)
	}
}

func (s *Server) begin(src Source, most int64) (*run, error) {
	options := sim.MachineOptions{Policies: s.src, Seed: s.cfg.Seed}
	if s.table != nil {
		options.Table = s.table
	}
	machine, err := sim.NewMachine(&s.cfg.Sim, s.head, options)
	if err != nil {
		return nil, err
	}
	r := &run{Server: s, src: src, machine: machine, most: most}
	r.unions = mask.NewLayers(s.head.Layers, s.head.Units)
	return r, nil
}

// admit admits the requests that have arrived, until the batch or the memory is full. It refuses
// requests that can never run.
func (r *run) admit() error {
	for len(r.running) < r.cfg.MaxBatch {
		if err := r.peek(); err != nil {
			return err
		}
		if !r.waiting || r.next.At > r.now {
			return nil
		}
		// the last output token is not computed
		positions := int64(r.next.Prompt) + int64(max(r.next.Output, 1)) - 1
		kv := units.Bytes(positions) * r.positionBytes()
		switch {
		case r.head.Shape.MaxPos > 0 && positions > int64(r.head.Shape.MaxPos):
			r.sum.tooLong++
		case r.cfg.KV > 0 && kv > r.cfg.KV:
			r.sum.tooLarge++
		case r.cfg.KV > 0 && r.kv+kv > r.cfg.KV:
			return nil
		default:
			r.start(kv)
		}
		r.number++
		r.waiting = false
	}
	return nil
}

// positionBytes is the size of the keys and values of a position, over all layers.
func (s *Server) positionBytes() units.Bytes {
	return units.Bytes(s.head.Layers) * s.head.Shape.KVBytes()
}

// peek reads the next request, unless one waits already.
func (r *run) peek() error {
	if r.waiting || r.ended {
		return nil
	}
	last := r.next.At
	err := r.src.Next(&r.next)
	if errors.Is(err, io.EOF) {
		r.ended = true
		return nil
	}
	if err != nil {
		return err
	}
	if r.next.Prompt < 1 || r.next.Output < 0 || r.next.At < last {
		return fmt.Errorf("serving: request %d of %d prompt and %d output tokens at %v, after "+
			"one at %v: prompts of at least one token, in order of arrival, are needed: %w",
			r.sum.arrived+1, r.next.Prompt, r.next.Output, r.next.At, last, ErrConfig)
	}
	r.waiting = true
	r.sum.arrived++
	return nil
}

// start admits the waiting request.
func (r *run) start(kv units.Bytes) {
	q := sequence{arrival: r.next.At, prompt: r.next.Prompt, output: r.next.Output, kv: kv}
	q.promptAt, q.decodeAt = r.place(r.number)
	r.kv += kv
	r.running = append(r.running, q)
	r.sum.queueing.add(r.now-q.arrival, 1)
	r.sum.longestPrompt = max(r.sum.longestPrompt, q.prompt)
	r.sum.peakBatch = max(r.sum.peakBatch, len(r.running))
}

// latest is the latest time of the clock: sums of a few times are in range too.
const latest = units.Forever / 2

// advance simulates one step and credits its tokens to the sequences.
func (r *run) advance() error {
	r.compose()
	took, err := r.execute()
	if err != nil {
		return err
	}
	if took < 0 || r.now > latest-took {
		return fmt.Errorf("serving: a step at %v takes %v: beyond the clock: %w", r.now, took,
			ErrConfig)
	}
	r.now += took
	r.sum.add(len(r.running), took)
	for i := range r.step.segments {
		r.credit(&r.step.segments[i])
	}
	kept, positions := r.running[:0], int64(0)
	for i := range r.running {
		q := &r.running[i]
		positions += int64(q.computed + max(q.delivered-1, 0))
		if q.computed < q.prompt || q.delivered < q.output {
			kept = append(kept, *q)
			continue
		}
		r.kv -= q.kv
		r.finish(q)
	}
	r.running = kept
	r.sum.peakKV = max(r.sum.peakKV, units.Bytes(positions)*r.positionBytes())
	return nil
}

// credit counts the tokens of a segment for its sequence.
func (r *run) credit(s *segment) {
	q := &r.running[s.sequence]
	if !s.decoding {
		q.computed += s.tokens
		r.sum.promptTokens += int64(s.tokens)
	} else {
		r.sum.itl.add(r.now-q.last, 1)
		r.sum.decodeTokens++
	}
	if s.output {
		if q.delivered == 0 {
			q.first = r.now
			r.sum.ttft.add(q.first-q.arrival, 1)
		}
		q.delivered++
		q.last = r.now
		r.sum.outputTokens++
	}
}

// finish counts a request that has all its output tokens, or has failed: the latter take time of
// the server and have no latency.
func (r *run) finish(q *sequence) {
	if q.output == 0 {
		r.sum.failed++
		return
	}
	r.sum.finished++
	r.sum.e2e.add(q.last-q.arrival, 1)
	good := r.cfg.TTFT == 0 || q.first-q.arrival <= r.cfg.TTFT
	if q.output == 1 {
		r.sum.singleToken++
	} else {
		perToken := (q.last - q.first) / units.Nanos(q.output-1)
		r.sum.tpot.add(perToken, 1)
		good = good && (r.cfg.TPOT == 0 || perToken <= r.cfg.TPOT)
	}
	if good {
		r.sum.good++
	} else if missed := r.sum.finished - r.sum.good; r.most >= 0 && missed > r.most {
		r.sum.stopped = GivenUp
	}
}

// late ends a run at its deadline and counts the requests that wait then.
func (r *run) late(ctx context.Context) (*Result, error) {
	r.sum.stopped = Deadline
	for {
		if err := r.peek(); err != nil {
			return nil, err
		}
		if ctx.Err() != nil {
			return r.result(), fmt.Errorf("serving: %d requests had been served: %w",
				r.sum.finished, context.Cause(ctx))
		}
		if !r.waiting {
			return r.result(), nil
		}
		if r.next.At > r.now {
			return r.result(), nil // requests after the deadline are not counted
		}
		r.sum.queued++
		r.waiting = false
	}
}

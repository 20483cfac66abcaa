package serving

import (
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/sim"
)

// segment holds the consecutive tokens of one sequence in a step.
type segment struct {
	sequence int // index of running
	ring     *ring
	at       int // position of the first token in the ring
	tokens   int
	position int  // of the first token in the sequence
	decoding bool // an output token is computed, not the prompt
	output   bool // the last token delivers an output token
}

// step holds the tokens that are computed together.
type step struct {
	segments  []segment
	tokens    int
	outputs   int
	positions int // of keys and values that are read, over all sequences
}

// compose chooses the tokens of the next step: one of every sequence past its prompt, and prompt
// tokens of the others in order of admission.
func (r *run) compose() {
	st := &r.step
	*st = step{segments: st.segments[:0]}
	left := r.cfg.Chunk
	for i := range r.running {
		q := &r.running[i]
		s := segment{sequence: i}
		if q.computed == q.prompt {
			s.ring, s.tokens, s.position, s.decoding, s.output = r.decode, 1,
				q.prompt+q.delivered-1,
				true, true
			s.at = (q.decodeAt + q.delivered - 1) % r.decode.tokens()
		} else if left > 0 {
			s.ring, s.tokens, s.position = r.prompt, min(left, q.prompt-q.computed), q.computed
			s.at = (q.promptAt + q.computed) % r.prompt.tokens()
			s.output = q.computed+s.tokens == q.prompt && q.output > 0
			left -= s.tokens
		} else {
			continue
		}
		st.add(s, r.cfg.Compute)
	}
}

func (st *step) add(s segment, compute Compute) {
	st.segments = append(st.segments, s)
	st.tokens += s.tokens
	if s.output {
		st.outputs++
	}
	last := s.position + s.tokens // positions that the last token attends to
	if compute == Each {
		st.positions += s.tokens*s.position + s.tokens*(s.tokens+1)/2
	} else {
		st.positions += last
	}
}

// execute simulates the step and returns its time.
func (r *run) execute() (units.Nanos, error) {
	for l := range r.unions {
		clear(r.unions[l])
	}
	for i := range r.step.segments {
		s := &r.step.segments[i]
		s.ring.unite(r.unions, s.at, s.tokens)
	}
	r.machine.WaitUntil(r.now)
	began, resident := r.machine.Now(), 0
	for l := range r.unions {
		rows, err := r.layer(l)
		if err != nil {
			return 0, err
		}
		resident += rows
	}
	r.sum.resident += int64(resident)
	r.sum.peakResident = max(r.sum.peakResident, resident)
	last, extra := r.machine.ChargeToken(), r.headArithmetic()
	last.Other += extra // judge says that it is a bound, and of which side
	r.sum.Token(&last, r.machine.EndToken(&last).Took)
	return r.machine.Now() - began, nil
}

// layer simulates one layer of the step, with the arithmetic of the other tokens. It returns the
// number of rows in memory.
func (r *run) layer(l int) (resident int, err error) {
	work, load := r.machine.Decide(l, r.unions[l])
	times := r.machine.Charge(r.step.positions-1, &work)
	attention, ffn := r.arithmetic(l, &work, &times)
	times.Attention += attention
	times.FFN += ffn
	one, err := r.machine.Execute(l, &work, load, &times)
	r.sum.Step(&one)
	return work.Resident, err
}

// arithmetic is the time of the tokens of a layer beyond the pass over the weights, which is in
// times.
func (r *run) arithmetic(l int, work *sim.Work, times *sim.LayerTimes) (attention,
	ffn units.Nanos) {
	n := r.step.tokens
	if n == 1 || r.cfg.Compute == Once {
		return 0, 0
	}
	rows := int64(n) * int64(work.Need)
	if !r.readsAll {
		rows = 0
		for i := range r.step.segments {
			s := &r.step.segments[i]
			rows += s.ring.needs(l, s.at, s.tokens)
		}
	}
	weights, used := r.head.Shape.AttentionBytes(), units.Bytes(rows)*r.head.UnitBytes
	pass := r.costs.Dense.Time(weights, 4) // q, k, v, out
	if r.cfg.Compute == Peak {
		return max(r.peak.Time(units.Bytes(n)*weights)-pass, 0), max(r.peak.Time(used)-times.FFN, 0)
	}
	others := units.Nanos(n-1) * (r.cfg.Sim.Device.Host.LayerFixed + pass)
	return others, max(r.costs.Rows.Time(used, n)-times.FFN, 0)
}

// headArithmetic is the time of the output head beyond one pass.
func (r *run) headArithmetic() units.Nanos {
	n, weights := r.step.outputs, r.head.Shape.HeadBytes()
	if n <= 1 || r.cfg.Compute == Once {
		return 0
	}
	pass := r.costs.Dense.Time(weights, 1)
	if r.cfg.Compute == Peak {
		return max(r.peak.Time(units.Bytes(n)*weights)-pass, 0)
	}
	return units.Nanos(n-1) * (r.cfg.Sim.Device.Host.TokenFixed + pass)
}

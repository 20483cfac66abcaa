package adaptive

import (
	"context"

	"github.com/windrow-sim/windrow/internal/decisions/policy"
	"github.com/windrow-sim/windrow/internal/mask"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/sim"
	"github.com/windrow-sim/windrow/traces"
)

// moment is the input of a strategy before a token.
type moment struct {
	phase int // of the schedule
	room  int // rows
	last  int // window at the end of the previous token
	// rows that every window would have used with the previous token; empty at the start of a
	// sequence
	use []int
}

// strategy chooses windows.
type strategy struct {
	name  string
	reset func() // starts a sequence; may be nil
	next  func(moment) int
}

// runner is the state of one simulation.
type runner struct {
	*sim.Machine
	s      *study
	window *policy.Elastic
	caches []sim.Cache
	copied []int // by layer: rows copied since the layer was last carried out
	dec    policy.Decision
	sum    sim.Tally
}

// simulate runs the trace with one strategy.
func (s *study) simulate(ctx context.Context, by strategy, tick func()) ([]Step, *sim.Summary,
	error) {
	r, err := s.newRunner()
	if err != nil {
		return nil, nil, err
	}
	var t traces.Token
	var sequences traces.Sequences
	var use []int
	steps := make([]Step, 0, s.src.Tokens())
	for i := range s.src.Tokens() {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		if err := s.src.Token(i, &t); err != nil {
			return nil, nil, err
		}
		if sequences.Begins(t.Seq) {
			r.reset()
			if by.reset != nil {
				by.reset()
			}
		}
		phase := s.cfg.Budget.phase(i, r.Now())
		step := Step{Token: i, Seq: t.Seq, Pos: t.Pos, Budget: s.cfg.Budget.Changes[phase].Budget}
		room, err := s.room(step.Budget, t.Pos)
		if err != nil {
			return nil, nil, err
		}
		use = r.window.Use(use[:0])
		step.Chosen = by.next(moment{phase: phase, room: room, last: r.window.Window(), use: use})
		if err := r.token(&t, room, &step); err != nil {
			return nil, nil, err
		}
		steps = append(steps, step)
		tick()
	}
	return steps, r.sum.Summary(len(steps)), nil
}

func (s *study) newRunner() (*runner, error) {
	head := s.src.Header()
	machine, err := sim.NewMachine(&s.cfg.Sim, head, sim.MachineOptions{Seed: head.Seed})
	if err != nil {
		return nil, err
	}
	r := &runner{Machine: machine, s: s, copied: make([]int, head.Layers),
		window: policy.NewElastic(head.Layers, head.Units, s.cfg.Bounds.Max)}
	for range head.Layers {
		r.caches = append(r.caches, sim.NewCache(head.Units))
	}
	return r, nil
}

func (r *runner) reset() {
	r.window.Reset()
	for l := range r.caches {
		r.caches[l].Reset()
		r.copied[l] = 0
	}
}

// token simulates one token with the chosen window, top to bottom.
func (r *runner) token(t *traces.Token, room int, step *Step) error {
	began := r.Now()
	for l, n := range r.evictEarly(r.window.Begin(step.Chosen), step) {
		r.copied[l] += n
	}
	most := 0
	for l, need := range t.Masks(r.s.cfg.Sim.Predicted) {
		if err := r.layer(l, need, t.Pos, room, step); err != nil {
			return err
		}
		most = max(most, r.window.InUse())
	}
	last := r.ChargeToken()
	r.sum.Token(&last, r.EndToken(&last).Took)
	model := &r.s.cfg.Model
	step.Window, step.Latency = r.window.Window(), r.Now()-began
	step.Memory = r.s.floor[t.Pos] - r.s.cache + units.Bytes(most)*model.CachedRow()
	return nil
}

// evictEarly evicts rows before the next read, after the rows that the previous token evicted. It
// returns the rows copied, by layer.
func (r *runner) evictEarly(early [][]uint32, step *Step) (copies []int) {
	copies = make([]int, len(early))
	for l, units := range early {
		copies[l], _ = r.caches[l].Apply(nil, units)
		if len(units) > 0 {
			more, _ := r.caches[l].Apply(nil, nil)
			copies[l] += more
			step.EvictedEarly += len(units)
		}
	}
	return copies
}

// layer simulates one layer of a token.
func (r *runner) layer(l int, need mask.Mask, pos uint32, room int, step *Step) error {
	work := r.decide(l, need, room, step)
	times := r.Charge(int(pos), &work)
	one, err := r.Execute(l, &work, r.dec.Load, &times)
	if err != nil {
		return err
	}
	r.sum.Step(&one)
	step.Loads += work.Loads
	step.Needed += work.Need
	return nil
}

// decide takes the decisions of one layer. If the layer needs more rows than there is room for, the
// window shrinks first, in all layers.
func (r *runner) decide(l int, need mask.Mask, room int, step *Step) sim.Work {
	if early := r.window.Step(l, need, room, &r.dec); early != nil {
		for _, n := range r.evictEarly(early, step) {
			r.copied[l] += n
		}
	}
	work := sim.Work{Need: r.dec.Hits + len(r.dec.Load), Hits: r.dec.Hits, Loads: len(r.dec.Load),
		Evictions: len(r.dec.Evict)}
	work.Copies, work.Resident = r.caches[l].Apply(r.dec.Load, r.dec.Evict)
	work.Copies += r.copied[l]
	r.copied[l] = 0
	return work
}

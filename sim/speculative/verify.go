package speculative

import (
	"github.com/windrow-sim/windrow/devicemodels"
	"github.com/windrow-sim/windrow/internal/mask"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/sim"
	"github.com/windrow-sim/windrow/traces"
)

// layer is the memory of one layer.
type layer struct {
	resident    mask.Mask
	cache       sim.Cache
	load, evict []uint32 // of one verification, reused
}

// runner is the state of one simulation of one λ.
type runner struct {
	*sim.Machine
	cfg    *sim.Config
	head   *traces.Header
	kv     devicemodels.Term
	tokens *recent
	layers []layer
	batch  [][]mask.Mask // masks of a verification, reused
	window [][]mask.Mask // of the window that a verification leaves, reused
	need   mask.Mask     // union of a layer
	keep   mask.Mask
}

// sums add up the verifications that count.
type sums struct {
	sim.Tally
	verifications int
	tokens        int // accepted by draws; 0 with a mean acceptance
}

// compute is the time of all parts but I/O and memory.
func (s *sums) compute() units.Nanos {
	return s.Wall() - s.Parts[traces.PartIO] - s.Parts[traces.PartMemory]
}

// needed counts the units that the verifications need.
func (s *sums) needed() int64 { return s.Hits + s.Loads }

func newRunner(src traces.Source, cfg *sim.Config, draft int) (*runner, error) {
	head := src.Header()
	machine, err := sim.NewMachine(cfg, head, sim.MachineOptions{Seed: head.Seed})
	if err != nil {
		return nil, err
	}
	r := &runner{
		Machine: machine, cfg: cfg, head: head, kv: cfg.Device.Host.At(head.DType).KV,
		tokens: newRecent(src, cfg.Policy.Window+draft+1), layers: make([]layer, head.Layers),
		need: mask.New(head.Units), keep: mask.New(head.Units),
	}
	for l := range r.layers {
		r.layers[l] = layer{resident: mask.New(head.Units), cache: sim.NewCache(head.Units)}
	}
	return r, nil
}

func (r *runner) reset() {
	for l := range r.layers {
		clear(r.layers[l].resident)
		r.layers[l].cache.Reset()
	}
}

// verify simulates one verification of the tokens from, from+1, … of a sequence that began with
// token start. The window that it leaves ends with its token last, counted from 1.
func (r *runner) verify(start, from, size, last int) (sim.Tally, error) {
	var sum sim.Tally
	positions, err := r.gather(start, from, size, last)
	if err != nil {
		return sum, err
	}
	for l := range r.layers {
		if err := r.layer(l, positions, &sum); err != nil {
			return sum, err
		}
	}
	token := r.ChargeToken()
	sum.Token(&token, r.EndToken(&token).Took)
	return sum, nil
}

// gather collects the masks of a verification and of its window, and returns the positions of its
// tokens.
func (r *runner) gather(start, from, size, last int) (positions []uint32, err error) {
	masks := func(into [][]mask.Mask, from, end int) ([][]mask.Mask, error) {
		for i := from; i < end; i++ {
			t, err := r.tokens.at(i)
			if err != nil {
				return nil, err
			}
			into = append(into, t.Masks(r.cfg.Predicted))
		}
		return into, nil
	}
	if r.batch, err = masks(r.batch[:0], from, from+size); err != nil {
		return nil, err
	}
	if r.window, err = masks(r.window[:0], max(from+last-r.cfg.Policy.Window, start),
		from+last); err != nil {
		return nil, err
	}
	for i := from; i < from+size; i++ {
		t, err := r.tokens.at(i)
		if err != nil {
			return nil, err
		}
		positions = append(positions, t.Pos)
	}
	return positions, nil
}

// layer simulates one layer of a verification of tokens at the given positions. Each of them reads
// keys and values.
func (r *runner) layer(l int, positions []uint32, sum *sim.Tally) error {
	work := r.decide(l)
	at := len(positions) - 1
	times := r.Charge(int(positions[at]), &work)
	for _, pos := range positions[:at] {
		times.Attention += r.kv.Time(r.head.Shape.KVBytes()*units.Bytes(pos+1), 1)
	}
	step, err := r.Execute(l, &work, r.layers[l].load, &times)
	if err != nil {
		return err
	}
	sum.Step(&step)
	return nil
}

// decide returns the loads and evictions of a layer. Everything outside the window is evicted. Rows
// of the window that were evicted before are not read again.
func (r *runner) decide(l int) (work sim.Work) {
	y := &r.layers[l]
	union(r.need, r.batch, l)
	union(r.keep, r.window, l)
	work.Need, work.Hits = r.need.Count(), r.need.CountAnd(y.resident)
	y.load = r.need.AppendAndNot(y.load[:0], y.resident)
	y.resident.Or(r.need)
	y.evict = y.resident.AppendAndNot(y.evict[:0], r.keep)
	y.resident.And(r.keep)
	work.Loads, work.Evictions = len(y.load), len(y.evict)
	work.Copies, work.Resident = y.cache.Apply(y.load, y.evict)
	return work
}

// recent reads tokens of a trace and keeps the last few, so that overlapping batches and windows
// are read once.
type recent struct {
	src    traces.Source
	tokens []traces.Token // by index modulo its length
	index  []int          // −1 = none
}

func newRecent(src traces.Source, n int) *recent {
	r := &recent{src: src, tokens: make([]traces.Token, n), index: make([]int, n)}
	for i := range r.index {
		r.index[i] = -1
	}
	return r
}

// at returns token i. It is valid until a token n or more further on is read.
func (r *recent) at(i int) (*traces.Token, error) {
	slot := i % len(r.tokens)
	if r.index[slot] != i {
		if err := r.src.Token(i, &r.tokens[slot]); err != nil {
			return nil, err
		}
		r.index[slot] = i
	}
	return &r.tokens[slot], nil
}

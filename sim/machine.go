package sim

import (
	"fmt"

	"github.com/windrow-sim/windrow/devicemodels/flash"
	"github.com/windrow-sim/windrow/internal/decisions/layout"
	"github.com/windrow-sim/windrow/internal/mask"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/traces"
)

// Machine simulates layers one after the other on the host, the GPU and the flash of one
// configuration. It has the clock. Every study of the simulator calls it for a layer, so that
// decisions, plans, charges and reads are the same in all of them.
//
// Layer is the whole step of a layer. A study that differs in one part calls the parts:
//
//	work, load := m.Decide(l, need)   units to load and to evict
//	times := m.Charge(pos, &work)     times of the host and of a GPU, without reads
//	step, err := m.Execute(l, &work, load, &times)
//	                                  plans the requests, reads them, advances the clock
//
// EndToken ends a token. A Machine is not safe for concurrent use.
type Machine struct {
	cfg     *Config
	head    *traces.Header
	host    *Host
	streams *Streams // of a GPU; nil without one
	planner *layout.Planner
	station *flash.Station // nil where reads are timed by a table
	table   ReadTable
	layers  []*Layer

	now      units.Nanos
	resident int // rows, of the layers of this token so far
	plan     layout.Plan
	reads    []flash.Read
}

// MachineOptions are the parts of a Machine that a study chooses. The zero value is a machine
// without policies whose reads are discrete events.
type MachineOptions struct {
	// the trace for Config.Policies; nil where the study decides itself and never calls Decide
	Policies traces.Source
	Table    ReadTable // times the reads; nil = as events
	Seed     uint64    // of the random draws of the flash
}

// ReadTable times batches of reads without events.
type ReadTable interface {
	// Time returns how long a batch of n ≥ 1 reads of total bytes takes, and the sum of the times
	// in flight of its reads.
	Time(n int, total units.Bytes) (took, inFlight units.Nanos, err error)
}

// Step is the result of one layer of one token.
type Step struct {
	Work     Work
	Requests int
	Bytes    units.Bytes // of the requests
	// Parts are the times on the host's clock, by traces.Part; PartOther is not of a layer.
	Parts    [traces.Parts]Spent
	InFlight units.Nanos // sum over the requests of their times in flight
	Moved    units.Bytes // over the link of the flash
	Bounded  units.Nanos // of the host's times, at the roofline
	Traffic  units.Bytes // of memory while computing
}

// NewMachine returns a machine for a checked configuration and a trace with this header, with
// nothing in memory at time 0. Errors are of kind ErrConfig, or those of the trace.
func NewMachine(cfg *Config, head *traces.Header, opt MachineOptions) (*Machine, error) {
	planner, err := layout.NewPlanner(cfg.Geometry, cfg.Layout)
	if err != nil {
		return nil, configError{err}
	}
	m := &Machine{cfg: cfg, head: head, host: cfg.NewHost(head), planner: planner,
		table: opt.Table}
	m.streams = m.host.NewStreams()
	if m.table == nil {
		if m.station, err = cfg.NewStation(opt.Seed); err != nil {
			return nil, err
		}
	}
	if opt.Policies != nil {
		if m.layers, err = cfg.Layers(opt.Policies); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// Host charges the times of the machine.
func (m *Machine) Host() *Host { return m.host }

// Now is the machine's clock.
func (m *Machine) Now() units.Nanos { return m.now }

// WaitUntil moves the clock on to a time, if it is later.
func (m *Machine) WaitUntil(at units.Nanos) { m.now = max(m.now, at) }

// Reset empties the memory of all layers, as a new sequence does. The clock goes on.
func (m *Machine) Reset() {
	for _, l := range m.layers {
		l.Reset()
	}
}

// Layer decides, plans, charges and reads one layer for the units of a mask: those of a token at a
// position, or the union of several tokens of which the last is at that position.
func (m *Machine) Layer(l, pos int, need mask.Mask) (Step, error) {
	work, load := m.Decide(l, need)
	times := m.Charge(pos, &work)
	return m.Execute(l, &work, load, &times)
}

// Decide returns the decisions of a layer's policy for the units of a mask: counts, and the units
// to load, ascending and valid until the next call for the layer.
func (m *Machine) Decide(l int, need mask.Mask) (Work, []uint32) { return m.layers[l].Step(need) }

// Charge returns the times of a layer for a token at a position, without its reads. A study may add
// to the times before it calls Execute.
func (m *Machine) Charge(pos int, w *Work) LayerTimes { return m.host.Layer(pos, w) }

// Execute plans the requests for the units to load, and simulates the parts of the layer from now
// on: attention, predict, reads, memory and FFN.
func (m *Machine) Execute(l int, w *Work, load []uint32, t *LayerTimes) (Step, error) {
	m.planner.Plan(l, load, &m.plan)
	s := Step{Work: *w, Requests: len(m.plan.Requests), Bytes: m.plan.Bytes}
	m.before(&s, t)
	batch, err := m.read(m.now + m.streams.Sync(m.now))
	if err != nil {
		return Step{}, err
	}
	s.InFlight, s.Moved = batch.Sojourn, batch.Moved
	m.after(&s, t, batch.End-m.now)
	if uint64(m.now) > uint64(flash.Last) { // a sum that overflowed is negative
		return Step{}, fmt.Errorf("sim: layer %d: %w", l, flash.ErrClock)
	}
	return s, nil
}

// ExecuteTimed is Execute for reads whose time is known: they take so long, once the staging buffer
// is free. inFlight is the sum of their times in flight.
func (m *Machine) ExecuteTimed(w *Work, t *LayerTimes, took, inFlight units.Nanos) Step {
	s := Step{Work: *w, InFlight: inFlight}
	m.before(&s, t)
	m.after(&s, t, m.streams.Sync(m.now)+took)
	return s
}

// before simulates the parts before the reads.
func (m *Machine) before(s *Step, t *LayerTimes) {
	m.spend(s, traces.PartAttention, m.streams.Attention(m.now, t))
	m.spend(s, traces.PartPredict, Spent{Took: t.Predict})
}

// read simulates the reads of the plan from a time on.
func (m *Machine) read(start units.Nanos) (flash.BatchResult, error) {
	if m.table == nil {
		m.reads = appendReads(m.reads[:0], m.plan.Requests)
		return m.station.Batch(start, m.reads)
	}
	if len(m.plan.Requests) == 0 {
		return flash.BatchResult{End: start}, nil
	}
	took, inFlight, err := m.table.Time(len(m.plan.Requests), m.plan.Bytes)
	return flash.BatchResult{End: start + took, Sojourn: inFlight, Moved: m.plan.Bytes}, err
}

// submit plans and starts the demand reads of a layer that go on beside others, under a Schedule.
// The plan is valid until the next call of submit or Execute. The group is nil where there is
// nothing to read.
func (m *Machine) submit(l int, load []uint32) (*layout.Plan, *flash.Group, error) {
	m.planner.Plan(l, load, &m.plan)
	if len(m.plan.Requests) == 0 {
		return &m.plan, nil, nil
	}
	m.reads = appendReads(m.reads[:0], m.plan.Requests)
	group, err := m.station.Submit(m.now, flash.Demand, m.reads)
	return &m.plan, &group, err
}

// after spends the time of the reads, and simulates the parts after them.
func (m *Machine) after(s *Step, t *LayerTimes, reads units.Nanos) {
	m.spend(s, traces.PartIO, Spent{Took: reads})
	m.spend(s, traces.PartMemory, m.streams.Memory(m.now, t))
	m.spend(s, traces.PartFFN, m.streams.FFN(m.now, t))
	s.Bounded, s.Traffic = t.Bounded, t.Traffic
	m.resident += s.Work.Resident
}

func (m *Machine) spend(s *Step, part traces.Part, spent Spent) {
	s.Parts[part] = spent
	m.now += spent.Took
}

// ChargeToken returns the times of the end of a token, after all its layers: the output head, and
// the cost of resident rows. A study may add to the times before it calls EndToken.
func (m *Machine) ChargeToken() TokenTimes { return m.host.Token(m.resident) }

// EndToken simulates the end of a token.
func (m *Machine) EndToken(t *TokenTimes) Spent {
	spent := m.streams.Token(m.now, t)
	m.now += spent.Took
	m.resident = 0
	return spent
}

// appendReads appends the requests of a plan as reads of the flash.
func appendReads(reads []flash.Read, requests []layout.Request) []flash.Read {
	for _, q := range requests {
		reads = append(reads, flash.Read{Offset: units.Bytes(q.Offset),
			Length: units.Bytes(q.Length)})
	}
	return reads
}

package answers

import (
	"fmt"

	"github.com/windrow-sim/windrow/devicemodels"
	"github.com/windrow-sim/windrow/devicemodels/flash"
	"github.com/windrow-sim/windrow/internal/decisions/memory"
	"github.com/windrow-sim/windrow/internal/ioengine"
	"github.com/windrow-sim/windrow/internal/units"
)

// Verdict says whether and how a runtime of a class runs, in the words of the report.
type Verdict string

// The verdicts.
const (
	VerdictFits       Verdict = "fits"
	VerdictPages      Verdict = "survives by paging"
	VerdictMixed      Verdict = "part of it on disk"
	VerdictAllDisk    Verdict = "all-disk placement"
	VerdictAllocFails Verdict = "allocation fails"
	VerdictNoCapacity Verdict = "host offload adds no capacity on unified memory"
	VerdictUnknown    Verdict = "not known"
)

// Runs reports whether the runtime produces tokens.
func (v Verdict) Runs() bool {
	return v == VerdictFits || v == VerdictPages || v == VerdictMixed || v == VerdictAllDisk
}

// Machine is the memory of a machine, with its device model if there is one.
type Machine struct {
	// available to the process; on unified memory of CPU and accelerator together
	Memory units.Bytes `json:"memory_bytes"`
	// the accelerator's own memory; 0 = memory is unified
	Accelerator units.Bytes `json:"accelerator_bytes,omitempty"`
	Context     int         `json:"context"` // positions of the KV cache
	// KVElement is the size of one number of a key or a value; 0 = memory.KVElement.
	KVElement units.Bytes `json:"kv_element_bytes"`
	// Device gives the rates; nil = verdicts only. Engine is a key of its flash.engines, Parallel
	// the reads in flight.
	Device   *devicemodels.Device `json:"-"`
	Engine   string               `json:"engine,omitempty"`
	Parallel int                  `json:"parallel,omitempty"`
}

// Unified reports whether CPU and accelerator share one memory.
func (m *Machine) Unified() bool { return m.Accelerator == 0 }

// Runtime is the verdict on one class of runtimes.
type Runtime struct {
	Class   string  `json:"class"`
	Systems string  `json:"systems"` // of the study; "" = none is named
	Verdict Verdict `json:"verdict"`
	Reason  string  `json:"reason"`
	// ReadLeast and ReadMost bound the bytes that a token reads from flash. The rates are upper
	// bounds of tokens per second by reads and memory. RateMost has ReadLeast. RateLeast has
	// ReadMost or, of class flash, reads of single records. 0 = not known, or it does not run.
	ReadLeast units.Bytes `json:"read_least_bytes"`
	ReadMost  units.Bytes `json:"read_most_bytes"`
	RateMost  float64     `json:"bound_tokens_per_s"`
	RateLeast float64     `json:"bound_of_worst_reads_tokens_per_s"`
}

// Feasibility has the verdicts for a model on a machine.
type Feasibility struct {
	Model   Footprint   `json:"model"`
	Machine Machine     `json:"machine"`
	KV      units.Bytes `json:"kv_bytes"`
	Device  string      `json:"device,omitempty"`
	Rows    []Runtime   `json:"classes"`
}

// AssessFeasibility judges every class. Errors wrap ErrInput.
func AssessFeasibility(model Footprint, machine Machine) (*Feasibility, error) {
	if model.Bytes <= 0 || model.FFN <= 0 || model.FFN > model.Bytes || model.Layers <= 0 {
		return nil, fmt.Errorf("answers: model %s: %v of weights, %v of them FFN, in %d "+
			"layers: not a model: %w", model.Name, model.Bytes, model.FFN, model.Layers, ErrInput)
	}
	const most = 1 << 24 // positions: their bytes are in range
	if machine.KVElement == 0 {
		machine.KVElement = memory.KVElement
	}
	if machine.KVElement < 1 || machine.KVElement > 8 {
		return nil, fmt.Errorf("answers: %d B for a number of a key or a value: 1 to 8 are "+
			"possible: %w", int64(machine.KVElement), ErrInput)
	}
	if machine.Memory <= 0 || machine.Accelerator < 0 || machine.Context < 1 ||
		machine.Context > most {
		return nil, fmt.Errorf("answers: %v of memory, %v of the accelerator, %d positions: "+
			"memory and positions must be positive: %w", machine.Memory, machine.Accelerator,
			machine.Context, ErrInput)
	}
	q := assessment{model: model, machine: machine, kv: units.Bytes(model.KV) * machine.KVElement *
		units.Bytes(machine.Context)}
	if err := q.rates(); err != nil {
		return nil, err
	}
	known, err := classes()
	if err != nil {
		return nil, err
	}
	a := &Feasibility{Model: model, Machine: machine, KV: q.kv}
	if machine.Device != nil {
		a.Device = machine.Device.Name
	}
	for _, c := range known {
		row := c.judge(&q)
		row.Class, row.Systems = c.name, c.systems
		a.Rows = append(a.Rows, row)
	}
	return a, nil
}

// assessment is a model on a machine, with the figures that several classes use.
type assessment struct {
	model   Footprint
	machine Machine
	kv      units.Bytes
	// Rates are 0 if they are not known.
	long   units.Rate // of reads of 1 MiB
	short  units.Rate // of single records
	faults units.Rate // of a mapped file whose pages are all missing
	memory units.Rate
	bus    units.Rate // to an accelerator
}

// readAhead is the size of the read of one fault of a mapped file (read_ahead_kb of Linux, 128 by
// default).
const readAhead = 128 * units.KiB

// rates sets the rates of the device.
func (q *assessment) rates() error {
	d := q.machine.Device
	if d == nil {
		return nil
	}
	if _, ok := d.Flash.Engines[q.machine.Engine]; !ok || q.machine.Parallel < 1 {
		return fmt.Errorf("answers: device %s: I/O engine %q with %d reads in flight: not in "+
			"its model: %w", d.Name, q.machine.Engine, q.machine.Parallel, ErrInput)
	}
	q.long = d.Flash.Throughput(q.machine.Engine, d.Host.Cores, units.MiB, q.machine.Parallel)
	q.short = d.Flash.Throughput(q.machine.Engine, d.Host.Cores, q.model.Record, q.machine.Parallel)
	spec := d.Flash
	if spec.PageCache == nil || !spec.Engines[ioengine.Mmap].Cached {
		spec.Engines = map[string]flash.EngineCost{ioengine.Mmap: {Cached: true}}
		// the host's time per fault is not known, so that the rate is a bound
		spec.PageCache = &flash.PageCache{ReadAhead: readAhead}
	}
	q.faults = spec.Throughput(ioengine.Mmap, 1, units.GiB, 1)
	q.memory, q.bus = d.Host.MemoryRate, d.Host.TransferRate
	return nil
}

// tokens is the upper bound of tokens per second by reads from flash and by reads from memory, if
// both run at the same time.
func (q *assessment) tokens(read units.Bytes, flash units.Rate, used units.Bytes) float64 {
	if q.memory <= 0 || read > 0 && flash <= 0 {
		return 0
	}
	slowest := float64(used) / float64(q.memory)
	if read > 0 {
		slowest = max(slowest, float64(read)/float64(flash))
	}
	return 1 / slowest
}

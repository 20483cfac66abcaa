package sweep

import (
	"unsafe"

	"github.com/windrow-sim/windrow/devicemodels"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/sim"
	"github.com/windrow-sim/windrow/traces"
)

const (
	// perConfiguration is the state of a configuration besides its cells and latencies: the
	// simulation, its place in lists, and the share of its requests.
	perConfiguration = int(unsafe.Sizeof(simulation{})) + 1024
	// A latency that differs from others takes latencyBytes. Few traces have more than
	// mostLatencies.
	latencyBytes, mostLatencies = 48, 1024
	// tableBytes is the size of the table of a device, an engine and a depth after a pass.
	tableBytes = 512 << 10
	// A machine with a flash station takes machineBytes, slotBytes for each request in flight, and
	// unitBytes for each unit of a layer, all of which one layer may read.
	machineBytes, slotBytes, unitBytes = 8 << 10, 128, 48
)

// load estimates what the configurations of a pass take. It is more than they take
// (TestMemoryOfManyConfigurations).
type load struct {
	memory int // bytes
	work   int // configurations times cells of the trace; see eventWork
	cells  int // of the trace
	count  int
	most   int // bytes of a pass

	head     *traces.Header
	tokens   int
	headroom units.Bytes // for one policy
	seen     map[any]bool
	longest  int // window
}

func (s *sweeper) newLoad(tokens int) *load {
	l := &load{head: s.trace.Header(), tokens: tokens, most: s.memory, seen: map[any]bool{},
		longest: -blockTokens}
	l.cells = tokens * l.head.Layers
	if s.opt.Headroom {
		l.headroom = headroomBytes(l.head, tokens)
	}
	return l
}

// hostKey holds everything that the times of a host depend on.
type hostKey struct {
	set      setKey
	device   *devicemodels.Device
	rank     int
	backend  sim.Backend
	observed bool
}

// once reports whether something is seen for the first time.
func (l *load) once(key any) bool {
	first := !l.seen[key]
	l.seen[key] = true
	return first
}

// overfull adds a configuration, and reports whether it does not fit any more. The first one always
// fits.
func (l *load) overfull(cfg *Config, tables bool) bool {
	l.add(cfg, tables)
	l.count++
	return l.count > 1 && (l.memory > l.most || l.work > max(passWork, l.cells*leastShared))
}

// add adds a configuration.
func (l *load) add(cfg *Config, tables bool) {
	cells := l.head.Layers * blockTokens
	set := setKey{cfg.Predicted, cfg.Policy}
	if l.once(set) {
		// the slots; the state of other policies is of the same order
		perPolicy := l.head.Layers * l.head.Units * 8
		l.memory += perPolicy + cells*100 + int(l.headroom)
		if !set.spec.PlainWindow() {
			l.memory += perPolicy
		}
	}
	if l.once(hostKey{set, cfg.Device, cfg.PredictorRank, cfg.Backend, cfg.Observed}) {
		l.memory += (cells + 2*blockTokens) * int(unsafe.Sizeof(sim.LayerTimes{}))
	}
	if set.spec.PlainWindow() && set.spec.Window > l.longest { // the history of masks
		l.memory += (set.spec.Window - l.longest) * l.head.Layers * l.head.Words() * 8
		l.longest = set.spec.Window
	}
	l.memory += perConfiguration + latencyBytes*min(l.tokens, mostLatencies) + cells*36 +
		l.head.Layers*int(unsafe.Sizeof(audit{}))
	if !tables || !Tabular(&cfg.Config) || cfg.Backend != sim.OnHost {
		l.memory += machineBytes + cfg.Parallel*slotBytes + l.head.Units*unitBytes
	}
	if tables && Tabular(&cfg.Config) {
		l.work += l.cells
		if l.once(tableKey{cfg.Device, cfg.Engine, cfg.Parallel, cfg.Layout.Align}) {
			l.memory += tableBytes
		}
		return
	}
	l.work += l.cells * eventWork
	if l.once(struct{ setKey }{set}) { // the units that a cell reads
		l.memory += cells * l.head.Words() * 8
	}
}

// headroomBytes is the memory that the fewest loads of one policy take.
func headroomBytes(head *traces.Header, tokens int) units.Bytes {
	return units.Bytes(head.Layers) * (4*units.Bytes(head.Units) + 8*units.Bytes(tokens))
}

package engine

import (
	"github.com/windrow-sim/windrow/internal/mask"
	"github.com/windrow-sim/windrow/internal/units"
)

// Span is a period of measured time. Start counts from the creation of the engine, on the monotonic
// clock.
type Span struct{ Start, Dur units.Nanos }

// LayerEvent describes one layer for one token.
type LayerEvent struct {
	Layer int
	// batch entry: the token's index in the step, from 0. Times and counters belong to the step and
	// are in the event of entry 0.
	Entry int
	// Active is the true mask of the computed units: bit u is set when unit u's value is not zero.
	// Valid during the call only.
	Active mask.Mask
	// Values are the values of the computed units, ascending by unit. The units with a value other
	// than zero are those of Active. Valid during the call only.
	Values []float32
	// Feature is the input of predictors (d_model), of the kind of Config.FeatureKind. Valid during
	// the call only.
	Feature     []float32
	FeatureKind FeatureKind

	// Need is the mask of the units to compute, nil = all. True is the true mask over all units,
	// with Config.Check. Valid during the call only.
	Need, True mask.Mask

	// Attention, Predict, IO, Memory and FFN are measured by the host's clock. The host waits for a
	// device at the end of Attention, Memory and FFN. Device is measured by the device's own clock,
	// if it has one.
	Attention, Predict, IO, Memory, FFN Span
	Device                              DeviceTimes
	// Wait holds the host's waits for a device, which are part of the spans. Zero without an
	// observer of times.
	Wait DeviceTimes

	Hits, Misses, Evictions, Requests int
	Bytes                             units.Bytes // read from flash
	Copied                            units.Bytes // moved in the row cache
	// needed units without room, which were left out at a loss
	Dropped int
	// Prefetch is the time of this layer's prefetches in the background. IO is then the wait for
	// them.
	Prefetch units.Nanos
}

// TokenEvent ends a token.
type TokenEvent struct {
	Token Token
	Entry int
	Other Span // final norm and output head
	// Device has the time of the output head by a device's own clock, where it has one.
	Device DeviceTimes
}

// Observer gets the engine's events in order: every layer of a token, then the token. An error
// stops the run. Recorders and measurements are Observers; the engine imports neither.
type Observer interface {
	Layer(ev *LayerEvent) error
	Token(ev *TokenEvent) error
}

// Counting is an Observer of counters only, unless there is a Config.Check. The engine then neither
// copies results from a device nor waits for it, so the times are not those of the work.
type Counting interface {
	Observer
	CountsOnly()
}

// Timing is an Observer of counters and times only, unless there is a Config.Check. The engine then
// copies no results from a device, because the copies would lie between the times.
type Timing interface {
	Observer
	TimesOnly()
}

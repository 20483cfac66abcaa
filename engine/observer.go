package engine

import (
	"github.com/windrow-sim/windrow/internal/mask"
	"github.com/windrow-sim/windrow/internal/units"
)

// Span is a stretch of measured time; Start counts from the creation of the engine, on the
// monotonic clock.
type Span struct{ Start, Dur units.Nanos }

// LayerEvent is what happened in one layer for one token.
type LayerEvent struct {
	Layer int
	// which token of the step, from 0; times and counters are the whole step's and come with the
	// first
	Entry int
	// Active is the true mask of the units that were computed: bit u is set when unit u's value is
	// not zero. It is valid during the call only.
	Active mask.Mask
	// Values are the values of the computed units, ascending by unit; those that are not zero are
	// the units of Active. Valid during the call only.
	Values []float32
	// Feature is what predictors predict from (d_model), of the kind of Config.FeatureKind. Valid
	// during the call only.
	Feature     []float32
	FeatureKind FeatureKind

	// Need is what the token was given to compute, nil = everything; True what would have been
	// active had all been computed, with Config.Check. Valid during the call only.
	Need, True mask.Mask

	// Attention, Predict, IO, Memory, FFN are by the host's clock, which waits for a device at the
	// end of Attention, Memory and FFN. Device is by that device's own, where it has one.
	Attention, Predict, IO, Memory, FFN Span
	Device                              DeviceTimes
	// Wait is how long the host waited for a device at those ends: part of the spans. Zero where
	// nobody looks at times.
	Wait DeviceTimes

	Hits, Misses, Evictions, Requests int
	Bytes                             units.Bytes // asked from flash
	Copied                            units.Bytes // moved in the row cache
	// needed units for which there was no room: they were left out, at a loss
	Dropped int
	// Ahead is how long the reads of this layer took in the background, where they were announced;
	// IO is then what was waited for.
	Ahead units.Nanos
}

// TokenEvent ends a token.
type TokenEvent struct {
	Token Token
	Entry int
	Other Span // final norm and output head
	// Device has the time of the output head by a device's own clock, where it has one.
	Device DeviceTimes
}

// Observer sees what the engine does, in order: every layer of a token, then the token. An error
// stops the run. Recorders and measurements are Observers; the engine imports neither.
type Observer interface {
	Layer(ev *LayerEvent) error
	Token(ev *TokenEvent) error
}

// Counting is an Observer that looks at counters only, unless there is a Config.Check: a backend
// elsewhere need not bring back what was computed, nor wait for it, so that times are not those of
// the work.
type Counting interface {
	Observer
	CountsOnly()
}

// Timing is an Observer that looks at counters and times only, unless there is a Config.Check: what
// was computed is not brought back, which would lie between the times of a device.
type Timing interface {
	Observer
	TimesOnly()
}

// Package schedule says when the reads of a token are submitted. The engine runs a schedule and the
// simulator predicts it; both mean the same by its name. It is pure and a leaf.
//
// A schedule moves reads in time. What is read, kept and evicted stays the policy's decision.
package schedule

import (
	"errors"
	"fmt"
	"math"

	"github.com/windrow-sim/windrow/internal/nearest"
	"github.com/windrow-sim/windrow/internal/units"
)

// ErrSpec is wrapped by every error about a schedule that cannot be read or run.
var ErrSpec = errors.New("not a usable schedule")

// Kind names a schedule. The zero value is Demand.
type Kind string

// The kinds of schedules.
const (
	// Demand reads what a layer lacks when its attention is done, and waits for it.
	Demand Kind = ""
	// LookAhead prefetches, while a layer computes, what a prediction names for the next one. Layer
	// 0 reads on demand: nothing is known of a token before its predecessor is complete.
	LookAhead Kind = "lookahead"
	// Token prefetches all layers at once, when layer 0 has computed (NeuroPrefetcher). Layer 0
	// reads nothing itself: it is dense.
	Token Kind = "token"
)

// demand is the name of Demand.
const demand = "demand"

// Names returns the names of all kinds.
func Names() []string { return []string{demand, string(LookAhead), string(Token)} }

// Parse returns the kind of a name; "" is Demand. Errors wrap ErrSpec.
func Parse(name string) (Kind, error) {
	switch kind := Kind(name); kind {
	case demand:
		return Demand, nil
	case Demand, LookAhead, Token:
		return kind, nil
	}
	best, _ := nearest.Name(name, Names())
	return "", fmt.Errorf("schedule: there is no schedule %q; did you mean %s? The schedules are "+
		"%s, %s and %s: %w", name, best, demand, LookAhead, Token, ErrSpec)
}

// Check refuses a kind that is none of the constants. Errors wrap ErrSpec.
func (k Kind) Check() error {
	switch k {
	case Demand, LookAhead, Token:
		return nil
	case demand:
		return fmt.Errorf("schedule: the kind %q is written as the empty one: %w", demand, ErrSpec)
	}
	_, err := Parse(string(k))
	return err
}

// String returns the name.
func (k Kind) String() string {
	if k == Demand {
		return demand
	}
	return string(k)
}

// Spec is a schedule with what it needs of memory. The zero value reads on demand.
type Spec struct {
	Kind Kind `json:"kind"`
	// Dense is the number of layers at the start whose units are all in memory for good: they read
	// nothing and multiply with everything.
	Dense int `json:"dense"`
	// Staging is the size of the buffer that prefetches are read into (layout.Planner.Batches). 0
	// stands for a buffer that grows to the largest layer's reads, Unlimited for one without end.
	Staging units.Bytes `json:"staging,omitempty"`
}

// Unlimited is a staging buffer without end. Only the simulator has one: it submits all prefetches
// when they are known, however much is under way.
const Unlimited units.Bytes = math.MaxInt64

// Check refuses what a model of so many layers cannot be run with. Errors wrap ErrSpec.
func (s Spec) Check(layers int) error {
	if err := s.Kind.Check(); err != nil {
		return err
	}
	switch {
	case s.Kind == Demand && s != Spec{}:
		return fmt.Errorf("schedule: reading on demand has no dense prefix and no staging buffer; "+
			"choose the schedule %s or %s: %w", LookAhead, Token, ErrSpec)
	case s.Dense < 0 || s.Dense > layers:
		return fmt.Errorf("schedule: a dense prefix of %d layers; the model has %d: %w", s.Dense,
			layers, ErrSpec)
	case s.Dense == 0 && s.Kind == Token:
		return fmt.Errorf("schedule: %s predicts from layer 0, which reads nothing itself; give a "+
			"dense prefix of 1 layer or more: %w", Token, ErrSpec)
	case s.Staging < 0:
		return fmt.Errorf("schedule: a staging buffer of %d bytes: it must not be negative; 0 "+
			"stands for the largest layer's reads: %w", int64(s.Staging), ErrSpec)
	}
	return nil
}

package serving

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"

	"github.com/windrow-sim/windrow/internal/bounds"
	"github.com/windrow-sim/windrow/internal/rng"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/traces/arrivals"
)

// Source yields requests in order of their arrival; io.EOF ends it. *arrivals.Reader is one.
type Source interface {
	Next(*arrivals.Request) error
}

// Shape changes a source.
type Shape struct {
	Requests int64   // most requests; 0 = all
	Speedup  float64 // divides the times; 0 stands for 1
	// Rate replaces the times by Poisson arrivals, in requests per second. 0 keeps the times, +Inf
	// makes all requests arrive at once. Gaps are drawn for a rate of 1 and divided by Rate: the
	// same requests arrive in the same rhythm at any rate.
	Rate float64
	Seed uint64 // of the process
}

// Shaped is a source that a Shape changes.
type Shaped struct {
	src    Source
	shape  Shape
	gaps   *rand.Rand
	at     float64 // seconds at a rate of 1
	served int64
}

// requestRange is the range of Shape.Requests.
var requestRange = bounds.Range[int64]{Least: 0, Most: 1e9, Why: "more take weeks to simulate"}

// NewShaped returns src changed by a shape. Errors are of kind ErrConfig.
func NewShaped(src Source, shape Shape) (*Shaped, error) {
	if shape.Speedup == 0 {
		shape.Speedup = 1
	}
	if !(shape.Speedup > 0) || math.IsInf(shape.Speedup, 0) || !(shape.Rate >= 0) ||
		shape.Requests < 0 {
		return nil, fmt.Errorf("serving: %d requests at %g per second, %g times as fast: none "+
			"may be below 0: %w", shape.Requests, shape.Rate, shape.Speedup, ErrConfig)
	}
	if !requestRange.Has(shape.Requests) {
		return nil, fmt.Errorf("serving: requests: %d %s: %w", shape.Requests,
			requestRange.Refuse(shape.Requests), ErrConfig)
	}
	return &Shaped{src: src, shape: shape, gaps: rng.Stream(shape.Seed, "serving/gaps")}, nil
}

// longest is the latest arrival in seconds: a fourth of the range of units.Nanos, so that sums of a
// few times are in range too.
const longest = float64(units.Forever) / 4 / 1e9

// Next implements Source. A time beyond the clock is an error of kind ErrConfig.
func (s *Shaped) Next(r *arrivals.Request) error {
	if s.shape.Requests > 0 && s.served == s.shape.Requests {
		return io.EOF
	}
	if err := s.src.Next(r); err != nil {
		return err
	}
	if s.shape.Rate > 0 {
		if s.served > 0 { // the first arrives at 0, as in a file
			s.at += s.gaps.ExpFloat64()
		}
		r.At = 0
		if at := s.at / s.shape.Rate; at <= longest {
			r.At = units.FromSeconds(at)
		} else {
			return fmt.Errorf("serving: request %d would arrive after %.3g s: beyond the clock; "+
				"give a larger rate or speedup: %w", s.served+1, at, ErrConfig)
		}
	}
	if s.shape.Speedup != 1 {
		at := r.At.Seconds() / s.shape.Speedup
		if at > longest {
			return fmt.Errorf("serving: request %d would arrive after %.3g s: beyond the clock; "+
				"give a larger rate or speedup: %w", s.served+1, at, ErrConfig)
		}
		r.At = units.FromSeconds(at)
	}
	s.served++
	return nil
}

// Lengths draws requests without end, all at time 0. Shaped gives them times. Prompt and Output are
// mean lengths. With a Spread above 0, lengths are log-normal around the means with that standard
// deviation of the logarithm, clipped to 1 and arrivals.MaxTokens. With 0, all requests have the
// means.
type Lengths struct {
	Prompt, Output int
	Spread         float64
	random         *rand.Rand
}

// NewLengths returns a source that draws with a seed. Errors are of kind ErrConfig.
func NewLengths(prompt, output int, spread float64, seed uint64) (*Lengths, error) {
	const mostSpread = 5
	if prompt < 1 || output < 1 || prompt > arrivals.MaxTokens || output > arrivals.MaxTokens ||
		!(spread >= 0 && spread <= mostSpread) {
		return nil, fmt.Errorf("serving: %d prompt and %d output tokens with a spread of %g: at "+
			"least 1 of each and a spread of 0 to %d are possible: %w",
			prompt, output, spread, mostSpread, ErrConfig)
	}
	return &Lengths{prompt, output, spread, rng.Stream(seed, "serving/lengths")}, nil
}

// Next implements Source.
func (l *Lengths) Next(r *arrivals.Request) error {
	*r = arrivals.Request{Prompt: l.draw(l.Prompt), Output: l.draw(l.Output)}
	return nil
}

func (l *Lengths) draw(mean int) int {
	if l.Spread == 0 {
		return mean
	}
	v := float64(mean) * math.Exp(l.Spread*l.random.NormFloat64()-l.Spread*l.Spread/2)
	return int(math.Round(min(max(v, 1), arrivals.MaxTokens)))
}

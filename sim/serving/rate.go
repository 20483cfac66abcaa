package serving

import (
	"context"
	"fmt"
	"math"

	"github.com/windrow-sim/windrow/traces"
)

const (
	// sparse is the factor below the throughput of a saturated server at which requests count as
	// served one at a time.
	sparse = 1.0 / 1024
	// mostOver is the factor above that throughput at which the search ends. A server can finish
	// few requests at a rate that it cannot sustain.
	mostOver = 1024
	// precision is the largest ratio of two rates that count as equal.
	precision = 1.05
	// apart is the ratio of consecutive rates in the search for a good one.
	apart = 8
)

// Rate is the result of FindRate.
type Rate struct {
	Share float64 `json:"share_wanted"` // of requests that meet the objectives
	// PerSecond is the largest rate found at which that share meets them; 0 if single requests do
	// not, nil if all requests at once do.
	PerSecond *float64 `json:"requests_per_s"`
	// of PerSecond, or of all at once; nil if there is none
	At *Result `json:"at_that_rate"`
	// Saturated is the throughput with all requests at once. A PerSecond above it holds for this
	// number of requests only, because the queue grows.
	Saturated float64 `json:"saturated_requests_per_s"`
	Tried     []Trial `json:"tried"` // in the order tried
	// Stopped is Interrupted if the search is not finished. PerSecond is then the largest good rate
	// so far.
	Stopped Stop `json:"stopped,omitempty"`
}

// Trial is one rate of the search.
type Trial struct {
	PerSecond  float64 `json:"requests_per_s"` // 0 stands for all at once
	Attainment float64 `json:"slo_attainment"` // if GivenUp, the most that was still possible
	GivenUp    bool    `json:"given_up"`       // too many requests had missed the objectives
	Meets      bool    `json:"meets"`
	// of the times at this rate
	Basis traces.Basis `json:"basis"`
}

// FindRate searches the largest Poisson rate at which a share of the requests meets the objectives.
// It bisects the logarithm of the rate, to 5 %. load must return the same finite requests for every
// rate, as NewShaped with Shape.Rate does. The share is taken to fall with the rate. Where it does
// not (doc.go), the result is one of the rates at which it crosses. Errors are those of load and
// Run, or of kind ErrConfig. If the context ends, the trials so far are returned with the error.
func (s *Server) FindRate(ctx context.Context, share float64, load func(rate float64) (Source,
	error)) (*Rate, error) {
	if !(share > 0 && share <= 1) || s.cfg.TTFT == 0 && s.cfg.TPOT == 0 || s.cfg.Deadline > 0 {
		return nil, fmt.Errorf("serving: a rate at which a share of %g meets objectives of %v "+
			"and %v: the share is above 0 and at most 1, an objective and no deadline are "+
			"needed: %w",
			share, s.cfg.TTFT, s.cfg.TPOT, ErrConfig)
	}
	f := &finder{server: s, load: load, answer: &Rate{Share: share, Tried: []Trial{}}, most: -1}
	err := f.find(ctx)
	if err != nil && ctx.Err() == nil {
		return nil, err
	}
	if err != nil {
		f.answer.Stopped = Interrupted
	}
	return f.answer, err
}

type finder struct {
	server   *Server
	load     func(rate float64) (Source, error)
	answer   *Rate
	admitted int64 // requests that are not refused; 0 before the first trial
	most     int64 // requests that may miss the objectives; below 0: all
}

func (f *finder) find(ctx context.Context) error {
	all, ok, err := f.try(ctx, math.Inf(1))
	if err != nil {
		return err
	}
	f.answer.Saturated = all.RequestThroughput
	if ok {
		f.answer.At = all
		return nil
	}
	if all.Completed == 0 {
		return fmt.Errorf("serving: none of %d requests can be served: %w", all.Arrived, ErrConfig)
	}
	zero := 0.0
	f.answer.PerSecond = &zero
	low, high, err := f.bracket(ctx, all.RequestThroughput)
	if err != nil || low == 0 {
		return err
	}
	for high > low*precision {
		middle := math.Sqrt(low * high)
		if ok, err = f.keep(ctx, middle); err != nil {
			return err
		}
		if ok {
			low = middle
		} else {
			high = middle
		}
	}
	return nil
}

// bracket returns a good rate and a bad rate above it, both near the throughput of a saturated
// server. low is 0 if no rate is good.
func (f *finder) bracket(ctx context.Context, saturated float64) (low, high float64, err error) {
	for rate := saturated; rate >= saturated*sparse; rate /= apart {
		ok, err := f.keep(ctx, rate)
		if err != nil {
			return 0, 0, err
		}
		if ok {
			low = rate
			break
		}
		high = rate
	}
	if low == 0 || high > 0 {
		return low, high, nil
	}
	for high = 2 * low; high < saturated*mostOver; high *= 2 {
		ok, err := f.keep(ctx, high)
		if err != nil || !ok {
			return low, high, err
		}
		low = high
	}
	return low, high, nil
}

// keep tries a rate and remembers it if it is good.
func (f *finder) keep(ctx context.Context, rate float64) (bool, error) {
	r, ok, err := f.try(ctx, rate)
	if ok {
		f.answer.PerSecond, f.answer.At = &rate, r
	}
	return ok, err
}

func (f *finder) try(ctx context.Context, rate float64) (*Result, bool, error) {
	src, err := f.load(rate)
	if err != nil {
		return nil, false, err
	}
	r, err := f.server.run(ctx, src, f.most)
	if err != nil {
		return nil, false, err
	}
	if f.admitted == 0 {
		f.admitted = r.Arrived - r.Failed - r.Unfinished.TooLong - r.Unfinished.TooLarge
		f.most = f.admitted - int64(math.Ceil(f.answer.Share*float64(f.admitted)))
	}
	missed := r.Completed - r.Good
	t := Trial{PerSecond: rate, Attainment: 1 - per(float64(missed), float64(f.admitted)),
		GivenUp: r.Stopped == GivenUp, Basis: r.Basis}
	t.Meets = missed <= f.most && r.Completed > 0
	if math.IsInf(rate, 1) {
		t.PerSecond = 0
	}
	f.answer.Tried = append(f.answer.Tried, t)
	return r, t.Meets, nil
}

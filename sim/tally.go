package sim

import (
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/traces"
)

// Tally adds up the steps of a study.
type Tally struct {
	Parts                  [traces.Parts]units.Nanos
	Bytes                  units.Bytes
	Requests               int64
	Hits, Loads, Evictions int64
	InFlight               float64 // ns, sum over requests of their times in flight
	Bounded                units.Nanos
}

// Step adds a layer.
func (t *Tally) Step(s *Step) {
	for part := range t.Parts {
		t.Parts[part] += s.Parts[part].Took
	}
	t.Bytes += s.Bytes
	t.Requests += int64(s.Requests)
	t.Hits += int64(s.Work.Hits)
	t.Loads += int64(s.Work.Loads)
	t.Evictions += int64(s.Work.Evictions)
	t.InFlight += float64(s.InFlight)
	t.Bounded += s.Bounded
}

// Token adds the end of a token and its time.
func (t *Tally) Token(times *TokenTimes, took units.Nanos) {
	t.Parts[traces.PartOther] += took
	t.Bounded += times.Bounded
}

// Add adds another tally.
func (t *Tally) Add(o *Tally) {
	for part := range t.Parts {
		t.Parts[part] += o.Parts[part]
	}
	t.Bytes += o.Bytes
	t.Requests += o.Requests
	t.Hits += o.Hits
	t.Loads += o.Loads
	t.Evictions += o.Evictions
	t.InFlight += o.InFlight
	t.Bounded += o.Bounded
}

// Wall is the time of all parts.
func (t *Tally) Wall() (sum units.Nanos) {
	for _, took := range t.Parts {
		sum += took
	}
	return sum
}

// Summary returns the input of Config.Predict for tokens that follow each other without a pause.
func (t *Tally) Summary(tokens int) *Summary {
	totals := traces.Totals{Tokens: tokens, Wall: t.Wall(), PartNanos: t.Parts, Bytes: t.Bytes,
		Requests: t.Requests, Hits: t.Hits, Misses: t.Loads, Evictions: t.Evictions}
	if totals.Wall > 0 {
		totals.TokensPerS = float64(tokens) / totals.Wall.Seconds()
	}
	if n := t.Hits + t.Loads; n > 0 {
		totals.HitRatio = float64(t.Hits) / float64(n)
	}
	if io := t.Parts[traces.PartIO]; io > 0 {
		totals.MeanDepth = t.InFlight / float64(io)
	}
	return &Summary{Totals: totals, Bounded: t.Bounded}
}

package engine

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/windrow-sim/windrow/internal/rng"
)

// Sampling says how the next token is chosen from the logits.
type Sampling struct {
	Temperature float64 `json:"temperature"` // 0 = greedy: the largest logit, the lower id on a tie
	TopP        float64 `json:"top_p"`       // nucleus: the smallest set of most likely tokens with at least this probability; 0 or 1 = all
	Seed        uint64  `json:"seed"`
}

// String is the form written into traces and results.
func (s Sampling) String() string {
	if s.Temperature == 0 {
		return "greedy"
	}
	return fmt.Sprintf("temperature=%g top_p=%g seed=%d", s.Temperature, s.TopP, s.Seed)
}

// Sampler chooses tokens. Each sequence has a random stream of its own, so that one more sequence changes no other.
type Sampler struct {
	s      Sampling
	random *rand.Rand
	order  []candidate
}

type candidate struct {
	id uint32
	p  float64
}

// NewSampler checks s and returns the Sampler of sequence seq.
func NewSampler(s Sampling, seq int) (*Sampler, error) {
	if s.Temperature < 0 || math.IsNaN(s.Temperature) || math.IsInf(s.Temperature, 0) {
		return nil, fmt.Errorf("engine: temperature %g: it must be 0 (greedy) or more", s.Temperature)
	}
	if s.TopP < 0 || s.TopP > 1 || math.IsNaN(s.TopP) {
		return nil, fmt.Errorf("engine: top-p %g: it must lie between 0 and 1", s.TopP)
	}
	return &Sampler{s: s, random: rng.Stream(s.Seed, fmt.Sprintf("sample/sequence/%d", seq))}, nil
}

// Next returns the id of the next token.
func (s *Sampler) Next(logits []float32) uint32 {
	if s.s.Temperature == 0 {
		return argmax(logits)
	}
	s.order = s.order[:0]
	top := float64(logits[argmax(logits)])
	var sum float64
	for id, l := range logits {
		p := math.Exp((float64(l) - top) / s.s.Temperature)
		s.order = append(s.order, candidate{uint32(id), p})
		sum += p
	}
	if s.s.TopP > 0 && s.s.TopP < 1 {
		sum = s.nucleus(sum)
	}
	at := s.random.Float64() * sum
	for _, c := range s.order {
		if at -= c.p; at < 0 {
			return c.id
		}
	}
	return s.order[len(s.order)-1].id // rounding ate the last sliver
}

// nucleus cuts order to the most likely tokens and returns their weight.
func (s *Sampler) nucleus(sum float64) (kept float64) {
	slices.SortFunc(s.order, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.p, a.p), cmp.Compare(a.id, b.id))
	})
	for i, c := range s.order {
		kept += c.p
		if kept >= s.s.TopP*sum {
			s.order = s.order[:i+1]
			break
		}
	}
	return kept
}

func argmax(v []float32) uint32 {
	best := 0
	for i, x := range v {
		if x > v[best] {
			best = i
		}
	}
	return uint32(best)
}

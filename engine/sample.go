package engine

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/windrow-sim/windrow/internal/refusal"
	"github.com/windrow-sim/windrow/internal/rng"
)

// Sampling says how the next token is chosen from the logits. The order of the steps is that of
// transformers: penalty, temperature, top-k, top-p, min-p.
type Sampling struct {
	// 0 = greedy: the largest logit, the lower id on a tie
	Temperature float64 `json:"temperature"`
	TopK        int     `json:"top_k,omitempty"` // the K most likely tokens; 0 = all
	// nucleus: the smallest set of most likely tokens with at least this probability; 0 or 1 = all
	TopP float64 `json:"top_p"`
	// tokens at least this times as likely as the most likely one; 0 = all
	MinP float64 `json:"min_p,omitempty"`
	// logits of tokens that the sequence contains are divided by it when positive, else multiplied;
	// 0 or 1 = none (CTRL, section 4.1)
	Penalty float64 `json:"repetition,omitempty"`
	Seed    uint64  `json:"seed"`
}

// String returns the form in traces and results.
func (s Sampling) String() string {
	var list []string
	if s.Temperature == 0 {
		list = append(list, "greedy")
	} else {
		list = append(list, fmt.Sprintf("temperature=%g", s.Temperature))
		if s.TopK > 0 {
			list = append(list, fmt.Sprintf("top_k=%d", s.TopK))
		}
		list = append(list, fmt.Sprintf("top_p=%g", s.TopP))
		if s.MinP > 0 {
			list = append(list, fmt.Sprintf("min_p=%g", s.MinP))
		}
	}
	if s.penalises() {
		list = append(list, fmt.Sprintf("repetition=%g", s.Penalty))
	}
	if s.Temperature != 0 {
		list = append(list, fmt.Sprintf("seed=%d", s.Seed))
	}
	return strings.Join(list, " ")
}

func (s Sampling) penalises() bool { return s.Penalty != 0 && s.Penalty != 1 }

func (s Sampling) check() error {
	finite := func(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
	switch {
	case s.Temperature < 0 || !finite(s.Temperature):
		return fmt.Errorf("engine: temperature %g: it must be 0 (greedy) or more", s.Temperature)
	case !(s.TopP >= 0 && s.TopP <= 1):
		return refusal.Config("engine: {TopP} %g: it must lie between 0 and 1", s.TopP)
	case !(s.MinP >= 0 && s.MinP <= 1):
		return refusal.Config("engine: {MinP} %g: it must lie between 0 and 1", s.MinP)
	case s.TopK < 0:
		return refusal.Config("engine: {TopK} %d: it must be 0 (all) or more", s.TopK)
	case s.Penalty < 0 || !finite(s.Penalty):
		return fmt.Errorf("engine: repetition penalty %g: it must be above 0; 1 is none", s.Penalty)
	}
	return nil
}

// Sampler chooses tokens. Each sequence has its own random stream: adding a sequence changes no
// other.
type Sampler struct {
	s      Sampling
	random *rand.Rand
	order  []candidate
	seen   map[uint32]bool // tokens of the sequence, with a penalty
	scaled []float32
}

type candidate struct {
	id uint32
	p  float64
}

// NewSampler checks s and returns the Sampler of sequence seq.
func NewSampler(s Sampling, seq int) (*Sampler, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	sampler := &Sampler{s: s, random: rng.Stream(s.Seed, fmt.Sprintf("sample/sequence/%d", seq))}
	if s.penalises() {
		sampler.seen = map[uint32]bool{}
	}
	return sampler, nil
}

// Saw adds a token of the sequence, from the prompt or generated.
func (s *Sampler) Saw(id uint32) {
	if s.seen != nil {
		s.seen[id] = true
	}
}

// Next returns the id of the next token.
func (s *Sampler) Next(logits []float32) uint32 {
	logits = s.penalised(logits)
	if s.s.Temperature == 0 {
		return argmax(logits)
	}
	return s.draw(s.weigh(logits))
}

// penalised applies the repetition penalty to a copy.
func (s *Sampler) penalised(logits []float32) []float32 {
	if len(s.seen) == 0 {
		return logits
	}
	s.scaled = append(s.scaled[:0], logits...)
	for id := range s.seen {
		if int(id) >= len(s.scaled) {
			continue
		}
		if v := &s.scaled[id]; *v > 0 {
			*v /= float32(s.s.Penalty)
		} else {
			*v *= float32(s.s.Penalty)
		}
	}
	return s.scaled
}

// weigh fills order with the possible tokens and their weights, and returns the sum of the weights.
func (s *Sampler) weigh(logits []float32) (sum float64) {
	s.order = s.order[:0]
	top := float64(logits[argmax(logits)])
	for id, l := range logits {
		p := math.Exp((float64(l) - top) / s.s.Temperature)
		s.order = append(s.order, candidate{uint32(id), p})
		sum += p
	}
	nucleus := s.s.TopP > 0 && s.s.TopP < 1
	if s.s.TopK > 0 && s.s.TopK < len(s.order) || nucleus {
		slices.SortFunc(s.order, func(a, b candidate) int {
			return cmp.Or(cmp.Compare(b.p, a.p), cmp.Compare(a.id, b.id))
		})
	}
	if s.s.TopK > 0 && s.s.TopK < len(s.order) {
		s.order, sum = s.order[:s.s.TopK], 0
		for _, c := range s.order {
			sum += c.p
		}
	}
	if nucleus {
		sum = s.nucleus(sum)
	}
	if s.s.MinP > 0 {
		// Weights are relative to that of the most likely token, which is 1.
		s.order = slices.DeleteFunc(s.order, func(c candidate) bool { return c.p < s.s.MinP })
		sum = 0
		for _, c := range s.order {
			sum += c.p
		}
	}
	return sum
}

// draw picks a candidate of order.
func (s *Sampler) draw(sum float64) uint32 {
	at := s.random.Float64() * sum
	for _, c := range s.order {
		if at -= c.p; at < 0 {
			return c.id
		}
	}
	return s.order[len(s.order)-1].id // rounding can leave a small rest
}

// nucleus keeps the most likely tokens of the sorted order and returns their weight.
func (s *Sampler) nucleus(sum float64) (kept float64) {
	for i, c := range s.order {
		kept += c.p
		if kept >= s.s.TopP*sum {
			s.order = s.order[:i+1]
			break
		}
	}
	return kept
}

// distribution sets p, of the vocabulary's length, to the probabilities that Next draws from.
func (s *Sampler) distribution(p []float64, logits []float32) {
	logits = s.penalised(logits)
	clear(p)
	if s.s.Temperature == 0 {
		p[argmax(logits)] = 1
		return
	}
	sum := s.weigh(logits)
	for _, c := range s.order {
		p[c.id] = c.p / sum
	}
}

// drawFrom picks a token by probabilities, which need not add up to 1.
func (s *Sampler) drawFrom(p []float64) uint32 {
	s.order = s.order[:0]
	sum := 0.0
	for id, v := range p {
		if v > 0 {
			s.order = append(s.order, candidate{uint32(id), v})
			sum += v
		}
	}
	return s.draw(sum)
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

package whatif

import (
	"fmt"
	"math"

	"github.com/windrow-sim/windrow/internal/mask"
	"github.com/windrow-sim/windrow/traces"
)

// census holds the counts of one pass over a trace.
type census struct {
	tokens int64
	active []int64    // by layer
	counts [][]uint32 // by layer and unit: tokens it is active in
	codes  [][256]int64
}

// takeCensus reads the whole trace and checks that magnitudes match the masks.
func takeCensus(src traces.Source) (*census, error) {
	h := src.Header()
	c := &census{active: make([]int64, h.Layers), counts: make([][]uint32, h.Layers),
		codes: make([][256]int64, h.Layers)}
	for l := range c.counts {
		c.counts[l] = make([]uint32, h.Units)
	}
	err := eachToken(src, func(t *traces.Token) error {
		c.tokens++
		for l, m := range t.Active {
			n := 0
			for u := range m.Each {
				c.counts[l][u]++
				n++
			}
			c.active[l] += int64(n)
			if !h.HasMagnitude {
				continue
			}
			if len(t.Magnitude) != h.Layers || len(t.Magnitude[l]) != n {
				return fmt.Errorf("whatif: sequence %d, position %d, layer %d: the header "+
					"promises magnitudes, but there is not one for each of the %d active units: %w",
					t.Seq, t.Pos, l, n, traces.ErrFormat)
			}
			for _, code := range t.Magnitude[l] {
				c.codes[l][code]++
			}
		}
		return nil
	})
	if err == nil && c.tokens == 0 {
		err = fmt.Errorf("whatif: the trace has no tokens: %w", traces.ErrFormat)
	}
	return c, err
}

// eachToken reads the tokens in order and checks that their masks match the header.
func eachToken(src traces.Source, f func(t *traces.Token) error) error {
	var t traces.Token
	for i := range src.Tokens() {
		if err := src.Token(i, &t); err != nil {
			return err
		}
		if err := checkShape(src.Header(), &t); err != nil {
			return err
		}
		if err := f(&t); err != nil {
			return err
		}
	}
	return nil
}

func checkShape(h *traces.Header, t *traces.Token) error {
	ok := len(t.Active) == h.Layers
	for l := 0; ok && l < h.Layers; l++ {
		ok = len(t.Active[l]) == h.Words()
	}
	if !ok {
		return fmt.Errorf("whatif: sequence %d, position %d: masks that are not %d layers of %d "+
			"units: %w", t.Seq, t.Pos, h.Layers, h.Units, traces.ErrFormat)
	}
	return nil
}

// share returns a number of units as a share of a layer's units over all tokens.
func (c *census) share(n int64, h *traces.Header) float64 {
	return float64(n) / (float64(c.tokens) * float64(h.Units))
}

// sparser is a trace with other active units.
type sparser struct {
	src   traces.Source
	head  traces.Header
	rules []rule
}

// newSparser makes the rules that reach the target of opt, and reports the shares reached.
func newSparser(src traces.Source, opt Options, rep *Report) (*sparser, error) {
	h := src.Header()
	c, err := takeCensus(src)
	if err != nil {
		return nil, err
	}
	s := &sparser{src: src, head: *h, rules: make([]rule, h.Layers)}
	if opt.Threshold > 0 {
		if !h.HasMagnitude {
			return nil, fmt.Errorf("whatif: threshold of %g: the trace holds no magnitudes; "+
				"record it with --magnitudes, or name a share: %w", opt.Threshold, ErrOptions)
		}
		return s, s.aboveThreshold(opt.Threshold, c, rep)
	}
	targets := targetsOf(opt, c, h)
	kept := make([]int64, h.Layers)
	for l, want := range targets {
		s.rules[l] = ruleFor(opt, l, want, c, h)
		kept[l] = c.active[l]
	}
	if err := s.cut(targets, c, kept); err != nil {
		return nil, err
	}
	for l := range s.rules {
		r := &s.rules[l]
		rep.Layers[l] = LayerReport{Before: c.share(c.active[l], h), Target: c.share(targets[l], h),
			After: c.share(kept[l], h), Method: r.method}
		if r.method == byMagnitude && r.cutoff < levels {
			rep.Layers[l].Threshold = traces.MagnitudeFloor(uint8(r.cutoff >> 8))
		}
		if r.method == thicken {
			s.head.HasMagnitude = false
		}
	}
	return s, nil
}

// ruleFor returns the rule by which a layer reaches want units over all tokens, without its cutoff.
func ruleFor(opt Options, l int, want int64, c *census, h *traces.Header) rule {
	switch {
	case want == c.active[l]:
		return rule{method: same}
	case want > c.active[l]:
		return rule{method: thicken, scorer: newScorer(opt.Seed, thicken, l, thickenWeights(),
			c.counts[l])}
	case h.HasMagnitude:
		return rule{method: byMagnitude, scorer: newScorer(opt.Seed, thin, l, thinWeights(),
			c.counts[l])}
	default:
		return rule{method: thin, scorer: newScorer(opt.Seed, thin, l, thinWeights(), c.counts[l])}
	}
}

// cut finds the cutoffs in a second pass and sets kept to the numbers of units that they keep.
func (s *sparser) cut(targets []int64, c *census, kept []int64) error {
	tallies := make([]tally, len(s.rules))
	for l := range s.rules {
		if s.rules[l].method != same {
			tallies[l] = newTally()
		}
	}
	err := eachToken(s.src, func(t *traces.Token) error {
		for l, into := range tallies {
			if into != nil {
				s.rules[l].count(t, l, s.head.Units, into)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for l, from := range tallies {
		switch r := &s.rules[l]; r.method {
		case same:
		case thicken:
			var added int64
			r.cutoff, added = from.highest(targets[l] - c.active[l])
			kept[l] = c.active[l] + added
		default:
			r.cutoff, kept[l] = from.highest(targets[l])
		}
	}
	return nil
}

// targetsOf returns the wanted number of active units of each layer over all tokens.
func targetsOf(opt Options, c *census, h *traces.Header) []int64 {
	all := float64(c.tokens) * float64(h.Units)
	targets := make([]int64, h.Layers)
	scale := 0.0
	if opt.LayerShare == 0 {
		scale = scaleTo(opt.Share*all*float64(h.Layers), c.active, all)
	}
	for l, n := range c.active {
		want := opt.LayerShare * all
		if opt.LayerShare == 0 {
			want = math.Min(all, float64(n)*scale)
		}
		targets[l] = int64(math.Round(want))
	}
	return targets
}

// scaleTo returns the factor for which the counts, each limited to most, add up to want. Layers
// below the limit make up for full ones. If want cannot be reached, the factor fills all layers
// that are not empty.
func scaleTo(want float64, counts []int64, most float64) float64 {
	scale := 0.0
	for range len(counts) + 1 { // every round fills one more layer, or is the last
		full, rest := 0.0, 0.0
		for _, n := range counts {
			if float64(n)*scale >= most && n > 0 {
				full += most
			} else {
				rest += float64(n)
			}
		}
		if rest == 0 {
			return scale
		}
		next := math.Max(0, want-full) / rest
		if next <= scale {
			return scale
		}
		scale = next
	}
	return scale
}

// aboveThreshold keeps the codes from the one whose floor is nearest to the threshold on the
// logarithmic scale.
func (s *sparser) aboveThreshold(threshold float64, c *census, rep *Report) error {
	code := nearestCode(threshold)
	if code > math.MaxUint8 {
		return fmt.Errorf("whatif: threshold of %g: magnitudes are told apart up to %.5g only: %w",
			threshold, traces.MagnitudeFloor(math.MaxUint8), ErrOptions)
	}
	floor := traces.MagnitudeFloor(uint8(code))
	s.head.Threshold = floor
	for l := range s.rules {
		s.rules[l] = rule{method: byMagnitude, cutoff: uint32(code) << 8}
		kept := int64(0)
		for v := code; v < 256; v++ {
			kept += c.codes[l][v]
		}
		if kept == c.active[l] {
			s.rules[l] = rule{method: same}
		}
		after := c.share(kept, &s.head)
		rep.Layers[l] = LayerReport{Before: c.share(c.active[l], &s.head), Target: after,
			After: after, Method: s.rules[l].method, Threshold: floor}
	}
	return nil
}

// nearestCode returns the code whose floor is nearest to a threshold above 0 on the logarithmic
// scale. 0 keeps all units, 256 none.
func nearestCode(threshold float64) int {
	step := math.Log2(traces.MagnitudeFloor(1)) - math.Log2(traces.MagnitudeFloor(0))
	code := math.Round((math.Log2(threshold) - math.Log2(traces.MagnitudeFloor(0))) / step)
	return int(math.Max(0, math.Min(code, 256)))
}

// Header implements traces.Source.
func (s *sparser) Header() *traces.Header { return &s.head }

// Tokens implements traces.Source.
func (s *sparser) Tokens() int { return s.src.Tokens() }

// Token implements traces.Source. It makes new masks for each call, except for unchanged layers,
// whose masks are the source's.
func (s *sparser) Token(i int, t *traces.Token) error {
	if err := s.src.Token(i, t); err != nil {
		return err
	}
	if err := checkShape(&s.head, t); err != nil {
		return err
	}
	t.Predicted = nil
	if !s.head.HasMagnitude {
		// Thinning by magnitude still reads the magnitudes below.
		defer func() { t.Magnitude = nil }()
	}
	masks := mask.NewLayers(s.head.Layers, s.head.Units)
	for l := range s.rules {
		r := &s.rules[l]
		if r.method == same {
			continue
		}
		if r.method == thicken {
			copy(masks[l], t.Active[l])
		}
		r.mark(t, l, s.head.Units, masks[l])
		if s.head.HasMagnitude {
			t.Magnitude[l] = keptCodes(t.Active[l], masks[l], t.Magnitude[l])
		}
		t.Active[l] = masks[l]
	}
	return nil
}

// keptCodes returns the codes of the units of a mask that are also in kept.
func keptCodes(active, kept mask.Mask, codes []byte) []byte {
	out := make([]byte, 0, kept.Count())
	i := 0
	for u := range active.Each {
		if kept.Has(u) {
			out = append(out, codes[i])
		}
		i++
	}
	return out
}

package placement

import (
	"fmt"

	"github.com/windrow-sim/windrow/traces"
)

// part is a range of a trace's tokens as a trace of its own.
type part struct {
	traces.Source
	first, count int
}

// Tokens implements traces.Source.
func (p *part) Tokens() int { return p.count }

// Token implements traces.Source.
func (p *part) Token(i int, t *traces.Token) error {
	if i < 0 || i >= p.count {
		return fmt.Errorf("placement: token %d: the part has %d tokens", i, p.count)
	}
	return p.Source.Token(p.first+i, t)
}

// halves splits the first tokens of a trace into a training and a test split. The boundary is the
// start of the sequence nearest to the middle. If none starts in the middle half, the boundary is
// inside a sequence and apart is false.
func halves(src traces.Source, tokens int) (train, test *part, apart bool, err error) {
	if tokens < 2 {
		return nil, nil, false, fmt.Errorf("placement: %d tokens: a training and a test "+
			"split are needed; give a longer trace: %w", tokens, ErrConfig)
	}
	cut := tokens / 2
	var t traces.Token
	var sequences traces.Sequences
	best := tokens
	for i := tokens / 4; i <= tokens*3/4 && i < tokens; i++ {
		if err := src.Token(i, &t); err != nil {
			return nil, nil, false, err
		}
		distance := max(i-tokens/2, tokens/2-i)
		if sequences.Changes(t.Seq) && distance < best {
			cut, best, apart = i, distance, true
		}
	}
	return &part{src, 0, cut}, &part{src, cut, tokens - cut}, apart, nil
}

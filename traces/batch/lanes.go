package batch

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/windrow-sim/windrow/traces"
)

// Stream holds the tokens of a trace from which batches are formed, in the order of the trace. It
// is immutable.
type Stream struct {
	src    traces.Source
	phase  string
	index  []int32  // in the trace
	pos    []uint32 // in the sequence
	starts []int32  // tokens of the stream that begin a sequence

	sequences traces.Sequences // of the tokens added
}

// NewStream reads a trace once and selects the generated tokens, or all tokens if none was
// generated.
func NewStream(src traces.Source) (*Stream, error) {
	total := src.Tokens()
	if total > math.MaxInt32 {
		return nil, fmt.Errorf("batch: %d tokens: more than 2³¹; split the trace", total)
	}
	all, decode := &Stream{src: src, phase: "all"}, &Stream{src: src, phase: "decode"}
	var t traces.Token
	for i := range total {
		if err := src.Token(i, &t); err != nil {
			return nil, fmt.Errorf("batch: token %d: %w", i, err)
		}
		if err := checkToken(src.Header(), &t); err != nil {
			return nil, fmt.Errorf("batch: token %d: %w", i, err)
		}
		all.add(i, &t)
		if t.Phase == traces.Decode {
			decode.add(i, &t)
		}
	}
	if decode.Tokens() > 0 {
		return decode, nil
	}
	return all, nil
}

// checkToken refuses masks that cannot be united.
func checkToken(h *traces.Header, t *traces.Token) error {
	if err := h.CheckMasks("active", t.Active); err != nil {
		return err
	}
	if h.HasPredicted {
		return h.CheckMasks("predicted", t.Predicted)
	}
	return nil
}

// add appends token i of the trace.
func (s *Stream) add(i int, t *traces.Token) {
	if s.sequences.Begins(t.Seq) {
		s.starts = append(s.starts, int32(len(s.pos)))
	}
	s.index, s.pos = append(s.index, int32(i)), append(s.pos, t.Pos)
}

// Header returns the header of the trace.
func (s *Stream) Header() *traces.Header { return s.src.Header() }

// Tokens is the number of tokens of the stream.
func (s *Stream) Tokens() int { return len(s.index) }

// Sequences is the number of sequences of these tokens.
func (s *Stream) Sequences() int { return len(s.starts) }

// Phase is "decode" if the tokens are the generated ones, "all" if the trace has none.
func (s *Stream) Phase() string { return s.phase }

// Lanes are equal pieces of a stream, one after the other: lane i is tokens i·Steps to (i+1)·Steps
// − 1.
type Lanes struct {
	Count int
	Steps int // tokens of each
	// Formed says in words what the lanes are.
	Formed string
	stream *Stream
}

// Lanes cuts the stream into count lanes. The remaining tokens, fewer than count, are not used.
func (s *Stream) Lanes(count int) (Lanes, error) {
	if count < 1 || count > s.Tokens() {
		return Lanes{}, fmt.Errorf("batch: %d lanes of %d tokens: between one lane and one for "+
			"each token is possible; record more tokens", count, s.Tokens())
	}
	l := Lanes{Count: count, Steps: s.Tokens() / count, stream: s}
	l.Formed = l.formed()
	return l, nil
}

func (l *Lanes) formed() string {
	tokens, sequences := "generated tokens", l.stream.Sequences()
	if l.stream.phase == "all" {
		tokens = "tokens"
	}
	switch whole := l.whole(); {
	case whole:
		return fmt.Sprintf("%d sequences of %d %s", l.Count, l.Steps, tokens)
	case l.Count <= sequences:
		return fmt.Sprintf("%d lanes of %d %s, one sequence after the other (%d sequences)",
			l.Count, l.Steps, tokens, sequences)
	}
	return fmt.Sprintf("%d evenly spaced places of %d sequences, %d %s from each", l.Count,
		sequences, l.Steps, tokens)
}

// whole reports whether every lane is one sequence.
func (l *Lanes) whole() bool {
	if l.stream.Sequences() != l.Count || l.Count*l.Steps != l.stream.Tokens() {
		return false
	}
	for i, start := range l.stream.starts {
		if int(start) != i*l.Steps {
			return false
		}
	}
	return true
}

// Used is the number of tokens in lanes.
func (l *Lanes) Used() int { return l.Count * l.Steps }

// Read fills t with the token of a lane at a step.
func (l *Lanes) Read(lane, step int, t *traces.Token) error {
	i := l.stream.index[lane*l.Steps+step]
	if err := l.stream.src.Token(int(i), t); err != nil {
		return fmt.Errorf("batch: token %d: %w", i, err)
	}
	return nil
}

// Positions is the number of positions that a step attends to, over all lanes. A token attends to
// all earlier positions and its own.
func (l *Lanes) Positions(step int) int {
	sum := 0
	for lane := range l.Count {
		sum += int(l.stream.pos[lane*l.Steps+step]) + 1
	}
	return sum
}

// Order lists all lanes so that any first few are about evenly spaced (the van der Corput
// sequence). They are exactly so for a power of two out of another. Neighbouring lanes of one
// sequence are more alike than distant ones.
func (l *Lanes) Order() []int {
	width := bits.Len(uint(l.Count - 1)) // of the reversed numbers
	order, taken := make([]int, 0, l.Count), make([]bool, l.Count)
	for j := range 1 << width {
		lane := int(bits.Reverse64(uint64(j))>>(64-width)) * l.Count >> width
		if !taken[lane] {
			order, taken[lane] = append(order, lane), true
		}
	}
	return order
}

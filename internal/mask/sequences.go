package mask

// Sequences finds the tokens at which a pass over tokens enters another sequence. The zero value is
// ready for the first token.
type Sequences struct {
	count int
	last  uint32
}

// Begins takes the sequence of the next token. It reports whether the token begins a sequence: it
// is the first token, or its sequence is not that of the previous token.
func (s *Sequences) Begins(seq uint32) bool {
	if s.count > 0 && seq == s.last {
		return false
	}
	s.count++
	s.last = seq
	return true
}

// Changes takes the sequence of the next token. It reports whether that is another sequence than
// the previous token's: Begins, but false for the first token. State of the previous sequence must
// then be reset.
func (s *Sequences) Changes(seq uint32) bool { return s.Begins(seq) && s.count > 1 }

// Count is the number of sequences so far. A sequence that returns after another counts again.
func (s *Sequences) Count() int { return s.count }

package mask

// Sequences notices where a pass over tokens enters another sequence. The zero value is before the
// first token.
type Sequences struct {
	count int
	last  uint32
}

// Begins takes the sequence of the next token. It reports whether the token begins a sequence: it
// is the first, or its sequence is not that of the token before.
func (s *Sequences) Begins(seq uint32) bool {
	if s.count > 0 && seq == s.last {
		return false
	}
	s.count++
	s.last = seq
	return true
}

// Changes is Begins without the first token: it reports whether the token ends the sequence of the
// token before, so that state of that sequence has to be reset.
func (s *Sequences) Changes(seq uint32) bool { return s.Begins(seq) && s.count > 1 }

// Count is the number of sequences begun so far. One that comes back after another counts again.
func (s *Sequences) Count() int { return s.count }

package session

import "strings"

// stopper lets a streamed text through up to the first of some texts, and holds back an end that
// may become the beginning of one.
type stopper struct {
	texts []string
	held  string
	over  bool
}

func newStopper(texts []string) *stopper {
	s := &stopper{}
	for _, t := range texts {
		if t != "" {
			s.texts = append(s.texts, t)
		}
	}
	return s
}

// next takes a piece of text and returns what can be shown.
func (s *stopper) next(piece string) string {
	if s.over {
		return ""
	}
	s.held += piece
	first := -1
	for _, t := range s.texts {
		if at := strings.Index(s.held, t); at >= 0 && (first < 0 || at < first) {
			first = at
		}
	}
	if first >= 0 {
		s.over = true
		shown := s.held[:first]
		s.held = ""
		return shown
	}
	keep := 0
	for _, t := range s.texts {
		for n := min(len(t)-1, len(s.held)); n > keep; n-- {
			if strings.HasSuffix(s.held, t[:n]) {
				keep = n
				break
			}
		}
	}
	shown := s.held[:len(s.held)-keep]
	s.held = s.held[len(s.held)-keep:]
	return shown
}

// flush returns what was held back at the end of the text.
func (s *stopper) flush() string {
	if s.over {
		return ""
	}
	return s.held
}

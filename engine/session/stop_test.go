package session

import (
	"strings"
	"testing"
)

// TestStopper feeds a text in pieces of every size and cuts it at the first stop text, wherever the
// pieces end.
func TestStopper(t *testing.T) {
	for _, c := range []struct {
		stops      []string
		text, want string
	}{
		{nil, "a fox. The mill", "a fox. The mill"},
		{[]string{"."}, "a fox. The mill", "a fox"},
		{[]string{"The mill is", "x. T"}, "a fox. The mill", "a fo"},
		{[]string{"The mill is"}, "a fox. The mill", "a fox. The mill"},
		{[]string{"aab"}, "aaab", "a"},
		{[]string{"é", "ö"}, "caf\u00e9 \u00f6", "caf"},
		{[]string{""}, "all", "all"},
	} {
		for size := 1; size <= len(c.text); size++ {
			s := newStopper(c.stops)
			var shown strings.Builder
			for at := 0; at < len(c.text); at += size {
				shown.WriteString(s.next(c.text[at:min(at+size, len(c.text))]))
			}
			shown.WriteString(s.flush())
			if shown.String() != c.want || s.over != (c.want != c.text) {
				t.Errorf("%q stopped by %q in pieces of %d: %q, want %q", c.text, c.stops, size,
					shown.String(), c.want)
			}
		}
	}
}

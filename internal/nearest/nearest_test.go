package nearest

import "testing"

func TestName(t *testing.T) {
	list := []string{"OPT-125M", "OPT-6.7B", "Falcon-7B"}
	for name, want := range map[string]string{"opt-6.7": "OPT-6.7B", "falcon7b": "Falcon-7B",
		"opt-1255m": "OPT-125M", " FALCON": "Falcon-7B"} {
		if got, _ := Name(name, list); got != want {
			t.Errorf("Name(%q) = %q, want %q", name, got, want)
		}
	}
	if got, d := Name("x", nil); got != "" || d != -1 {
		t.Errorf("without candidates: %q, %d", got, d)
	}
}

func TestEdits(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"abc", "abc", 0}, {"abc", "", 3}, {"kitten", "sitting", 3}, {"ab", "ba", 2}} {
		if got := edits(c.a, c.b); got != c.want || edits(c.b, c.a) != c.want {
			t.Errorf("edits(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

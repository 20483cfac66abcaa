package schedule

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/internal/units"
)

// TestParse: every name is read as the kind that prints it.
func TestParse(t *testing.T) {
	kinds := map[string]Kind{"": Demand, "demand": Demand, "lookahead": LookAhead, "token": Token}
	for name, want := range kinds {
		if got, err := Parse(name); got != want || err != nil {
			t.Errorf("%q is read as %q, %v", name, got, err)
		}
	}
	for _, name := range Names() {
		if kind, err := Parse(name); err != nil || kind.String() != name {
			t.Errorf("%s is read as %v, %v", name, kind, err)
		}
	}
	for name, meant := range map[string]string{"tokens": "token", "Lookahead": "lookahead",
		"demandd": "demand", "look-ahead": "lookahead"} {
		_, err := Parse(name)
		if !errors.Is(err, ErrSpec) || !strings.Contains(err.Error(), "did you mean "+meant+"?") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCheck(t *testing.T) {
	for _, s := range []Spec{{}, {Kind: LookAhead}, {Kind: LookAhead, Dense: 4}, {Kind: Token,
		Dense: 1}, {Kind: Token, Dense: 4, Staging: units.MiB}, {Kind: LookAhead,
		Staging: Unlimited}} {
		if err := s.Check(4); err != nil {
			t.Errorf("%+v: %v", s, err)
		}
	}
	for name, s := range map[string]Spec{
		"an unknown kind":              {Kind: "tomorrow", Dense: 1},
		"a name in place of a kind":    {Kind: "demand"},
		"a dense prefix on demand":     {Dense: 1},
		"a staging buffer on demand":   {Staging: 4096},
		"token without a dense layer":  {Kind: Token},
		"more dense layers than there": {Kind: LookAhead, Dense: 5},
		"fewer than none":              {Kind: LookAhead, Dense: math.MinInt},
		"a buffer below nothing":       {Kind: LookAhead, Staging: -1},
	} {
		if err := s.Check(4); !errors.Is(err, ErrSpec) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/internal/mask"
	"github.com/windrow-sim/windrow/internal/units"
)

// TestSlidingWindow: it is the policy of its text, and a window below 0 is refused.
func TestSlidingWindow(t *testing.T) {
	for _, k := range []int{0, 1, 5, 1 << 20} {
		parsed, err := Parse(fmt.Sprintf("window:%d", k))
		if got := SlidingWindow(k); err != nil || got != parsed || got.Check() != nil {
			t.Errorf("a window of %d is %+v, its text is read as %+v, %v", k, got, parsed, err)
		}
	}
	if err := SlidingWindow(-1).Check(); !errors.Is(err, ErrSpec) {
		t.Errorf("a window of -1 tokens: %v", err)
	}
	plain := map[string]bool{"none": true, "window:0": true, "window:7": true,
		"window:7,capacity:90": false, "delta:9": false, "lru:0": false, "all": false}
	for text, want := range plain {
		spec, err := Parse(text)
		if err != nil || spec.PlainWindow() != want {
			t.Errorf("%s is a plain window: %v, %v", text, spec.PlainWindow(), err)
		}
	}
	if !(Spec{}).PlainWindow() {
		t.Error("the zero Spec keeps nothing, but is no plain window")
	}
}

func TestParse(t *testing.T) {
	for text, want := range map[string]Spec{
		"all":                    {Kind: KindAll},
		"none":                   {Kind: KindNone},
		"hybrid:3000":            {Kind: KindHybrid, Capacity: 3000},
		"window:0":               {Kind: KindWindow},
		"window:5":               {Kind: KindWindow, Window: 5},
		"window:5,capacity:2000": {Kind: KindWindow, Window: 5, Capacity: 2000},
		"delta:5500":             {Kind: KindDelta, Capacity: 5500},
		"lru:0":                  {Kind: KindLRU},
		"lru:2000":               {Kind: KindLRU, Capacity: 2000},
		"lfu:2147483647":         {Kind: KindLFU, Capacity: 2147483647},
		"hot:500+1500":           {Kind: KindHot, Pinned: 500, Capacity: 1500},
		"tensors:0":              {Kind: KindTensors},
		"tensors:12":             {Kind: KindTensors, Layers: 12},
		"cyclic:2000":            {Kind: KindCyclic, Capacity: 2000},
		"pages:2000,ahead:8":     {Kind: KindPages, Capacity: 2000, Ahead: 8},
		"belady:2000":            {Kind: KindBelady, Capacity: 2000},
	} {
		got, err := Parse(text)
		if err != nil || got != want || got.String() != text {
			t.Errorf("Parse(%q) = %+v (%v), %v", text, got, got, err)
		}
	}
}

func TestParseErrors(t *testing.T) {
	for text, says := range map[string]string{
		"":                       "did you mean",
		"windw:5":                "did you mean window:TOKENS",
		"Window:5":               "did you mean window:TOKENS",
		"beladi:5":               "did you mean belady:CAPACITY",
		"lur:5":                  "did you mean lru:CAPACITY",
		"lru":                    "write lru:CAPACITY",
		"lru:":                   "write lru:CAPACITY",
		"lru:x":                  "write lru:CAPACITY",
		"lru:-1":                 "write lru:CAPACITY",
		"lru:+1":                 "write lru:CAPACITY",
		"lru:01":                 "write lru:CAPACITY",
		"lru: 1":                 "write lru:CAPACITY",
		"lru:1,capacity:2":       "write lru:CAPACITY",
		"lru:64MiB":              "write lru:CAPACITY",
		"lru:2147483648":         "from 0 to 2147483647",
		"none:":                  "write none",
		"none:0":                 "write none",
		"all:1":                  "write all",
		"window:":                "write window:TOKENS",
		"window:5,":              "write window:TOKENS",
		"window:5,capacity:":     "write window:TOKENS",
		"window:5,capacity:0":    "write window:TOKENS",
		"window:5,size:3":        "write window:TOKENS",
		"window:0,capacity:3":    "write none",
		"pages:5":                "write pages:CAPACITY,ahead:UNITS",
		"pages:5,ahead:":         "write pages:CAPACITY,ahead:UNITS",
		"pages:5,ahead:0":        "write ahead:1",
		"page:5,ahead:1":         "did you mean pages:CAPACITY,ahead:UNITS",
		"tensors":                "write tensors:LAYERS",
		"cyclic:-1":              "write cyclic:CAPACITY",
		"hot:5":                  "write hot:PINNED+CAPACITY",
		"hot:5+":                 "write hot:PINNED+CAPACITY",
		"hot:5+6+7":              "write hot:PINNED+CAPACITY",
		strings.Repeat("x", 999): "999 characters long",
	} {
		got, err := Parse(text)
		if err == nil || !errors.Is(err, ErrSpec) || !strings.Contains(err.Error(), says) ||
			!strings.HasPrefix(err.Error(), "policy: ") || got != (Spec{}) {
			t.Errorf("Parse(%q) = %v, %v; the error should say %q", text, got, err, says)
		}
	}
}

func TestCheckRefusesNumbersThatAreNotUsed(t *testing.T) {
	for _, s := range []Spec{
		{Window: 5}, {Kind: KindNone, Capacity: 1}, {Kind: KindLRU, Window: 1}, {Kind: KindWindow,
			Window: 1, Pinned: 1}, {Kind: KindDelta, Pinned: 3},
		{Kind: KindLRU, Ahead: 1}, {Kind: KindTensors, Capacity: 1}, {Kind: KindCyclic, Layers: 1},
		{Kind: KindPages, Capacity: 1}, {Kind: KindPages, Ahead: -1},
		{Kind: KindLRU, Capacity: -1}, {Kind: KindWindow, Window: -1}, {Kind: KindLRU,
			Capacity: 1 << 31}, {Kind: "clock", Capacity: 1},
	} {
		if err := s.Check(); !errors.Is(err, ErrSpec) {
			t.Errorf("%+v: %v", s, err)
		}
		if _, err := s.MarshalText(); err == nil {
			t.Errorf("%+v has a text", s)
		}
		if _, err := New(s, 100, Options{}); !errors.Is(err, ErrSpec) {
			t.Errorf("%+v makes a policy: %v", s, err)
		}
	}
}

func TestSpecInJSON(t *testing.T) {
	type document struct{ Policy Spec }
	text, err := json.Marshal([]document{{Spec{}}, {Spec{Kind: KindHot, Pinned: 2, Capacity: 3}}})
	if want := `[{"Policy":"none"},{"Policy":"hot:2+3"}]`; err != nil || string(text) != want {
		t.Fatalf("%s, %v; want %s", text, err, want)
	}
	var back []document
	if err := json.Unmarshal(text, &back); err != nil || back[0].Policy != (Spec{Kind: KindNone}) ||
		back[1].Policy.Pinned != 2 {
		t.Fatalf("%+v, %v", back, err)
	}
	if err := json.Unmarshal([]byte(`[{"Policy":"lru:many"}]`), &back); !errors.Is(err, ErrSpec) {
		t.Fatalf("lru:many: %v", err)
	}
}

// Every kind has a text like its form, and New builds it.
func TestKinds(t *testing.T) {
	masks := []mask.Mask{{1}}
	for _, k := range Kinds() {
		if !slices.ContainsFunc(specs(64), func(s Spec) bool { return s.Kind == k.Name }) {
			t.Errorf("%s: no plain twin checks it: add it to specs", k.Name)
		}
		for form := range strings.SplitSeq(k.Form, " or ") {
			text := strings.NewReplacer("TOKENS", "3", "CAPACITY", "7", "PINNED", "2", "UNITS", "4",
				"LAYERS", "1").Replace(form)
			s, err := Parse(text)
			if err != nil || s.Kind != k.Name || k.Summary == "" {
				t.Errorf("%s: %+v, %v", text, s, err)
				continue
			}
			if p, err := New(s, 64, Options{Hot: []uint32{1, 5},
				Future: slices.Values(masks)}); err != nil || p == nil {
				t.Errorf("%s: %v", text, err)
			}
		}
	}
}

func TestNewErrors(t *testing.T) {
	future := func(masks ...mask.Mask) iter.Seq[mask.Mask] { return slices.Values(masks) }
	for _, c := range []struct {
		text  string
		units int
		opt   Options
		says  string
	}{
		{"lru:5", 0, Options{}, "a layer of 0 units"},
		{"lru:5", -1, Options{}, "a layer of -1 units"},
		{"none", 1 << 31, Options{}, "a layer of 2147483648 units"},
		{"hot:2+5", 10, Options{Hot: []uint32{1}}, "1 units are ranked"},
		{"hot:2+5", 10, Options{Hot: []uint32{1, 1}}, "unit 1 is ranked twice"},
		{"hot:2+5", 10, Options{Hot: []uint32{1, 10}}, "unit 10 is ranked twice or beyond"},
		{"belady:5", 10, Options{}, "needs the masks of all tokens to come"},
		{"belady:5", 10, Options{Future: future([]uint64{1}, []uint64{1, 2})},
			"token 1 of the future"},
		{"belady:5", 10, Options{Future: future([]uint64{1 << 10})}, "token 0 of the future"},
	} {
		s, err := Parse(c.text)
		if err != nil {
			t.Fatal(err)
		}
		p, err := New(s, c.units, c.opt)
		if !errors.Is(err, ErrSpec) || p != nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, %v; the error should say %q", c.text, p, err, c.says)
		}
	}
}

func TestUnits(t *testing.T) {
	for _, c := range []struct {
		budget, record units.Bytes
		want           int
	}{
		{0, 16384, 0}, {16383, 16384, 0}, {16384, 16384, 1}, {32 * units.MiB, 16 * units.KiB, 2048},
		{-1, 1, 0}, {1, 0, 0}, {1 << 50, 1, 1<<31 - 1},
	} {
		if got := Units(c.budget, c.record); got != c.want {
			t.Errorf("%v in records of %v: %d units, want %d", c.budget, c.record, got, c.want)
		}
	}
}

// Whatever is accepted is written as it was read, and is usable; nothing panics.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"", "all", "none", "none:", "window:5", "window:5,capacity:2000",
		"window:0,capacity:1", "delta:5500", "lru:01", "lfu:9", "hot:500+1500",
		"belady:99999999999", "hybrid:-1", "pages:9,ahead:2", "pages:0,ahead:0", "tensors:3",
		"cyclic:7"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Parse(text)
		if err != nil {
			if !errors.Is(err, ErrSpec) || s != (Spec{}) {
				t.Fatalf("Parse(%q) = %+v, %v", text, s, err)
			}
			return
		}
		out, err := s.MarshalText()
		if err != nil || string(out) != text {
			t.Fatalf("%q is written %q, %v", text, out, err)
		}
		if kept := s.Kept(100); kept < 0 || kept > 100 {
			t.Fatalf("%q keeps %d of 100 units", text, kept)
		}
	})
}

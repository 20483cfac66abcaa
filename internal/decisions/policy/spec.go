package policy

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/windrow-sim/windrow/internal/nearest"
	"github.com/windrow-sim/windrow/internal/units"
)

// ErrSpec is wrapped by every error about a policy that cannot be parsed or built.
var ErrSpec = errors.New("not a usable policy")

// The kinds of policies.
const (
	KindAll     = "all"
	KindHybrid  = "hybrid"
	KindTensors = "tensors"
	KindCyclic  = "cyclic"
	KindNone    = "none"
	KindWindow  = "window"
	KindDelta   = "delta"
	KindPages   = "pages"
	KindLRU     = "lru"
	KindLFU     = "lfu"
	KindHot     = "hot"
	KindBelady  = "belady"
)

// Spec names a policy. Its text form is KIND or KIND:NUMBERS, see Kinds. All numbers but Layers are
// per layer. The zero value is "none": no unit is kept from one token to the next.
//
// A field that the kind does not use must be zero. In JSON and YAML a Spec is its text.
type Spec struct {
	Kind   string
	Window int // tokens: window
	// units kept from one token to the next: hybrid, cyclic, delta, pages, lru, lfu, belady; for
	// hot without the pinned ones; for window 0 = no limit
	Capacity int
	Pinned   int // units: hot
	Ahead    int // units read by one miss, itself included: pages
	Layers   int // layers of the model that are in memory whole: tensors
}

// SlidingWindow returns the policy that keeps the units of the last k tokens: "window:k". Check
// refuses a k below 0.
func SlidingWindow(k int) Spec { return Spec{Kind: KindWindow, Window: k} }

// PlainWindow reports whether s keeps the units of the last Window tokens, however many they are:
// a sliding window without a capacity, or none, which is a window of 0 tokens.
func (s Spec) PlainWindow() bool {
	return s.Kind == "" || s.Kind == KindNone || s.Kind == KindWindow && s.Capacity == 0
}

// Kind describes a kind of policy for people.
type Kind struct {
	Name    string
	Form    string // of the text: "lru:CAPACITY"
	Summary string
}

// Kinds returns all kinds, from the simplest to the bound.
func Kinds() []Kind {
	return []Kind{
		{KindAll, "all", "every unit is read for every token, needed or not (naive)"},
		{KindHybrid, "hybrid:CAPACITY", "the first CAPACITY units stay in memory, the others " +
			"are read for every token, needed or not"},
		{KindTensors, "tensors:LAYERS", "the first LAYERS layers stay in memory whole, the " +
			"others are read whole for every token (whole-tensor offload; 0 = all on disk)"},
		{KindCyclic, "cyclic:CAPACITY", "every unit is used for every token, in order, through " +
			"a page cache that drops the unit used longest ago (a mapped file, dense)"},
		{KindNone, "none", "what a token needs is read, and nothing is kept (predictor only)"},
		{KindWindow, "window:TOKENS or window:TOKENS,capacity:CAPACITY",
			"units that the last TOKENS tokens needed stay, at most CAPACITY of them"},
		{KindDelta, "delta:CAPACITY", "units that the last token needed stay, in CAPACITY fixed " +
			"slots (K_max of NeuroPrefetcher)"},
		{KindPages, "pages:CAPACITY,ahead:UNITS", "a page cache: a miss reads the aligned group " +
			"of UNITS neighbours, the unit used longest ago leaves"},
		{KindLRU, "lru:CAPACITY", "the unit used longest ago leaves"},
		{KindLFU, "lfu:CAPACITY", "the unit used by the fewest tokens since it was loaded leaves"},
		{KindHot, "hot:PINNED+CAPACITY", "the PINNED hottest units stay, lru:CAPACITY for the " +
			"others"},
		{KindBelady, "belady:CAPACITY", "the unit needed again the latest leaves: the fewest " +
			"loads that any policy can have, known only afterwards"},
	}
}

// Parse reads the text form of a Spec. Every valid Spec has exactly one text: no spaces, signs or
// leading zeros.
func Parse(text string) (Spec, error) {
	const longest = 64
	if len(text) > longest {
		return Spec{}, fmt.Errorf("policy: %.16q… is %d characters long; the policies are %s: %w",
			text, len(text), forms(), ErrSpec)
	}
	name, args, numbers := strings.Cut(text, ":")
	kind, known := find(name)
	if !known {
		return Spec{}, fmt.Errorf("policy: %q: there is no policy %q; did you mean %s? The "+
			"policies are %s: %w",
			text, name, kind.Form, forms(), ErrSpec)
	}
	s := Spec{Kind: kind.Name}
	if !numbers {
		args = ""
	}
	if !s.read(args) || s.text() != text {
		return Spec{}, fmt.Errorf("policy: %q: write %s, with whole numbers from 0 to %d: %w", text,
			kind.Form, math.MaxInt32, ErrSpec)
	}
	if err := s.Check(); err != nil {
		return Spec{}, err
	}
	return s, nil
}

// read reads the numbers after the colon and reports whether they have the right form.
func (s *Spec) read(args string) bool {
	switch s.Kind {
	case KindAll, KindNone:
		return args == ""
	case KindWindow:
		tokens, capacity, limited := strings.Cut(args, ",capacity:")
		return number(tokens, &s.Window) && (!limited || number(capacity, &s.Capacity))
	case KindHot:
		pinned, capacity, _ := strings.Cut(args, "+")
		return number(pinned, &s.Pinned) && number(capacity, &s.Capacity)
	case KindPages:
		capacity, ahead, _ := strings.Cut(args, ",ahead:")
		return number(capacity, &s.Capacity) && number(ahead, &s.Ahead)
	case KindTensors:
		return number(args, &s.Layers)
	default:
		return number(args, &s.Capacity)
	}
}

func number(text string, to *int) bool {
	v, err := strconv.ParseInt(text, 10, 32)
	*to = int(v)
	return err == nil && v >= 0
}

// text returns the text form, also of an invalid Spec.
func (s Spec) text() string {
	switch s.Kind {
	case "":
		return KindNone
	case KindAll, KindNone:
		return s.Kind
	case KindWindow:
		if s.Capacity != 0 {
			return fmt.Sprintf("%s:%d,capacity:%d", s.Kind, s.Window, s.Capacity)
		}
		return fmt.Sprintf("%s:%d", s.Kind, s.Window)
	case KindHot:
		return fmt.Sprintf("%s:%d+%d", s.Kind, s.Pinned, s.Capacity)
	case KindPages:
		return fmt.Sprintf("%s:%d,ahead:%d", s.Kind, s.Capacity, s.Ahead)
	case KindTensors:
		return fmt.Sprintf("%s:%d", s.Kind, s.Layers)
	default:
		return fmt.Sprintf("%s:%d", s.Kind, s.Capacity)
	}
}

// String returns the text form. That of an invalid Spec is for error messages only.
func (s Spec) String() string { return s.text() }

// Check returns an error that wraps ErrSpec if no policy can be built from s for any number of
// units.
func (s Spec) Check() error {
	kind, known := find(s.Kind)
	if s.Kind == "" {
		kind, known = Kind{Name: KindNone, Form: KindNone}, true
	}
	used := Spec{Kind: s.Kind}
	switch kind.Name {
	case KindAll, KindNone:
	case KindWindow:
		used.Window, used.Capacity = s.Window, s.Capacity
	case KindHot:
		used.Pinned, used.Capacity = s.Pinned, s.Capacity
	case KindPages:
		used.Capacity, used.Ahead = s.Capacity, s.Ahead
	case KindTensors:
		used.Layers = s.Layers
	default:
		used.Capacity = s.Capacity
	}
	switch {
	case !known:
		return fmt.Errorf("policy: there is no policy %q; did you mean %s? The policies are %s: %w",
			s.Kind, kind.Form, forms(), ErrSpec)
	case s != used:
		return fmt.Errorf("policy: %s with window %d, capacity %d, pinned %d, ahead %d, layers "+
			"%d: a number is set that %s does not use; its form is %s: %w",
			kind.Name, s.Window, s.Capacity, s.Pinned, s.Ahead, s.Layers, kind.Name, kind.Form,
			ErrSpec)
	case min(s.Window, s.Capacity, s.Pinned, s.Ahead, s.Layers) < 0 || max(s.Window, s.Capacity,
		s.Pinned, s.Ahead, s.Layers) > math.MaxInt32:
		return fmt.Errorf("policy: %s: numbers are from 0 to %d: %w", s, math.MaxInt32, ErrSpec)
	case kind.Name == KindWindow && s.Window == 0 && s.Capacity != 0:
		return fmt.Errorf("policy: %s: a window of 0 tokens keeps nothing, so a capacity has no "+
			"meaning; write none: %w", s, ErrSpec)
	case kind.Name == KindPages && s.Ahead == 0:
		return fmt.Errorf("policy: %s: a miss brings at least the unit itself; write ahead:1 "+
			"for no read-ahead: %w", s, ErrSpec)
	}
	return nil
}

// Kept returns the largest number of units that the policy keeps from one token to the next, out of
// so many units of a layer; for tensors, in a layer that is in memory. While a token computes,
// memory also holds its loads.
func (s Spec) Kept(units int) int {
	switch s.Kind {
	case "", KindNone, KindAll:
		return 0
	case KindTensors:
		if s.Layers > 0 {
			return units
		}
		return 0
	case KindWindow:
		switch {
		case s.Window == 0:
			return 0
		case s.Capacity == 0:
			return units
		}
	}
	return min(min(s.Pinned, units)+min(s.Capacity, units), units)
}

// MarshalText implements encoding.TextMarshaler.
func (s Spec) MarshalText() ([]byte, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	return []byte(s.text()), nil
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *Spec) UnmarshalText(text []byte) error {
	parsed, err := Parse(string(text))
	if err != nil {
		return err
	}
	*s = parsed
	return nil
}

// Units returns the number of whole records in a budget of bytes; 0 if either is not positive.
func Units(budget, record units.Bytes) int {
	if budget <= 0 || record <= 0 {
		return 0
	}
	return int(min(budget/record, math.MaxInt32))
}

// find returns the kind with that name, or the nearest one.
func find(name string) (kind Kind, known bool) {
	kinds := Kinds()
	names := make([]string, len(kinds))
	for i, k := range kinds {
		if k.Name == name {
			return k, true
		}
		names[i] = k.Name
	}
	best, _ := nearest.Name(name, names)
	return kinds[slices.Index(names, best)], false
}

func forms() string {
	var b strings.Builder
	for i, k := range Kinds() {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(k.Form)
	}
	return b.String()
}

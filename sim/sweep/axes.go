package sweep

import (
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/windrow-sim/windrow/internal/decisions/policy"
	"github.com/windrow-sim/windrow/internal/nearest"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/sim"
	"github.com/windrow-sim/windrow/traces/whatif"
)

// mostValues bounds one list of a scenario.
const mostValues = 100_000

// reader reads the document of a scenario and keeps the first error, with its line.
type reader struct {
	name string
	err  error
}

func (r *reader) fail(n *yaml.Node, path, format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("sweep: %s:%d: %s: %s: %w", r.name, n.Line, path, fmt.Sprintf(format,
			args...), ErrScenario)
	}
}

// mapping calls the function of every key of n.
func (r *reader) mapping(n *yaml.Node, path string, keys []key) {
	if n.Kind != yaml.MappingNode || n.Anchor != "" {
		r.fail(n, path, "is not a plain mapping of keys to values")
		return
	}
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content) && r.err == nil; i += 2 {
		name, value := n.Content[i], n.Content[i+1]
		if line, twice := seen[name.Value]; twice {
			r.fail(name, path, "key %q is already given on line %d", name.Value, line)
			return
		}
		seen[name.Value] = name.Line
		r.key(name, value, path, keys)
	}
}

// key is a key that a mapping may hold.
type key struct {
	name  string
	about string
	read  func(n *yaml.Node, path string)
}

func (r *reader) key(name, value *yaml.Node, path string, keys []key) {
	var known []string
	for _, k := range keys {
		if k.name == name.Value {
			if value.Kind == yaml.AliasNode || value.Anchor != "" {
				r.fail(value, name.Value, "anchors and aliases are not supported; repeat the value")
				return
			}
			k.read(value, name.Value)
			return
		}
		known = append(known, k.name)
	}
	hint := "known keys are " + strings.Join(known, ", ")
	if best, distance := nearest.Name(name.Value, known); distance >= 0 &&
		distance <= len(name.Value)/2 {
		hint = fmt.Sprintf("did you mean %q?", best)
	}
	r.fail(name, path, "unknown key %q; %s", name.Value, hint)
}

// text returns the text of one value.
func (r *reader) text(n *yaml.Node, path string) string {
	if n.Kind != yaml.ScalarNode || n.Value == "" {
		r.fail(n, path, "is not one value")
		return ""
	}
	return n.Value
}

// values reads one value or a list of them.
func values[T comparable](r *reader, n *yaml.Node, path string, parse func(text string) ([]T,
	error)) (list []T) {
	items := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode {
		items = n.Content
	}
	seen := map[T]bool{}
	for _, item := range items {
		text := r.text(item, path)
		if r.err != nil {
			return nil
		}
		parsed, err := parse(text)
		if err != nil {
			r.fail(item, path, "%v", err)
			return nil
		}
		for _, v := range parsed {
			if seen[v] {
				r.fail(item, path, "%v is given twice", v)
				return nil
			}
			seen[v] = true
		}
		list = append(list, parsed...)
	}
	if len(list) == 0 || len(list) > mostValues {
		r.fail(n, path, "%d values; give 1 to %d", len(list), mostValues)
	}
	return list
}

// numbers reads a number, or a range like 1..64 or 1..64/3, whose ends are part of it.
func numbers(least, most int) func(text string) ([]int, error) {
	return func(text string) ([]int, error) {
		from, rest, isRange := strings.Cut(text, "..")
		to, by, hasStep := strings.Cut(rest, "/")
		if !isRange {
			to = from
		}
		if !hasStep {
			by = "1"
		}
		first, err1 := strconv.Atoi(from)
		last, err2 := strconv.Atoi(to)
		step, err3 := strconv.Atoi(by)
		switch {
		case err1 != nil || err2 != nil || err3 != nil:
			return nil, fmt.Errorf("%q is neither a number nor a range like 1..64 or 1..64/3", text)
		case first > last || step < 1:
			return nil, fmt.Errorf("range %q is empty; write it as FIRST..LAST/STEP, ascending",
				text)
		case first < least || last > most:
			return nil, fmt.Errorf("%s: the numbers are from %d to %d", text, least, most)
		}
		list := make([]int, 0, min((last-first)/step+1, mostValues))
		for v := first; v <= last; v += step {
			list = append(list, v)
		}
		return list, nil
	}
}

// number reads a single number.
func number(r *reader, least, most int, to *int) func(n *yaml.Node, path string) {
	return func(n *yaml.Node, path string) {
		v, err := strconv.Atoi(r.text(n, path))
		if r.err == nil && (err != nil || v < least || v > most) {
			r.fail(n, path, "%q is not a number from %d to %d", n.Value, least, most)
		}
		*to = v
	}
}

// toggle reads a single switch.
func (r *reader) toggle(to *bool) func(n *yaml.Node, path string) {
	return func(n *yaml.Node, path string) {
		v, err := strconv.ParseBool(r.text(n, path))
		if r.err == nil && err != nil {
			r.fail(n, path, "%q is neither true nor false", n.Value)
		}
		*to = v
	}
}

func switches(text string) ([]bool, error) {
	v, err := strconv.ParseBool(text)
	if err != nil {
		return nil, fmt.Errorf("%q is neither true nor false", text)
	}
	return []bool{v}, nil
}

// backends reads the name of a backend.
func backends(text string) ([]sim.Backend, error) {
	backend, err := sim.ParseBackend(text)
	return []sim.Backend{backend}, err
}

func names(text string) ([]string, error) { return []string{text}, nil }

// chunks reads a size with its unit, or none.
func chunks(text string) ([]units.Bytes, error) {
	if text == "none" {
		return []units.Bytes{0}, nil
	}
	b, err := units.ParseBytes(text)
	if err == nil && b < 1 {
		err = fmt.Errorf("%q: write none for no limit", text)
	}
	return []units.Bytes{b}, err
}

// depths reads a number of requests in flight, or auto for the engine's own, which is 0.
func depths(text string) ([]int, error) {
	if text == "auto" {
		return []int{0}, nil
	}
	return numbers(1, mostParallel)(text)
}

// shares reads a share, 5% or 0.05.
func shares(least, most float64) func(text string) ([]float64, error) {
	return func(text string) ([]float64, error) {
		v, err := whatif.ParseShare(text)
		if err == nil && (v < least || v > most) {
			err = fmt.Errorf("%q: the shares are from %g to %g", text, least, most)
		}
		return []float64{v}, err
	}
}

func policies(text string) ([]policy.Spec, error) {
	spec, err := policy.Parse(text)
	return []policy.Spec{spec}, err
}

package torch

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/windrow-sim/windrow/engine/checkpoint/internal/tensor"
)

// The values of the machine, besides name, *storage, *view, string, int64, float64 and bool. No
// code here follows a value into its parts without a limit, because a value may contain itself.
type (
	tuple []any
	list  struct{} // its items are not needed
	mark  struct{} // on the stack only
	none  struct{} // Python's None
	dict  struct { // with text keys; the machine sorts the pairs when it stops
		ordered bool
		pairs   []pair
		next    *dict // the dictionary made before this one
	}
)

// pair is a key of a dictionary with its value.
type pair struct {
	key   string
	value any
}

// The memory of values, for the budget: a value that is not a pointer lies on the heap, and the
// stack, the memo or a tuple has an interface that points to it.
const (
	interfaceMemory = 16
	numberMemory    = 8
	textMemory      = 16 // the text itself is part of the pickle
	tupleMemory     = 24 // without its interfaces
	dictMemory      = 48
	pairMemory      = 32
	pointerMemory   = 8
)

// newDict makes a dictionary.
func (m *machine) newDict(ordered bool) (*dict, error) {
	if err := m.budget.spend(dictMemory); err != nil {
		return nil, err
	}
	m.dicts = &dict{ordered: ordered, next: m.dicts}
	return m.dicts, nil
}

// set adds pairs of key and value.
func (m *machine) set(d *dict, items []any) error {
	if len(items)%2 != 0 {
		return fmt.Errorf("%w: a key without a value", errFormat)
	}
	if n := len(d.pairs) + len(items)/2; n > cap(d.pairs) {
		more := max(n, 2*cap(d.pairs))
		if err := m.budget.spend(int64(more) * pairMemory); err != nil {
			return err
		}
		d.pairs = append(make([]pair, 0, more), d.pairs...)
	}
	for ; len(items) > 0; items = items[2:] {
		key, ok := items[0].(string)
		if !ok {
			return fmt.Errorf("%w: a dictionary with a key that is %s, not text; save the state "+
				"dict of the model alone", errUnsupported, kind(items[0]))
		}
		d.pairs = append(d.pairs, pair{key, items[1]})
	}
	return nil
}

// sort sorts the pairs by key. Python would keep the last of two values under one key, other
// readers the first.
func (d *dict) sort() error {
	slices.SortFunc(d.pairs, func(a, b pair) int { return cmp.Compare(a.key, b.key) })
	for i := 1; i < len(d.pairs); i++ {
		if d.pairs[i-1].key == d.pairs[i].key {
			return fmt.Errorf("%w: the name %q occurs twice in a dictionary of the pickle",
				errFormat, tensor.Clip(d.pairs[i].key))
		}
	}
	return nil
}

// kind describes a value without its contents, which may be large or contain itself.
func kind(v any) string {
	switch v := v.(type) {
	case none:
		return "None"
	case bool:
		return "a truth value"
	case int64:
		return fmt.Sprintf("the number %d", v)
	case float64:
		return "a number"
	case string:
		return fmt.Sprintf("the text %q", tensor.Clip(v))
	case name:
		return fmt.Sprintf("the name %q", tensor.Clip(string(v)))
	case tuple:
		return "a tuple"
	case *list:
		return "a list"
	case *dict:
		return "a dictionary"
	case *storage:
		return "a storage"
	case *view:
		return "a tensor"
	}
	return "a mark"
}

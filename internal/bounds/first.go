package bounds

import "cmp"

// First is the first number of a document that is outside of its range. The zero value is none.
type First struct {
	Path  string // of the number in the document: parts[2].ns
	Value any
	Why   string // the predicate of a refusal
}

// Want compares a number with its range, unless an earlier one was outside of its own.
func Want[T cmp.Ordered](f *First, path string, v T, r Range[T]) {
	if f.Path == "" && !r.Has(v) {
		*f = First{path, v, r.Refuse(v)}
	}
}

// WantIf is Want for a number that may be missing.
func WantIf[T cmp.Ordered](f *First, path string, v *T, r Range[T]) {
	if v != nil {
		Want(f, path, *v, r)
	}
}

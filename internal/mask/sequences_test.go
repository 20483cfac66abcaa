package mask_test

import (
	"slices"
	"testing"

	"github.com/windrow-sim/windrow/internal/mask"
)

func TestSequences(t *testing.T) {
	for _, c := range []struct {
		name  string
		seqs  []uint32
		first []int // tokens that begin a sequence
	}{
		{"none", nil, nil},
		{"one that is not 0", []uint32{7, 7, 7}, []int{0}},
		{"0 first", []uint32{0, 0, 1, 1, 4}, []int{0, 2, 4}},
		{"one token each", []uint32{0, 1, 2}, []int{0, 1, 2}},
		{"one that comes back", []uint32{3, 0, 3}, []int{0, 1, 2}},
		{"the largest", []uint32{1<<32 - 1, 1<<32 - 1, 0}, []int{0, 2}},
	} {
		var begins, changes mask.Sequences
		var first, later []int
		for i, seq := range c.seqs {
			if begins.Begins(seq) {
				first = append(first, i)
			}
			if changes.Changes(seq) {
				later = append(later, i)
			}
		}
		if !slices.Equal(first, c.first) || begins.Count() != len(c.first) {
			t.Errorf("%s: sequences begin at %v, want %v; %d counted", c.name, first, c.first,
				begins.Count())
		}
		if want := c.first[min(1, len(c.first)):]; !slices.Equal(later, want) ||
			changes.Count() != len(c.first) {
			t.Errorf("%s: the sequence changes at %v, want %v", c.name, later, want)
		}
	}
}

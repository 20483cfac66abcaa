package traces

import (
	"slices"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/internal/mask"
)

func TestTokenMasks(t *testing.T) {
	tok := Token{Active: []mask.Mask{{1}}, Predicted: []mask.Mask{{2}}}
	if got := tok.Masks(false)[0]; got[0] != 1 {
		t.Errorf("the true mask is %b", got)
	}
	if got := tok.Masks(true)[0]; got[0] != 2 {
		t.Errorf("the predicted mask is %b", got)
	}
	tok.Predicted = nil
	if got := tok.Masks(true); got != nil {
		t.Errorf("the predicted masks of a token without any are %b", got)
	}
}

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
		var begins, changes Sequences
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

func TestCheckMasks(t *testing.T) {
	h := &Header{Layers: 2, Units: 70}
	good := mask.NewLayers(2, 70)
	good[1].Fill(70)
	if err := h.CheckMasks("active", good); err != nil {
		t.Error(err)
	}
	for want, masks := range map[string][]mask.Mask{
		"active masks of 1 layers: the header says 2":             good[:1],
		"active masks of 0 layers":                                nil,
		"active mask of layer 1: 1 words for 70 units: must be 2": {good[0], {1}},
		"active mask of layer 0: 3 words":                         {{0, 0, 0}, good[1]},
		"active mask of layer 1: 0 words":                         {good[0], nil},
		"active mask of layer 1: a bit beyond unit 69 is set":     {good[0], {0, 1 << 6}},
		"active mask of layer 0: a bit beyond unit 69 is set":     {{0, 1 << 63}, good[1]},
	} {
		if err := h.CheckMasks("active", masks); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%b: %v, want %q", masks, err, want)
		}
	}
}

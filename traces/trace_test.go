package traces

import (
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
		if err := h.CheckMasks("active", masks); err == nil || !strings.Contains(err.Error(),
			want) {
			t.Errorf("%b: %v, want %q", masks, err, want)
		}
	}
}

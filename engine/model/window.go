package model

import (
	"fmt"
	"slices"

	"github.com/windrow-sim/windrow/engine/checkpoint"
)

// WindowOf returns how many positions a query of a layer sees, its own included; 0 = all.
func (a *Arch) WindowOf(layer int) int {
	if _, full := slices.BinarySearch(a.FullLayers, layer); full {
		return 0
	}
	return a.Window
}

// RotaryOf returns the rotary positions of a layer.
func (a *Arch) RotaryOf(layer int) *Rotary {
	if a.LocalRotary.Dim > 0 && a.WindowOf(layer) > 0 {
		return &a.LocalRotary
	}
	return &a.Rotary
}

// checkWindow demands a window, and layers without it, that an image may have.
func (a *Arch) checkWindow() error {
	if a.Window < 0 {
		return fmt.Errorf("%w: sliding window of %d positions", checkpoint.ErrFormat, a.Window)
	}
	list := a.FullLayers
	if len(list) == 0 {
		return nil
	}
	ascending := slices.IsSorted(list) && len(slices.Compact(slices.Clone(list))) == len(list)
	if a.Window == 0 || !ascending || list[0] < 0 || list[len(list)-1] >= a.Shape.Layers {
		return fmt.Errorf("%w: full_layers of %d numbers beside a sliding window of %d positions: "+
			"layers 0 to %d are wanted, ascending, and a window", checkpoint.ErrFormat, len(list),
			a.Window, a.Shape.Layers-1)
	}
	return nil
}

// windowSize reads sliding_window, which is 0 where it is null.
func (f *fields) windowSize(absent int) int {
	size := 0
	if !f.there("sliding_window") {
		size = absent
	}
	f.optional("sliding_window", &size)
	return size
}

// The values of layer_types that the engine knows.
const (
	fullAttention    = "full_attention"
	slidingAttention = "sliding_attention"
)

// windows sets the sliding window of the layers that layer_types lists as such, or without that
// field of those for which windowed is true. window is 0 where the model has none.
func (f *fields) windows(a *Arch, window int, windowed func(layer int) bool) {
	var types []string
	given := f.optional("layer_types", &types)
	if f.err != nil {
		return
	}
	if given && len(types) != a.Shape.Layers {
		f.err = fmt.Errorf("%w: layer_types lists %d layers, num_hidden_layers is %d",
			checkpoint.ErrFormat, len(types), a.Shape.Layers)
		return
	}
	// Arch.check refuses other numbers of layers later.
	layers, full := min(max(a.Shape.Layers, 0), maxLayers), []int(nil)
	for l := range layers {
		in := window > 0 && windowed(l)
		if given {
			in = types[l] == slidingAttention
			if !in && types[l] != fullAttention {
				f.refuse("layer_types", types[l])
				return
			}
			if in && window < 1 {
				f.err = fmt.Errorf("%w: layer_types has %s, but the file has no sliding window "+
					"(sliding_window, use_sliding_window)", checkpoint.ErrFormat, slidingAttention)
				return
			}
		}
		if !in {
			full = append(full, l)
		}
	}
	if len(full) < layers {
		a.Window, a.FullLayers = window, full
	}
}

package model

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/engine/checkpoint"
)

// qwenConfig is a config.json of five layers with a window of 32,768 and more fields.
func qwenConfig(kind, more string) string {
	return fmt.Sprintf(`{"model_type":%q,"hidden_size":32,"num_hidden_layers":5,`+
		`"num_attention_heads":4,"num_key_value_heads":2,"head_dim":8,"intermediate_size":64,`+
		`"vocab_size":96,"sliding_window":32768%s}`, kind, more)
}

// TestField_P8_QwenSlidingWindows: a Qwen config names a large window that counts only with
// use_sliding_window, from layer max_window_layers (28 without it) on. layer_types wins.
func TestField_P8_QwenSlidingWindows(t *testing.T) {
	all := []int{0, 1, 2, 3, 4}
	for _, kind := range []string{Qwen2, Qwen3} {
		for _, use := range []string{"true", "false", "null", ""} {
			for most, full := range map[string][]int{"0": nil, "2": {0, 1}, "5": all, "9": all,
				"": all} {
				more := ""
				if use != "" {
					more += `,"use_sliding_window":` + use
				}
				if most != "" {
					more += `,"max_window_layers":` + most
				}
				want := full
				if use != "true" {
					want = all
				}
				p8(t, qwenConfig(kind, more), want)
			}
		}
		const types = `,"layer_types":["full_attention","sliding_attention","sliding_attention",` +
			`"full_attention","sliding_attention"]`
		p8(t, qwenConfig(kind, `,"use_sliding_window":true,"max_window_layers":2`+types),
			[]int{0, 3})
		p8(t, qwenConfig(kind, `,"use_sliding_window":true`+types), []int{0, 3})
		null := strings.Replace(qwenConfig(kind,
			`,"use_sliding_window":true,"max_window_layers":0`),
			"32768", "null", 1)
		p8(t, null, all)
		none := `,"layer_types":[` + strings.Repeat(`"full_attention",`, 4) + `"full_attention"]`
		p8(t, qwenConfig(kind, `,"use_sliding_window":true,"max_window_layers":0`+none), all)
		p8(t, qwenConfig(kind, none), all)

		for more, want := range map[string]string{
			types:                               "no sliding window (sliding_window, use_sliding_window)",
			`,"layer_types":["full_attention"]`: "lists 1 layers, num_hidden_layers is 5",
		} {
			_, err := parse(t, qwenConfig(kind, more))
			refused(t, err, checkpoint.ErrFormat, want)
		}
		_, err := parse(t, qwenConfig(kind, `,"layer_types":["linear_attention",0,0,0,0]`))
		refused(t, err, checkpoint.ErrFormat, "layer_types")
		_, err = parse(t, qwenConfig(kind, strings.Replace(types, "sliding_attention",
			"linear_attention", 1)))
		refused(t, err, checkpoint.ErrUnsupported, "layer_types = linear_attention")
	}
}

func p8(t *testing.T, config string, full []int) {
	t.Helper()
	c, err := parse(t, config)
	if err != nil {
		t.Fatal(err)
	}
	var got []int
	for l := range c.Arch.Shape.Layers {
		switch w := c.Arch.WindowOf(l); w {
		case 0:
			got = append(got, l)
		case 32768:
		default:
			t.Errorf("%s: layer %d has a window of %d", config, l, w)
		}
	}
	if !slices.Equal(got, full) {
		t.Errorf("%s: layers without a window: %v, want %v", config, got, full)
	}
}

// TestFullLayersAreChecked: an image may hold any list.
func TestFullLayersAreChecked(t *testing.T) {
	c, err := parse(t, qwenConfig(Qwen2, `,"use_sliding_window":true,"max_window_layers":2`))
	if err != nil {
		t.Fatal(err)
	}
	for _, list := range [][]int{{1, 0}, {1, 1}, {-1}, {5}} {
		a := c.Arch
		a.FullLayers = list
		_, err := decodeArch(a.encode())
		refused(t, err, checkpoint.ErrFormat, "full_layers")
	}
	a := c.Arch
	a.Window = 0
	refused(t, a.check(), checkpoint.ErrFormat, "full_layers")
}

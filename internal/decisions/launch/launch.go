// Package launch counts the kernels and the lists that one token launches and copies on a device,
// part by part. The simulator charges these numbers. The tests of engine/cuda count the driver's
// calls and compare. It is a leaf.
//
// The counts are for single tokens of OPT (learned positions, two rows per unit) and of Llama and
// similar families (RoPE, three rows). Other families launch up to four kernels more or less per
// layer (Gemma 3 has four norms more), and Gemma 2 one more per token. Events and waits between
// streams cost the host a fraction of a launch and are not counted.
package launch

// Calls are the calls of the host for one part.
type Calls struct {
	MatVecs int // over resident weights
	// kernels that together do one operation: attention, a feed-forward block, or the scatter of
	// rows
	Fused  int
	Small  int // norms, additions, rotations: their time is negligible
	Around int // small kernels outside the device's times of the part (engine.DeviceTimes)
	Lists  int // copies of a few bytes between host and device
}

// All returns the number of calls.
func (c Calls) All() int { return c.MatVecs + c.Fused + c.Small + c.Around + c.Lists }

// Model holds the model properties that determine launch counts.
type Model struct {
	// positions rotate queries and keys (RoPE); if false, a table of positions is added to the
	// embedding
	Rotary bool
}

// Of returns the model for records of so many rows. Three rows mean a gate, as in Llama.
func Of(rows int) Model { return Model{Rotary: rows == 3} }

// Begin counts the embedding of a token: its id, position and sequence go to the device.
func (m Model) Begin() Calls {
	if m.Rotary {
		return Calls{Around: 1, Lists: 3}
	}
	return Calls{Around: 2, Lists: 3}
}

// Attention counts the attention of a layer: norm, queries, keys, values, their storing, two
// kernels over all positions, the output, its addition, and the norm of the feed-forward block.
func (m Model) Attention() Calls {
	c := Calls{MatVecs: 4, Fused: 2, Small: 1, Around: 3}
	if m.Rotary {
		c.Small += 2
	}
	return c
}

// Arrive counts the scatter of a layer's rows from flash: the rows that close gaps, then the rows
// read, each with two lists.
func Arrive(moved, loaded bool) (c Calls) {
	for _, some := range []bool{moved, loaded} {
		if some {
			c.Fused++
			c.Lists += 2
		}
	}
	return c
}

// FFN counts a feed-forward block and the addition of its output. Rows from flash need lists of
// units and slots.
func FFN(fromFlash bool) Calls {
	c := Calls{Fused: 3, Around: 1}
	if fromFlash {
		c.Lists = 2
	}
	return c
}

// Head counts the last norm and the output head. The copy of the logits to the host is a transfer
// of its own.
func Head() Calls { return Calls{MatVecs: 1, Small: 1, Lists: 1} }

// Package launch counts what one token asks of a device, part by part: how many kernels and how
// many lists. It is a leaf: the simulator charges these numbers, and the tests of engine/cuda count
// the driver's calls and compare.
//
// Counted are single tokens of OPT (learned positions, two rows for each unit) and of Llama and its
// kin (rotary positions, three rows). Other families launch up to two kernels more or less in a
// layer. Events and waits between streams cost the host a fraction of a launch and are not counted.
package launch

// Calls are what the host asks for in one part.
type Calls struct {
	MatVecs int // over resident weights
	// kernels that do one operation together: of attention, of a feed-forward part, of rows that
	// arrive
	Fused  int
	Small  int // norms, additions, rotations: beside the time of a kernel they take none
	Around int // small ones outside of the device's own times of the part (engine.DeviceTimes)
	Lists  int // copies of a few bytes between host and device
}

// All is how often the host calls.
func (c Calls) All() int { return c.MatVecs + c.Fused + c.Small + c.Around + c.Lists }

// Model is what of a model the numbers depend on.
type Model struct {
	// positions turn queries and keys; else a table of positions is added to the embedding
	Rotary bool
}

// Of is the model of a record of so many rows: with a gate it is one of Llama's kin.
func Of(rows int) Model { return Model{Rotary: rows == 3} }

// Begin is the embedding of a token: its id, position and sequence go to the device.
func (m Model) Begin() Calls {
	if m.Rotary {
		return Calls{Around: 1, Lists: 3}
	}
	return Calls{Around: 2, Lists: 3}
}

// Attention is that of a layer: norm, queries, keys, values, their storing, two kernels over all
// positions, the output, its addition, and the norm of the feed-forward part.
func (m Model) Attention() Calls {
	c := Calls{MatVecs: 4, Fused: 2, Small: 1, Around: 3}
	if m.Rotary {
		c.Small += 2
	}
	return c
}

// Arrive is the rows of a layer that come from flash: those that close gaps, then those that were
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

// FFN is a feed-forward part with the addition of what it gives. Rows from flash need lists of
// units and places.
func FFN(fromFlash bool) Calls {
	c := Calls{Fused: 3, Around: 1}
	if fromFlash {
		c.Lists = 2
	}
	return c
}

// Head is the last norm and the output head. The logits that it brings back are a transfer of their
// own.
func Head() Calls { return Calls{MatVecs: 1, Small: 1, Lists: 1} }

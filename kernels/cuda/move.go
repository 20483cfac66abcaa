package cuda

// RowBuffers hold the rows of one layer that are on the device: one buffer per kind of row, with
// Places slots of Size bytes.
type RowBuffers struct {
	Gate, Up, Down Mem // (places, size); Gate is optional
	Places         int
	Size           int // bytes of a row
}

func (c *shapes) buffers(a *RowBuffers) {
	c.within("places", a.Places, 0, most)
	c.within("size of a row", a.Size, 1, most)
	if c.err != nil {
		return
	}
	size := product(a.Places, a.Size)
	c.mayHold("Gate", a.Gate, size)
	c.holds("Up", a.Up, size)
	c.holds("Down", a.Down, size)
}

// kinds is the number of rows of a record.
func (a *RowBuffers) kinds() int {
	if a.Gate == (Mem{}) {
		return 2
	}
	return 3
}

// Scatter launches the copy of n records from staging to their slots: record i lies at byte
// offsets[i] (uint64) of staging, its rows one after the other, and goes to slot slots[i] (int32).
// staging may be pinned host memory (Device.Mapped): the device then reads it over the bus. Rows at
// offsets that are multiples of 16 are copied 16 bytes at a time, others byte by byte. Offsets and
// slots are on the device and not checked.
func (k *Kernels) Scatter(s Stream, a *RowBuffers, staging, offsets, slots Mem, n int) error {
	c := shapes{operation: "scatter"}
	c.buffers(a)
	c.within("records", n, 0, a.Places)
	if c.err != nil {
		return c.err
	}
	c.holds("offsets", offsets, product(n, wordBytes))
	c.holds("slots", slots, product(n, intBytes))
	c.holds("staging", staging, product(min(n, 1), a.kinds(), a.Size))
	if c.err != nil {
		return c.err
	}
	return k.launch(s, scatter, Grid{n, a.kinds(), 1}, rowThreads,
		PointerArg(a.Gate.Ptr), PointerArg(a.Up.Ptr), PointerArg(a.Down.Ptr),
		PointerArg(staging.Ptr), PointerArg(offsets.Ptr), PointerArg(slots.Ptr), IntArg(a.Size))
}

// Move launches the copy of n rows from slot from[i] to slot to[i] (int32), in all buffers: it
// closes the gaps of evicted rows. All rows move at once, so no slot may be in both lists or twice
// in to.
func (k *Kernels) Move(s Stream, a *RowBuffers, from, to Mem, n int) error {
	c := shapes{operation: "move of rows"}
	c.buffers(a)
	c.within("rows", n, 0, a.Places)
	if c.err != nil {
		return c.err
	}
	c.holds("from", from, product(n, intBytes))
	c.holds("to", to, product(n, intBytes))
	if c.err != nil {
		return c.err
	}
	return k.launch(s, rowMove, Grid{n, a.kinds(), 1}, rowThreads,
		PointerArg(a.Gate.Ptr), PointerArg(a.Up.Ptr), PointerArg(a.Down.Ptr), PointerArg(from.Ptr),
		PointerArg(to.Ptr), IntArg(a.Size))
}

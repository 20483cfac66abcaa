package cuda

// RowBuffers are the rows of one layer that are on the device: a place for each, of Size bytes, in
// one buffer per kind of row.
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

// Scatter launches the move of n records from staging to places: record i is at byte offsets[i]
// (uint64) of staging, its rows one after the other, and goes to place slots[i] (int32). staging
// may be pinned host memory (Device.Mapped): the device then fetches the rows over the bus by
// itself. Rows at offsets that are multiples of 16 go 16 bytes at a time, others byte by byte.
// Offsets and places are not checked: they are the device's.
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

// Move launches the move of n rows from place from[i] to place to[i] (int32), in all buffers: what
// closes the gaps that evicted rows leave. All are moved at once, so no place may be in both lists
// or twice in to.
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

package cuda

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/windrow-sim/windrow/engine"
	"github.com/windrow-sim/windrow/internal/decisions/policy"
	"github.com/windrow-sim/windrow/internal/mask"
	"github.com/windrow-sim/windrow/internal/units"
	kernels "github.com/windrow-sim/windrow/kernels/cuda"
)

// rows are a layer's feed-forward rows on the device.
type rows struct {
	kernels.RowBuffers
	scope
	// arrived marks, in moves, that all inserted rows are in their slots; used marks, in compute,
	// that the layer's feed-forward part has read them.
	arrived, used kernels.Event
}

// newRows makes row buffers with so many places.
func (b *Backend) newRows(places int) (*rows, error) {
	shape, size := b.w.Shape, b.w.Bundles.Size(b.w.Shape.DModel)
	r := &rows{scope: scope{b: b}}
	r.RowBuffers = kernels.RowBuffers{Places: places, Size: size}
	if shape.Rows == 3 {
		r.Gate = r.room(int64(places) * int64(size))
	}
	r.Up, r.Down = r.room(int64(places)*int64(size)), r.room(int64(places)*int64(size))
	r.arrived, r.used = r.event(false), r.event(false)
	if err := r.err; err != nil {
		return nil, errors.Join(err, r.free())
	}
	return r, nil
}

// fill puts the records of all units into the slots of their numbers, in portions of a staging
// buffer.
func (b *Backend) fill(r *rows, list []engine.Row, staging []byte) error {
	record := b.w.RecordBytes()
	const align = 16 // Scatter is fast with this alignment
	stride := (record + align - 1) / align * align
	portion := len(staging) / stride
	for from := 0; from < len(list); from += portion {
		part := list[from:min(from+portion, len(list))]
		at, places := make([]int64, len(part)), make([]int32, len(part))
		for i := range part {
			at[i], places[i] = int64(i*stride), int32(part[i].Unit)
			copy(staging[at[i]:], part[i].Record())
		}
		if err := b.scatter(r, staging, at, places); err != nil {
			return err
		}
		if err := b.Synchronise(); err != nil {
			return err
		}
	}
	return nil
}

// scatter copies records from a staging buffer to their slots.
func (b *Backend) scatter(r *rows, staging []byte, at []int64, places []int32) error {
	if len(at) == 0 {
		return nil
	}
	mapped, err := b.mapped(staging)
	if err != nil {
		return err
	}
	record := int64(b.w.RecordBytes())
	offsets := make([]uint64, len(at))
	for i, v := range at {
		if v < 0 || v+record > int64(len(staging)) {
			return fmt.Errorf("engine/cuda: a record at byte %d of a staging buffer of %d", v,
				len(staging))
		}
		offsets[i] = uint64(v)
	}
	b.moving.Lock()
	defer b.moving.Unlock()
	where, to, err := b.beginMove(r, kernels.AsBytes(offsets), kernels.AsBytes(places))
	if err != nil {
		return err
	}
	if err := b.clock.mark(scatterFrom, b.moves); err != nil {
		return err
	}
	if err := b.kernels.Scatter(b.moves, &r.RowBuffers, mapped, where, to, len(at)); err != nil {
		return err
	}
	if err := b.clock.mark(scatterTo, b.moves); err != nil {
		return err
	}
	return b.device.Record(r.arrived, b.moves)
}

// beginMove lets the stream of moves wait until rows are no longer used, and puts two lists on the
// device. The caller holds moving.
func (b *Backend) beginMove(r *rows, from, to []byte) (source, target kernels.Mem, err error) {
	if err := b.device.Wait(b.moves, r.used); err != nil {
		return source, target, err
	}
	if source, err = b.moveLists.put(from); err != nil {
		return source, target, err
	}
	target, err = b.moveLists.put(to)
	return source, target, err
}

// move copies rows from places to others, which no list has twice.
func (b *Backend) move(r *rows, from, to []int32) error {
	if len(from) == 0 {
		return nil
	}
	b.moving.Lock()
	defer b.moving.Unlock()
	source, target, err := b.beginMove(r, kernels.AsBytes(from), kernels.AsBytes(to))
	if err != nil {
		return err
	}
	if err := b.kernels.Move(b.moves, &r.RowBuffers, source, target, len(from)); err != nil {
		return err
	}
	return b.device.Record(r.arrived, b.moves)
}

// staging is a buffer that reads are made into.
type staging struct {
	whole, buf []byte
	mapped     kernels.Mem // of buf
}

// Staging implements engine.Store, like all that follow: pinned memory that the device fetches from
// by itself.
func (b *Backend) Staging(size int64) ([]byte, error) {
	const align = 4096
	whole, err := b.device.HostAlloc(size+align, false)
	if err != nil {
		return nil, err
	}
	head := -int64(uintptr(unsafe.Pointer(unsafe.SliceData(whole)))) & (align - 1)
	buf := whole[head : head+size : head+size]
	mapped, err := b.device.Mapped(whole)
	if err != nil {
		return nil, errors.Join(err, b.device.HostFree(whole))
	}
	b.moving.Lock()
	defer b.moving.Unlock()
	b.buffers = append(b.buffers, staging{whole, buf, mapped.Slice(head, size)})
	return buf, nil
}

// FreeStaging frees a buffer.
func (b *Backend) FreeStaging(buf []byte) error {
	b.moving.Lock()
	defer b.moving.Unlock()
	for i := range b.buffers {
		if s := &b.buffers[i]; len(buf) > 0 && unsafe.SliceData(s.buf) == unsafe.SliceData(buf) {
			whole := s.whole
			b.buffers = append(b.buffers[:i], b.buffers[i+1:]...)
			return b.device.HostFree(whole)
		}
	}
	return nil
}

// mapped returns the device's address of a part of a staging buffer.
func (b *Backend) mapped(part []byte) (kernels.Mem, error) {
	b.moving.Lock()
	defer b.moving.Unlock()
	at := uintptr(unsafe.Pointer(unsafe.SliceData(part)))
	for i := range b.buffers {
		s := &b.buffers[i]
		if first := uintptr(unsafe.Pointer(unsafe.SliceData(s.buf))); at >= first &&
			at+uintptr(len(part)) <= first+uintptr(len(s.buf)) {
			return s.mapped.Slice(int64(at-first), int64(len(part))), nil
		}
	}
	return kernels.Mem{}, fmt.Errorf("engine/cuda: rows are inserted from memory that is not of " +
		"Staging")
}

// Synchronise waits until rows have left the staging buffers.
func (b *Backend) Synchronise() error { return b.device.SyncStream(b.moves) }

// cache holds the rows of a layer on flash: the list of units on the host, the rows on the device.
type cache struct {
	b        *Backend
	layer    int
	capacity int
	slots    *policy.Slots
	rows     *rows
	origin   []int32 // by slot: the slot that holds its row, while units are deleted
	err      error   // of a move
}

// Cache keeps up to capacity rows of a layer.
func (b *Backend) Cache(layer, capacity int) (engine.Cache, error) {
	n := b.w.Shape.DFFN
	if layer < 0 || layer >= len(b.rows) || capacity < 0 || capacity > n {
		return nil, fmt.Errorf("engine/cuda: %d rows for layer %d: there are %d units in each "+
			"of %d layers", capacity, layer, n, len(b.rows))
	}
	if b.rows[layer] != nil {
		return nil, fmt.Errorf("engine/cuda: layer %d has its rows already; close them first",
			layer)
	}
	r, err := b.newRows(capacity)
	if err != nil {
		return nil, err
	}
	b.rows[layer] = r
	c := &cache{b: b, layer: layer, capacity: capacity, slots: policy.NewSlots(n), rows: r,
		origin: make([]int32, capacity)}
	for i := range c.origin {
		c.origin[i] = int32(i)
	}
	return c, nil
}

// Delete implements engine.Cache, like the methods that follow. Slots moves the last row to each
// gap in turn, some rows several times; the device moves each once, from its first slot to its
// last. Rows end below the new length and start above it, so no slot is in both lists.
func (c *cache) Delete(list []uint32) (moved int) {
	var touched []int32
	for _, u := range list {
		from, to := c.slots.Delete(u)
		if from != to {
			c.origin[to] = c.origin[from]
			touched = append(touched, int32(to))
			moved++
		}
		c.origin[from] = int32(from)
	}
	var source, target []int32
	for _, to := range touched {
		if from := c.origin[to]; int(to) < c.slots.Len() && from != to {
			source, target = append(source, from), append(target, to)
			c.origin[to] = to
		}
	}
	if err := c.b.move(c.rows, source, target); err != nil && c.err == nil {
		c.err = err
	}
	return moved
}

// Insert appends rows.
func (c *cache) Insert(list []uint32, staging []byte, at []int64) error {
	if c.err != nil {
		return c.err
	}
	if need := c.slots.Len() + len(list); need > c.capacity {
		return fmt.Errorf("engine/cuda: %d rows are wanted and there is room for %d; give the "+
			"cache more rows or the policy a smaller window", need, c.capacity)
	}
	places := make([]int32, len(list))
	for i, u := range list {
		places[i] = int32(c.slots.Insert(u))
	}
	return c.b.scatter(c.rows, staging, at[:len(list)], places)
}

// Rows appends the slots of a mask's units.
func (c *cache) Rows(to []engine.Row, need mask.Mask) ([]engine.Row, error) {
	if c.err != nil {
		return nil, c.err
	}
	for u := range need.Each {
		slot := c.slots.Row(u)
		if slot < 0 {
			return nil, fmt.Errorf("engine/cuda: unit %d is needed but not in the row cache", u)
		}
		to = append(to, engine.Row{Unit: u, Slot: int32(slot)})
	}
	return to, nil
}

// Reset empties the cache.
func (c *cache) Reset() {
	c.slots.Reset()
	c.err = nil
}

// Close frees the rows.
func (c *cache) Close() error {
	c.b.rows[c.layer] = nil
	return c.rows.free()
}

// Bytes is how much device memory is in use.
func (b *Backend) Bytes() units.Bytes { return units.Bytes(b.used.Load()) }

package engine

import (
	"fmt"

	"github.com/windrow-sim/windrow/engine/flashio"
	"github.com/windrow-sim/windrow/engine/model"
	"github.com/windrow-sim/windrow/internal/decisions/layout"
	"github.com/windrow-sim/windrow/internal/mask"
	"github.com/windrow-sim/windrow/internal/units"
)

// mainMemory is the Store in main memory, for the CPU.
type mainMemory struct {
	w      *model.Weights
	record units.Bytes
}

// Staging touches the memory, so that no read pays for page faults.
func (m *mainMemory) Staging(size int64) ([]byte, error) {
	buf := flashio.AlignedBuffer(int(size), layout.StagingAlign)
	if buf == nil {
		return nil, fmt.Errorf("engine: no memory for a staging buffer of %v: %w; use a smaller "+
			"--staging, window or --chunk", units.Bytes(size), flashio.ErrEnvironment)
	}
	clear(buf)
	return buf, nil
}

// FreeStaging implements Store, like the methods that follow.
func (m *mainMemory) FreeStaging(b []byte) error { return flashio.FreeBuffer(b) }

// Synchronise returns at once: Insert copies.
func (m *mainMemory) Synchronise() error { return nil }

// Cache implements Store.
func (m *mainMemory) Cache(layer, capacity int) (Cache, error) {
	c, err := newRowCache(m.w.Shape.DFFN, capacity, int(m.record))
	return &memoryCache{c, &m.w.Layers[layer], int64(m.record)}, err
}

// memoryCache is the row cache of a layer.
type memoryCache struct {
	*rowCache
	layer  *model.Layer
	record int64
}

// Insert implements Cache.
func (c *memoryCache) Insert(list []uint32, staging []byte, at []int64) error {
	for i, u := range list {
		if err := c.rowCache.insert(u, staging[at[i]:at[i]+c.record], upBias(c.layer,
			int(u))); err != nil {
			return err
		}
	}
	return nil
}

// Rows implements Cache.
func (c *memoryCache) Rows(to []Row, need mask.Mask) ([]Row, error) {
	for u := range need.Each {
		record, bias, ok := c.row(u)
		if !ok {
			return nil, errAbsent(u)
		}
		to = append(to, Row{Unit: u, bias: bias, record: record})
	}
	return to, nil
}

// Close leaves the memory to the garbage collector.
func (c *memoryCache) Close() error { return nil }

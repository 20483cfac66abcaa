// Package rowcache is the preallocated memory that the rows of one layer's cached neurons live in
// (LLM in a flash, section 3.3 and Figure 6): inserting appends, deleting overwrites the gap with
// the last row, and nothing is ever reallocated or shifted.
//
// The paper's fields are here: matrix, pointer and num_rows (policy.Slots, shared with the
// simulator), bias; last_k_active is the residency policy's own state (policy.Window). It decides
// nothing: which rows come and go is internal/decisions/policy's business.
package rowcache

import (
	"fmt"

	"github.com/windrow-sim/windrow/internal/decisions/policy"
)

// Cache holds up to a fixed number of records of one layer. It is not safe for concurrent use.
type Cache struct {
	slots  *policy.Slots
	matrix []byte    // (capacity, record)
	bias   []float32 // (capacity)
	record int
}

// New returns an empty Cache for capacity records of record bytes each, out of units neurons. All
// its memory is touched now, so that no token pays for page faults and a machine that is too small
// shows it before the first one.
func New(units, capacity, record int) (*Cache, error) {
	if units <= 0 || capacity < 0 || capacity > units || record <= 0 {
		return nil, fmt.Errorf("rowcache: %d rows of %d bytes for %d units is not a cache",
			capacity, record, units)
	}
	c := &Cache{slots: policy.NewSlots(units), matrix: make([]byte, capacity*record),
		bias: make([]float32, capacity), record: record}
	const page = 4096
	for i := 0; i < len(c.matrix); i += page {
		c.matrix[i] = 0
	}
	return c, nil
}

// Len is the number of rows in use.
func (c *Cache) Len() int { return c.slots.Len() }

// Reset empties the cache.
func (c *Cache) Reset() { c.slots.Reset() }

// Delete removes the rows of the given units, all of which must be present, and returns how many
// rows were copied to fill the gaps.
func (c *Cache) Delete(units []uint32) (copied int) {
	for _, u := range units {
		from, to := c.slots.Delete(u)
		if from == to {
			continue
		}
		copy(c.at(to), c.at(from))
		c.bias[to] = c.bias[from]
		copied++
	}
	return copied
}

// Insert appends the record and bias of an absent unit. A full cache is an error: the stated memory
// is never exceeded.
func (c *Cache) Insert(unit uint32, record []byte, bias float32) error {
	if c.slots.Len() == len(c.bias) {
		return fmt.Errorf("rowcache: all %d rows are in use and unit %d needs one more; give "+
			"the cache more rows or the policy a smaller window", len(c.bias), unit)
	}
	row := c.slots.Insert(unit)
	copy(c.at(row), record)
	c.bias[row] = bias
	return nil
}

// Row returns the record of a present unit, and its bias. The record is valid until the next
// Delete or Insert. ok is false when the unit is not in the cache.
func (c *Cache) Row(unit uint32) (record []byte, bias float32, ok bool) {
	row := c.slots.Row(unit)
	if row < 0 {
		return nil, 0, false
	}
	return c.at(row), c.bias[row], true
}

func (c *Cache) at(row int) []byte { return c.matrix[row*c.record : (row+1)*c.record] }

package engine

import (
	"fmt"

	"github.com/windrow-sim/windrow/internal/decisions/policy"
)

// rowCache is preallocated memory for the resident rows of one layer (LLM in a flash, section 3.3
// and Figure 6). An insertion appends a row. A deletion overwrites the gap with the last row.
// Nothing is reallocated or shifted. The residency policy (internal/decisions/policy) decides which
// rows to insert and delete.
//
// The paper's pointer and num_rows are policy.Slots, shared with the simulator; its last_k_active
// is the state of policy.Window. A rowCache is not safe for concurrent use.
type rowCache struct {
	slots  *policy.Slots
	matrix []byte    // (capacity, record)
	bias   []float32 // (capacity)
	record int
}

// newRowCache returns an empty rowCache for capacity records of record bytes each, out of units
// neurons. All its memory is touched now: no token pays for page faults, and a machine with too
// little memory fails before the first token.
func newRowCache(units, capacity, record int) (*rowCache, error) {
	if units <= 0 || capacity < 0 || capacity > units || record <= 0 {
		return nil, fmt.Errorf("engine: row cache: %d rows of %d bytes for %d units is not a cache",
			capacity, record, units)
	}
	c := &rowCache{slots: policy.NewSlots(units), matrix: make([]byte, capacity*record),
		bias: make([]float32, capacity), record: record}
	const page = 4096
	for i := 0; i < len(c.matrix); i += page {
		c.matrix[i] = 0
	}
	return c, nil
}

// Reset empties the cache.
func (c *rowCache) Reset() { c.slots.Reset() }

// Delete removes the rows of the given units, all of which must be present, and returns how many
// rows were copied to fill the gaps.
func (c *rowCache) Delete(units []uint32) (copied int) {
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

// insert appends the record and bias of an absent unit. A full cache is an error: the cache never
// exceeds the stated memory.
func (c *rowCache) insert(unit uint32, record []byte, bias float32) error {
	if c.slots.Len() == len(c.bias) {
		return fmt.Errorf("engine: row cache: all %d rows are in use and unit %d needs one more; "+
			"give the cache more rows or the policy a smaller window", len(c.bias), unit)
	}
	row := c.slots.Insert(unit)
	copy(c.at(row), record)
	c.bias[row] = bias
	return nil
}

// row returns the record of a present unit, and its bias. The record is valid until the next
// Delete or insert. ok is false when the unit is not in the cache.
func (c *rowCache) row(unit uint32) (record []byte, bias float32, ok bool) {
	row := c.slots.Row(unit)
	if row < 0 {
		return nil, 0, false
	}
	return c.at(row), c.bias[row], true
}

func (c *rowCache) at(row int) []byte { return c.matrix[row*c.record : (row+1)*c.record] }

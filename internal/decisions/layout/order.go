package layout

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
)

// ErrOrder marks a list that is not an order of a layer's units.
var ErrOrder = errors.New("not an order of the units")

// Order is where the units of every layer lie among its records. It is immutable. In JSON it is its
// name and its hash alone: an Order that was read from JSON says which one was used, and cannot be
// planned with.
type Order struct {
	Name string `json:"name"` // of the rule that made it
	// of the units in their order on flash, layer by layer, as uint32 in little-endian
	SHA256 string `json:"sha256"`

	places [][]uint32 // of every unit, by layer
}

// NewOrder makes an Order of the units of every layer in their order on flash. Each layer needs the
// same number of units, each of them once; errors are of kind ErrOrder. The lists are copied.
func NewOrder(name string, onFlash [][]uint32) (*Order, error) {
	o := &Order{Name: name, places: make([][]uint32, len(onFlash))}
	hash := sha256.New()
	var bytes []byte
	for l, list := range onFlash {
		if len(list) != len(onFlash[0]) {
			return nil, fmt.Errorf("layout: order %s: layer %d has %d units, layer 0 has %d: %w",
				name, l, len(list), len(onFlash[0]), ErrOrder)
		}
		places, seen := make([]uint32, len(list)), make([]bool, len(list))
		bytes = bytes[:0]
		for at, u := range list {
			if int64(u) >= int64(len(list)) || seen[u] {
				return nil, fmt.Errorf("layout: order %s: layer %d: unit %d at place %d is "+
					"there twice, or one of %d units at most: %w", name, l, u, at, len(list),
					ErrOrder)
			}
			places[u], seen[u] = uint32(at), true
			bytes = binary.LittleEndian.AppendUint32(bytes, u)
		}
		hash.Write(bytes)
		o.places[l] = places
	}
	o.SHA256 = hex.EncodeToString(hash.Sum(nil))
	return o, nil
}

// place is where a unit lies; a nil Order is that of the numbers.
func (o *Order) place(layer int, unit uint32) uint32 {
	if o == nil {
		return unit
	}
	return o.places[layer][unit]
}

// fits checks that the order is one of so many layers and units.
func (o *Order) fits(layers, perLayer int) error {
	switch {
	case o == nil:
		return nil
	case len(o.places) == 0:
		return fmt.Errorf("layout: geometry: order %s holds no places, as one that was read "+
			"from a result; make it anew: %w", o.Name, ErrOrder)
	case len(o.places) != layers || len(o.places[0]) != perLayer:
		return fmt.Errorf("layout: geometry: order %s is of %d layers of %d units, the geometry "+
			"has %d of %d: %w", o.Name, len(o.places), len(o.places[0]), layers, perLayer, ErrOrder)
	}
	return nil
}

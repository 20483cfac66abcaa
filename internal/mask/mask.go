// Package mask has the type Mask, a set of the units of one layer: those that a token needs or a
// predictor names, or those in memory. A Mask has one bit per unit. All counts of units and loops
// over units are methods of Mask. Sequences finds the tokens at which per-sequence state is reset.
// It is a leaf: it imports nothing of this module.
//
// The words of a Mask have the format of trace files, so that a mapped trace is read without
// copying.
package mask

import "math/bits"

// wordBits is the number of units in a word.
const wordBits = 64

// Mask is a set of the units 0…units−1 of one layer. Unit u is bit u%64 of word u/64; bit 0 is the
// lowest. A Mask has Words(units) words. It does not store the number of units.
//
// Padding: the bits of the last word beyond the last unit are zero. The methods rely on that and
// keep it so, if callers Set only units of the layer. Fits checks it for a mask from outside.
//
// Aliasing: a Mask is a slice, and an assigned Mask shares its words. copy, clear, slices.Clone and
// slices.Equal work as on any slice. Masks of a mapped trace are read only. A method that writes
// changes only its receiver. It does not keep its argument, which may be the receiver.
//
// Shapes: the masks of one call have the same number of words. A shorter argument panics with an
// index out of range, and so does a unit beyond the last word. The zero value is the empty set of
// no units.
type Mask []uint64

// Words is the number of words of a mask of so many units: ⌈units/64⌉.
func Words(units int) int { return (units + wordBits - 1) / wordBits }

// New returns an empty mask of so many units.
func New(units int) Mask { return make(Mask, Words(units)) }

// NewLayers returns one empty mask of so many units per layer, all in one block of memory.
func NewLayers(layers, units int) []Mask {
	words := Words(units)
	block, list := make(Mask, layers*words), make([]Mask, layers)
	for l := range list {
		list[l] = block[l*words : (l+1)*words : (l+1)*words]
	}
	return list
}

// Fits reports whether m is a mask of so many units: it has Words(units) words and zero padding.
func (m Mask) Fits(units int) bool { return len(m) == Words(units) && m.Padded(units) }

// Padded reports whether the padding of m is zero. m must have Words(units) words.
func (m Mask) Padded(units int) bool {
	rest := uint(units) % wordBits
	return rest == 0 || m[len(m)-1]>>rest == 0
}

// Has reports whether a unit is in m.
func (m Mask) Has(unit uint32) bool { return m[unit/wordBits]>>(unit%wordBits)&1 != 0 }

// Set adds a unit.
func (m Mask) Set(unit uint32) { m[unit/wordBits] |= 1 << (unit % wordBits) }

// Clear removes a unit. The builtin clear removes all.
func (m Mask) Clear(unit uint32) { m[unit/wordBits] &^= 1 << (unit % wordBits) }

// SetList adds the units of a list.
func (m Mask) SetList(units []uint32) {
	for _, u := range units {
		m.Set(u)
	}
}

// Fill makes m the set of all units of a layer with so many units.
func (m Mask) Fill(units int) {
	for i := range m {
		m[i] = ^uint64(0)
	}
	if rest := uint(units) % wordBits; rest != 0 {
		m[len(m)-1] = 1<<rest - 1
	}
}

// Any reports whether m has a unit.
func (m Mask) Any() bool {
	for _, word := range m {
		if word != 0 {
			return true
		}
	}
	return false
}

// Count is the number of units.
func (m Mask) Count() (n int) {
	for _, word := range m {
		n += bits.OnesCount64(word)
	}
	return n
}

// CountAnd is the number of units that are in o too.
func (m Mask) CountAnd(o Mask) (n int) {
	o = o[:len(m)]
	for i, word := range m {
		n += bits.OnesCount64(word & o[i])
	}
	return n
}

// CountAndNot is the number of units that are not in o.
func (m Mask) CountAndNot(o Mask) (n int) {
	o = o[:len(m)]
	for i, word := range m {
		n += bits.OnesCount64(word &^ o[i])
	}
	return n
}

// Runs is the number of runs of neighbouring units: {1, 2, 3, 7} has two.
func (m Mask) Runs() (n int) {
	carry := uint64(0) // the last bit of the word before
	for _, word := range m {
		n += bits.OnesCount64(word &^ (word<<1 | carry))
		carry = word >> (wordBits - 1)
	}
	return n
}

// Or adds the units of o: m becomes the union.
func (m Mask) Or(o Mask) {
	o = o[:len(m)]
	for i := range m {
		m[i] |= o[i]
	}
}

// And removes the units that are not in o: m becomes the intersection.
func (m Mask) And(o Mask) {
	o = o[:len(m)]
	for i := range m {
		m[i] &= o[i]
	}
}

// AndNot removes the units of o: m becomes the difference.
func (m Mask) AndNot(o Mask) {
	o = o[:len(m)]
	for i := range m {
		m[i] &^= o[i]
	}
}

// KeepLowest removes all but the n lowest units; n ≤ 0 removes all.
func (m Mask) KeepLowest(n int) {
	for i, word := range m {
		have := bits.OnesCount64(word)
		if have > n {
			rest := word
			for ; n > 0; n-- {
				rest &= rest - 1
			}
			m[i], have = word&^rest, 0
		}
		n -= have
	}
}

// Each yields the units in ascending order: for u := range m.Each. It reads a word before it yields
// the word's first unit: changes to m within the loop take effect from the next word on.
//
// A loop over Each compiles to the two loops below, without a call per unit.
func (m Mask) Each(yield func(unit uint32) bool) {
	for i, word := range m {
		for ; word != 0; word &= word - 1 {
			if !yield(uint32(i*wordBits + bits.TrailingZeros64(word))) {
				return
			}
		}
	}
}

// AppendUnits appends the units to list in ascending order.
func (m Mask) AppendUnits(list []uint32) []uint32 {
	for i, word := range m {
		for ; word != 0; word &= word - 1 {
			list = append(list, uint32(i*wordBits+bits.TrailingZeros64(word)))
		}
	}
	return list
}

// AppendAndNot appends the units that are not in o to list in ascending order.
func (m Mask) AppendAndNot(list []uint32, o Mask) []uint32 {
	o = o[:len(m)]
	for i, word := range m {
		for word &^= o[i]; word != 0; word &= word - 1 {
			list = append(list, uint32(i*wordBits+bits.TrailingZeros64(word)))
		}
	}
	return list
}

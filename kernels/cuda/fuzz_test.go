package cuda_test

import "testing"

// FuzzShapes runs mat-vecs, feed-forwards and attention of any small shape against their plain
// twins.
func FuzzShapes(f *testing.F) {
	f.Add(uint64(1), uint8(0), uint16(5), uint16(257), uint8(1))
	f.Add(uint64(2), uint8(4), uint16(300), uint16(32), uint8(3))
	f.Add(uint64(3), uint8(2), uint16(0), uint16(0), uint8(2))
	f.Fuzz(func(t *testing.T, seed uint64, format uint8, rows, cols uint16, tokens uint8) {
		newBench(t, seed).Shapes(seed, format, rows, cols, tokens)
	})
}

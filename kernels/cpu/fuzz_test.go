package cpu

import (
	"encoding/binary"
	"math"
	"slices"
	"testing"

	"github.com/windrow-sim/windrow/kernels/ref"
)

// values splits fuzz input into float16 patterns and as many float32 patterns: any bits, so also
// subnormals, Inf and NaN. The float32 are shortened to 2 bytes, which leaves every exponent
// reachable and halves the search.
func values(raw []byte) (w []uint16, x []float32) {
	for ; len(raw) >= 4; raw = raw[4:] {
		w = append(w, binary.LittleEndian.Uint16(raw))
		x = append(x, math.Float32frombits(uint32(binary.LittleEndian.Uint16(raw[2:]))<<16|0x5a5a))
	}
	return w, x
}

func seeds(f *testing.F, add func(raw []byte)) {
	for _, n := range []int{0, 1, 8, 9, 64, 75, 130} {
		raw := make([]byte, 0, 4*n)
		for i := range n {
			raw = binary.LittleEndian.AppendUint16(raw, uint16(0x3800+37*i))
			raw = binary.LittleEndian.AppendUint16(raw, uint16(0x3f80+11*i)|uint16(i%2)<<15)
		}
		add(raw)
	}
	add([]byte{0x00, 0x7c, 0x80, 0x3f, 0x00, 0xfc, 0x80, 0x3f}) // Inf − Inf
	add([]byte{0x01, 0x00, 0x01, 0x00})                         // subnormal · subnormal
	add([]byte{0xff, 0x7b, 0x7f, 0x7f})                         // overflow
}

func FuzzDot(f *testing.F) {
	seeds(f, func(raw []byte) { f.Add(raw) })
	f.Fuzz(func(t *testing.T, raw []byte) {
		w, x := values(raw)
		for _, k := range implementations() {
			checkDot(t, k.dot(w, x), wide(w), x)
			checkDot(t, k.dotF32(wide(w), x), wide(w), x)
		}
	})
}

func FuzzAxpy(f *testing.F) {
	seeds(f, func(raw []byte) { f.Add(raw, float32(-1.5)) })
	f.Fuzz(func(t *testing.T, raw []byte, a float32) {
		w, y := values(raw)
		for _, k := range implementations() {
			got := slices.Clone(y)
			k.axpy(a, w, got)
			checkAxpy(t, got, a, wide(w), y)
			got = slices.Clone(y)
			k.axpyF32(a, wide(w), got)
			checkAxpy(t, got, a, wide(w), y)
		}
	})
}

func FuzzMatVec(f *testing.F) {
	seeds(f, func(raw []byte) { f.Add(raw, uint8(5)) })
	pool := NewPool(3)
	f.Cleanup(pool.Close)
	f.Fuzz(func(t *testing.T, raw []byte, columns uint8) {
		w, x := values(raw)
		cols := int(columns)%(len(w)+1) + 1
		rows := len(w) / cols
		if rows == 0 {
			return
		}
		w, x = w[:rows*cols], x[:cols]
		y, parallel := make([]float32, rows), make([]float32, rows)
		for _, k := range implementations() {
			k.matVec(w, rows, cols, x, y)
			for r, got := range y {
				checkDot(t, got, wide(w[r*cols:(r+1)*cols]), x)
			}
		}
		MatVec(w, rows, cols, x, y)
		pool.matVecBy(1, ref.F16, bytesOf(w), rows, cols, x, parallel)
		for r := range y {
			if !sameClass(y[r], parallel[r]) {
				t.Fatalf("row %d of %d×%d: %g alone, %g in the pool", r, rows, cols, y[r],
					parallel[r])
			}
		}
	})
}

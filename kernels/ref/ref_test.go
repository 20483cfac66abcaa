package ref

import (
	"errors"
	"math"
	"testing"
	"unsafe"
)

// value is the definition of binary16, in float64 and without bit tricks.
func value(h uint16) float64 {
	sign, exponent, fraction := 1.0, int(h>>10&31), float64(h&1023)
	if h>>15 == 1 {
		sign = -1
	}
	switch {
	case exponent == 31 && fraction != 0:
		return math.NaN()
	case exponent == 31:
		return math.Inf(int(sign))
	case exponent == 0:
		return sign * math.Ldexp(fraction, -24)
	}
	return sign * math.Ldexp(1024+fraction, exponent-25)
}

func TestF16ToF32EveryPattern(t *testing.T) {
	for i := range 1 << 16 {
		h := uint16(i)
		got, want := float64(F16ToF32(h)), value(h)
		if want != want {
			bits := math.Float32bits(F16ToF32(h))
			if got == got || bits>>31 != uint32(h>>15) || bits>>22&1 == 0 ||
				bits>>13&0x1ff != uint32(h&0x1ff) {
				t.Fatalf("%#04x: NaN came out as %#08x; want it quiet, with sign and payload", h,
					bits)
			}
			continue
		}
		if math.Float64bits(got) != math.Float64bits(want) { // bits: −0 is not 0
			t.Fatalf("%#04x: got %g, want %g", h, got, want)
		}
	}
}

func TestF32ToF16InvertsEveryPattern(t *testing.T) {
	for i := range 1 << 16 {
		h := uint16(i)
		want := h
		if v := value(h); v != v {
			want |= 0x200 // quiet
		}
		if got := F32ToF16(F16ToF32(h)); got != want {
			t.Fatalf("%#04x: came back as %#04x, want %#04x", h, got, want)
		}
	}
}

// Rounding is monotone, so it is right everywhere when it is right at, just below and just above
// the middle of every two neighbours.
func TestF32ToF16RoundsToNearestEven(t *testing.T) {
	for i := range 0x7c00 {
		low := uint16(i)
		next := value(low + 1)
		if low+1 == 0x7c00 {
			next = 65536 // where the next number would be if there were one
		}
		middle := float32((value(low) + next) / 2) // exact: 12 bits
		even := low + low&1
		cases := []struct {
			f    float32
			want uint16
		}{
			{middle, even},
			{math.Nextafter32(middle, 0), low},
			{math.Nextafter32(middle, math.MaxFloat32), low + 1},
		}
		for _, c := range cases {
			if got := F32ToF16(c.f); got != c.want {
				t.Fatalf("%g (%#08x): got %#04x, want %#04x", c.f, math.Float32bits(c.f), got,
					c.want)
			}
			if got := F32ToF16(-c.f); got != c.want|0x8000 {
				t.Fatalf("%g: got %#04x, want %#04x", -c.f, got, c.want|0x8000)
			}
		}
	}
}

func TestF32ToF16Special(t *testing.T) {
	cases := []struct {
		bits uint32
		want uint16
	}{
		{0x7f800000, 0x7c00}, {0xff800000, 0xfc00}, // ±Inf
		{0x7f7fffff, 0x7c00}, {0x47800000, 0x7c00}, // too large
		{0x00000000, 0x0000}, {0x80000000, 0x8000}, // ±0
		{0x00000001, 0x0000}, {0x807fffff, 0x8000}, // subnormal float32
		// NaN whose payload does not reach into a float16
		{0x7f800001, 0x7e00}, {0xffc00000, 0xfe00},
		{0x7fbfe000, 0x7fff}, // NaN whose payload does
	}
	for _, c := range cases {
		if got := F32ToF16(math.Float32frombits(c.bits)); got != c.want {
			t.Errorf("%#08x: got %#04x, want %#04x", c.bits, got, c.want)
		}
	}
}

func TestF16SliceToF32(t *testing.T) {
	dst := make([]float32, 3)
	F16SliceToF32(dst, []uint16{0x3c00, 0xc000, 0x0001})
	if dst[0] != 1 || dst[1] != -2 || dst[2] != 0x1p-24 {
		t.Errorf("got %v", dst)
	}
}

func TestBytes16(t *testing.T) {
	words := []uint16{0x1234, 0xabcd, 0x0001}
	raw := unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), 6)
	got, err := Bytes16(raw)
	if err != nil {
		t.Skip(err) // a big-endian host
	}
	if len(got) != 3 || &got[0] != &words[0] {
		t.Errorf("got %v at %p, want the same memory %p", got, got, words)
	}
	if got, err := Bytes16(nil); len(got) != 0 || err != nil {
		t.Errorf("of nothing: %v, %v", got, err)
	}
	for name, b := range map[string][]byte{"odd length": raw[:5], "odd address": raw[1:5]} {
		if got, err := Bytes16(b); got != nil || !errors.Is(err, ErrCast) {
			t.Errorf("%s: got %v, %v; want ErrCast", name, got, err)
		}
	}
}

// Small whole numbers are exact in every order, so that the kernels can be checked by hand.
func TestKernelsByHand(t *testing.T) {
	w := []uint16{0x3c00, 0x4000, 0x4200, 0xbc00, 0x3800, 0x0000} // 1 2 3, −1 0.5 0
	x := []float32{10, 100, 1000}
	if got := Dot(w[:3], x); got != 3210 {
		t.Errorf("Dot = %g, want 3210", got)
	}
	y := []float32{7, 7, 7} // MatVec overwrites
	MatVec(w, 2, 3, x, y[:2])
	if y[0] != 3210 || y[1] != 40 || y[2] != 7 {
		t.Errorf("MatVec = %v, want 3210 40 and 7 untouched", y)
	}
	Axpy(2, w[:3], x)
	if x[0] != 12 || x[1] != 104 || x[2] != 1006 {
		t.Errorf("Axpy = %v, want 12 104 1006", x)
	}
	if got := DotF32([]float32{1, 2}, []float32{3, -4}); got != -5 {
		t.Errorf("DotF32 = %g, want -5", got)
	}
	AxpyF32(-1, []float32{1, 2}, y[1:])
	if y[1] != 39 || y[2] != 5 {
		t.Errorf("AxpyF32 = %v, want 39 5", y[1:])
	}
	if Dot(nil, nil) != 0 || DotF32(nil, nil) != 0 {
		t.Error("an empty dot product is not 0")
	}
}

func TestStreamRead(t *testing.T) {
	b := []byte{1, 0, 0, 0, 0, 0, 0, 0x80, 2, 0, 0, 0, 0, 0, 0, 0x80, 0, 1}
	if got := StreamRead(b); got != 3+0x100 {
		t.Errorf("got %#x, want 0x103", got)
	}
}

func TestShortSlicesPanic(t *testing.T) {
	w, v, short := make([]uint16, 4), make([]float32, 4), make([]float32, 4)[:3]
	for name, call := range map[string]func(){
		"Dot":           func() { Dot(w, short) },
		"Axpy":          func() { Axpy(1, w, short) },
		"MatVec x":      func() { MatVec(w, 1, 4, short, v) },
		"MatVec w":      func() { MatVec(w[:3], 2, 2, v, v) },
		"MatVec y":      func() { MatVec(w, 2, 2, v, v[:1]) },
		"DotF32":        func() { DotF32(v, short) },
		"AxpyF32":       func() { AxpyF32(1, v, short) },
		"F16SliceToF32": func() { F16SliceToF32(short, w) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("did not panic")
				}
			}()
			call()
		})
	}
}

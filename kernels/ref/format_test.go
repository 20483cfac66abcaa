package ref

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestFormatNames(t *testing.T) {
	for _, f := range Formats() {
		if got, ok := ParseFormat(f.String()); !ok || got != f {
			t.Errorf("%s does not come back: %v", f, got)
		}
	}
	if _, ok := ParseFormat("Q5"); ok {
		t.Error("Q5 is known")
	}
}

// TestFormatErrors encodes and decodes random weights of many sizes and bounds the error: half a
// unit in the last place, or half a step of the group's scale and the rounding of that scale to
// float16.
func TestFormatErrors(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		n := QuantGroup * (1 + random.IntN(4))
		src, dst := make([]float32, n), make([]float32, n)
		size := math.Exp(random.NormFloat64() * 2)
		for i := range src {
			src[i] = float32(random.NormFloat64() * size)
		}
		for _, f := range Formats() {
			code := make([]byte, f.Size(n))
			if at := f.Encode(code, src); at >= 0 {
				t.Fatalf("%s: weight %d (%v) does not fit", f, at, src[at])
			}
			f.Decode(dst, code)
			for g := 0; g < n; g += QuantGroup {
				top := 0.0
				for _, v := range src[g : g+QuantGroup] {
					top = max(top, math.Abs(float64(v)))
				}
				for i := g; i < g+QuantGroup; i++ {
					bound := map[Format]float64{F16: math.Abs(float64(src[i]))/2048 + 1e-7,
						BF16: math.Abs(float64(src[i])) / 256, F32: 0,
						// Q4: the largest step of the other sign is clipped to 7
						Q8: top/127*0.5 + top/2048, Q4: top/8 + top/2048}[f]
					if diff := math.Abs(float64(dst[i] - src[i])); diff > bound {
						t.Fatalf("%s: %v became %v, the bound is %v", f, src[i], dst[i], bound)
					}
				}
			}
			again := make([]byte, len(code))
			if f.Encode(again, dst); f.Group() == 1 && string(again) != string(code) {
				t.Fatalf("%s: decoded weights encode differently", f)
			}
		}
	}
}

// TestDecodeIsExact takes every finite scale, and compares with products in float64.
func TestDecodeIsExact(t *testing.T) {
	for _, f := range []Format{Q8, Q4} {
		code, got := make([]byte, f.Size(QuantGroup)), make([]float32, QuantGroup)
		for i := 2; i < len(code); i++ {
			code[i] = byte(i*37 + 100) // among them −128, or 0 and 15
		}
		for scale := range 1 << 16 {
			if scale&halfInf == halfInf {
				continue
			}
			code[0], code[1] = byte(scale), byte(scale>>8)
			f.Decode(got, code)
			for i, v := range got {
				b := code[2+i%(len(code)-2)]
				q := int(int8(b))
				if f == Q4 {
					q = int(b>>(i/(QuantGroup/2)*4)&15) - 8
				}
				if want := value(uint16(scale)) * float64(q); float64(v) != want {
					t.Fatalf("%s, scale %#04x, weight %d: %v, want %v", f, scale, i, v, want)
				}
			}
		}
	}
}

func TestEncodeRefusesWhatIsTooLarge(t *testing.T) {
	for _, c := range []struct {
		f    Format
		v    float32
		fits bool
	}{
		{F16, 65504, true}, {F16, 65520, false}, {BF16, math.MaxFloat32, false},
		{F32, math.MaxFloat32, true},
		{Q8, 127 * 65504, true}, {Q8, 127 * 65600, false}, {Q4, 8 * 65504, true}, {Q4, -8 * 65600,
			false},
	} {
		src := make([]float32, QuantGroup)
		src[5] = c.v
		at := c.f.Encode(make([]byte, c.f.Size(len(src))), src)
		if want := map[bool]int{true: -1, false: 5}[c.fits]; at != want {
			t.Errorf("%s of %v: %d, want %d", c.f, c.v, at, want)
		}
	}
	zero := make([]float32, QuantGroup)
	for _, f := range Formats() {
		code := make([]byte, f.Size(len(zero)))
		if f.Encode(code, zero) >= 0 {
			t.Errorf("%s: zeros do not fit", f)
		}
		got := make([]float32, len(zero))
		got[3] = 1
		if f.Decode(got, code); got[3] != 0 {
			t.Errorf("%s: zero became %v", f, got[3])
		}
	}
}

package tensor

import (
	"bytes"
	"errors"
	"io"
	"math"
	"testing"
	"testing/iotest"
)

// TestBlocksReadsEveryRange compares every range with the plain bytes.
func TestBlocksReadsEveryRange(t *testing.T) {
	const size, block = 24, 4
	plain := make([]byte, size)
	for i := range plain {
		plain[i] = byte(i + 1)
	}
	b := &Blocks{Size: size, Block: block, Decode: func(dst []byte, first int64) error {
		if len(dst) == 0 || len(dst)%block != 0 {
			t.Fatalf("asked for %d bytes, not for whole blocks", len(dst))
		}
		copy(dst, plain[first*block:])
		return nil
	}}
	for from := range size + 2 {
		for n := range size + 3 {
			got, want := make([]byte, n), make([]byte, n)
			gotN, gotErr := b.ReadAt(got, int64(from))
			wantN, _ := bytes.NewReader(plain).ReadAt(want, int64(from))
			if gotN != wantN || !bytes.Equal(got, want) || (gotErr == io.EOF) != (gotN < n) {
				t.Fatalf("%d bytes at %d: %v, %d, %v; want %v, %d", n, from, got, gotN, gotErr,
					want, wantN)
			}
		}
	}
	if err := iotest.TestReader(io.NewSectionReader(b, 0, size), plain); err != nil {
		t.Error(err)
	}
	if _, err := b.ReadAt(nil, -1); err == nil {
		t.Error("a negative offset was accepted")
	}
}

func TestBlocksHandsErrorsOn(t *testing.T) {
	broken := errors.New("broken")
	b := &Blocks{Size: 8, Block: 4, Decode: func(_ []byte, first int64) error {
		if first == 1 {
			return broken
		}
		return nil
	}}
	if n, err := b.ReadAt(make([]byte, 6), 0); n != 4 || !errors.Is(err, broken) {
		t.Errorf("%d, %v", n, err)
	}
}

func TestByteSize(t *testing.T) {
	for _, c := range []struct {
		dtype DType
		shape []int64
		want  int64
		kind  error
	}{
		{F16, nil, 2, nil},
		{F32, []int64{2, 3}, 24, nil},
		{U8, []int64{math.MaxInt64}, math.MaxInt64, nil},
		{U8, []int64{math.MaxInt64, 0, math.MaxInt64}, 0, nil},
		{U8, []int64{math.MaxInt64, 2}, 0, ErrFormat},
		{F16, []int64{1 << 62}, 0, ErrFormat},
		{F32, []int64{1 << 32, 1 << 32}, 0, ErrFormat},
		{F32, []int64{-1}, 0, ErrFormat},
		{F32, []int64{0, -1}, 0, ErrFormat},
		{"Q4_0", []int64{32}, 0, ErrUnsupported},
	} {
		got, err := ByteSize(c.dtype, c.shape)
		if got != c.want || !errors.Is(err, c.kind) {
			t.Errorf("%s%v: %d, %v", c.dtype, c.shape, got, err)
		}
	}
}

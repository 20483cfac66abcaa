package metal

import (
	"bytes"
	"testing"

	"github.com/windrow-sim/windrow/kernels/cuda"
)

func TestPack(t *testing.T) {
	got, err := pack([]cuda.Arg{cuda.IntArg(-2), cuda.PointerArg(0x1122334455667788),
		cuda.FloatArg(1), cuda.IntArg(3), cuda.IntArg(4)})
	want := []byte{
		0xfe, 0xff, 0xff, 0xff, 0, 0, 0, 0, // an address does not start in the middle of a word
		0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11,
		0, 0, 0x80, 0x3f, 3, 0, 0, 0,
		4, 0, 0, 0, 0, 0, 0, 0,
	}
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%x, %v; want %x", got, err, want)
	}
	if _, err := pack(make([]cuda.Arg, 1)); err == nil {
		t.Error("an argument without a kind was packed")
	}
	many := make([]cuda.Arg, mostBytes/8+1)
	for i := range many {
		many[i] = cuda.LongArg(1)
	}
	if _, err := pack(many); err == nil {
		t.Error("more was packed than Metal takes")
	}
}

func TestPieces(t *testing.T) {
	var p pieces
	for _, e := range []piece{{device: 300, host: 1000, size: 100, kind: pinned},
		{device: 100, host: 5000, size: 100}, {device: 200, host: 3000, size: 50}} {
		p.add(e)
	}
	for _, c := range []struct {
		address, size, start uint64
		found                bool
	}{
		{100, 100, 100, true}, {199, 1, 100, true}, {199, 2, 0, false}, {200, 50, 200, true},
		{249, 1, 200, true}, {250, 1, 0, false}, {99, 1, 0, false},
		{399, 1, 300, true}, {400, 1, 0, false}, {300, 1 << 63, 0, false},
	} {
		if e, ok := p.find(c.address, c.size); ok != c.found || e.device != c.start {
			t.Errorf("find(%d, %d): %+v, %v", c.address, c.size, e, ok)
		}
	}
	if e, ok := p.findHost(1050, 50); !ok || e.device != 300 {
		t.Errorf("the host's address 1050 is in %+v, %v", e, ok)
	}
	if e, ok := p.findHost(1050, 51); ok {
		t.Errorf("51 bytes from 1050 are in %+v", e)
	}
	if _, ok := p.remove(300, allocated); ok {
		t.Error("a pinned piece went as an allocated one")
	}
	if _, ok := p.remove(210, allocated); ok {
		t.Error("a piece went by an address inside of it")
	}
	if e, ok := p.remove(200, allocated); !ok || e.size != 50 || len(p) != 2 ||
		p[0].device != 100 || p[1].device != 300 {
		t.Errorf("removed %+v, %v; left %+v", e, ok, p)
	}
}

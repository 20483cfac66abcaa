package emulated

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/windrow-sim/windrow/devicemodels"
	"github.com/windrow-sim/windrow/engine/flashio"
	"github.com/windrow-sim/windrow/internal/units"
)

func testFlash() devicemodels.Flash {
	return devicemodels.Flash{Servers: 3, LTFB: 2 * units.Millisecond, ServerRate: 4 * units.MBps, LinkRate: 3 * units.MBps, Align: 512}
}

func requests(data []byte, n int) []flashio.Request {
	random := rand.New(rand.NewPCG(1, 2))
	reqs := make([]flashio.Request, n)
	for i := range reqs {
		reqs[i] = flashio.Request{Offset: 512 * random.Int64N(int64(len(data)/512-4)), Buf: make([]byte, 512*(1+random.IntN(4)))}
	}
	return reqs
}

// A batch brings the right bytes and takes at least as long as the busiest stage of the specification.
func TestBatch(t *testing.T) {
	data := make([]byte, 1<<16)
	for i := range data {
		data[i] = byte(i * 7)
	}
	flash := testFlash()
	d, err := New(bytes.NewReader(data), nil, flash, 5)
	if err != nil {
		t.Fatal(err)
	}
	reqs := requests(data, 30)
	begin := time.Now()
	if err := d.ReadBatch(reqs); err != nil {
		t.Fatal(err)
	}
	took := units.Nanos(time.Since(begin))
	var servers, link units.Nanos
	for _, r := range reqs {
		if !bytes.Equal(r.Buf, data[r.Offset:r.Offset+int64(len(r.Buf))]) {
			t.Fatalf("wrong bytes at %d", r.Offset)
		}
		size := units.Bytes(len(r.Buf))
		servers += flash.LTFB + flash.ServerRate.Time(size)
		link += flash.LinkRate.Time(size)
	}
	if floor := max(servers/units.Nanos(flash.Servers), link); took < floor {
		t.Errorf("the batch took %v, the busiest stage alone needs %v", took, floor)
	}
	if len(d.waiting) != 0 || len(d.servers) != flash.Servers {
		t.Errorf("%d transfers and %d of %d servers are left over", len(d.waiting), flash.Servers-len(d.servers), flash.Servers)
	}
}

// Transfers use the link in the order of their first bytes, whoever wakes first, and the link never rests while one waits.
func TestLinkKeepsOrder(t *testing.T) {
	d, err := New(bytes.NewReader(nil), nil, testFlash(), 1)
	if err != nil {
		t.Fatal(err)
	}
	zero := time.Now()
	at := func(ms int) time.Time { return zero.Add(time.Duration(ms) * time.Millisecond) }
	var all []*transfer
	for _, first := range []int{30, 10, 11, 50} { // announced out of order
		x := &transfer{first: at(first), takes: 5 * time.Millisecond}
		all = append(all, x)
		d.begin(x)
	}
	d.settle(at(30)) // the one of 30 wakes before those of 10 and 11
	for i, want := range []int{35, 15, 20} {
		if !all[i].over.Equal(at(want)) {
			t.Errorf("transfer %d is over %v after the start, want %d ms", i, all[i].over.Sub(zero), want)
		}
	}
	if !all[3].over.IsZero() || len(d.waiting) != 1 {
		t.Error("a transfer was settled before its first byte")
	}
}

func TestRefuses(t *testing.T) {
	d, err := New(bytes.NewReader(make([]byte, 4096)), nil, testFlash(), 2)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.ReadBatch([]flashio.Request{{Offset: 3, Buf: make([]byte, 512)}}); err == nil {
		t.Error("a misaligned read gave no error")
	}
	if err := d.ReadBatch([]flashio.Request{{Offset: 4096, Buf: make([]byte, 512)}}); err == nil {
		t.Error("a read beyond the end gave no error")
	}
	if err := d.ReadBatch(nil); err != nil {
		t.Errorf("an empty batch: %v", err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	iops := testFlash()
	iops.MaxIOPS = 5
	for _, f := range []devicemodels.Flash{{}, iops} {
		if _, err := New(bytes.NewReader(nil), nil, f, 1); err == nil {
			t.Errorf("%+v gave no error", f)
		}
	}
}

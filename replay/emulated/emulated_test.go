package emulated

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/windrow-sim/windrow/devicemodels/flash"
	"github.com/windrow-sim/windrow/engine/flashio"
	"github.com/windrow-sim/windrow/internal/units"
)

func testFlash() flash.Spec {
	return flash.Spec{Servers: 3, LTFB: 2 * units.Millisecond, ServerRate: 4 * units.MBps,
		LinkRate: 3 * units.MBps, Align: 512}
}

func requests(data []byte, n int) []flashio.Request {
	random := rand.New(rand.NewPCG(1, 2))
	reqs := make([]flashio.Request, n)
	for i := range reqs {
		reqs[i] = flashio.Request{Offset: 512 * random.Int64N(int64(len(data)/512-4)),
			Buf: make([]byte, 512*(1+random.IntN(4)))}
	}
	return reqs
}

// A batch brings the right bytes and takes at least as long as the busiest stage of the
// specification.
func TestBatch(t *testing.T) {
	data := make([]byte, 1<<16)
	for i := range data {
		data[i] = byte(i * 7)
	}
	flash := testFlash()
	d, err := New(bytes.NewReader(data), nil, flash, Options{Parallel: 5})
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
	if len(d.drive.events) != 0 || d.drive.inside != 0 {
		t.Errorf("%d events and %d requests are left over", len(d.drive.events), d.drive.inside)
	}
}

func TestRefuses(t *testing.T) {
	for _, ring := range []bool{false, true} {
		d, err := New(bytes.NewReader(make([]byte, 4096)), nil, testFlash(), Options{Parallel: 2,
			Ring: ring})
		if err != nil {
			t.Fatal(err)
		}
		good := flashio.Request{Buf: make([]byte, 512)}
		misaligned, beyond := flashio.Request{Offset: 3, Buf: make([]byte, 512)}, flashio.Request{
			Offset: 4096, Buf: make([]byte, 512)}
		if err := d.ReadBatch([]flashio.Request{good, misaligned, beyond, good}); !errors.Is(err,
			ErrAlign) {
			t.Errorf("a misaligned read gave %v", err)
		}
		if err := d.ReadBatch([]flashio.Request{good, beyond, misaligned}); !errors.Is(err,
			io.EOF) {
			t.Errorf("a read beyond the end gave %v", err)
		}
		if err := d.ReadBatch(nil); err != nil {
			t.Errorf("an empty batch: %v", err)
		}
		if _, err := d.ReadAt(make([]byte, 511), 0); !errors.Is(err, ErrAlign) {
			t.Errorf("a misaligned single read gave %v", err)
		}
		if n, err := d.ReadAt(make([]byte, 1024), 3584); n != 512 || !errors.Is(err, io.EOF) {
			t.Errorf("a single read across the end gave %d bytes, %v", n, err)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestRefusesWhatItDoesNotEmulate: the error names the field.
func TestRefusesWhatItDoesNotEmulate(t *testing.T) {
	for field, change := range map[string]func(f *flash.Spec){
		"servers":          func(f *flash.Spec) { f.Servers = 0 },
		"flash.placement":  func(f *flash.Spec) { f.Placement = "moon" },
		"flash.sustained":  func(f *flash.Spec) { f.Sustained = &flash.Sustained{} },
		"flash.background": func(f *flash.Spec) { f.Background = &flash.Background{} },
		"flash.page_cache": func(f *flash.Spec) { f.PageCache = &flash.PageCache{} },
	} {
		f := testFlash()
		change(&f)
		if _, err := New(bytes.NewReader(nil), nil, f, Options{Parallel: 1}); err == nil ||
			!strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
	if _, err := New(bytes.NewReader(nil), nil, testFlash(), Options{}); err == nil {
		t.Error("no threads gave no error")
	}
}

func batch(reads []flash.Read) []flashio.Request {
	reqs := make([]flashio.Request, len(reads))
	for i, r := range reads {
		reqs[i] = flashio.Request{Offset: int64(r.Offset), Buf: make([]byte, r.Length)}
	}
	return reqs
}

// zeros is endless data.
type zeros struct{}

func (zeros) ReadAt(p []byte, _ int64) (int, error) { clear(p); return len(p), nil }

// TestRealTimeIsNeverShort: threads, a ring and the callers of ReadAt wait by the wall clock for at
// least what the busiest stage of the device needs, and get their bytes. That they wait hardly
// longer on an idle machine is what `make validate` and `make validate-fitted` measure.
func TestRealTimeIsNeverShort(t *testing.T) {
	spec := variants()["everything"]
	reads := random(60)
	var link, servers, bytes, requests units.Nanos
	for _, r := range reads {
		pieces := units.Nanos((r.Length + spec.MaxTransfer - 1) / spec.MaxTransfer)
		link += spec.LinkRate.Time(r.Length)
		servers += pieces*spec.LTFB + spec.ServerRate.Time(r.Length)
		bytes += spec.Limit.Rate.Time(r.Length)
		requests += pieces * units.Second / units.Nanos(spec.Limit.IOPS)
	}
	// What a limit lets pass in its first interval waits for nothing.
	floor := max(link, servers/units.Nanos(spec.Servers), max(bytes, requests)-spec.Limit.Interval)
	for name, read := range map[string]func(d *Device) error{
		"threads": func(d *Device) error { return d.ReadBatch(batch(reads)) },
		"ring":    func(d *Device) error { d.opt.Ring = true; return d.ReadBatch(batch(reads)) },
		"callers": func(d *Device) error { return callers(d, reads, 5) },
	} {
		d, err := New(zeros{}, nil, spec, Options{Parallel: 5})
		if err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		if err := read(d); err != nil {
			t.Fatal(err)
		}
		took := units.Nanos(time.Since(begin))
		t.Logf("%s: %v, at least %v are needed", name, took, floor)
		if took < floor {
			t.Errorf("%s: %v, but the device needs %v", name, took, floor)
		}
		d.mu.Lock()
		if len(d.drive.events) != 0 || d.drive.inside != 0 {
			t.Errorf("%s: %d events and %d requests are left over", name, len(d.drive.events),
				d.drive.inside)
		}
		d.mu.Unlock()
	}
}

// callers read with ReadAt, each the next when its last is done.
func callers(d *Device, reads []flash.Read, n int) error {
	var next atomic.Int64
	var wait sync.WaitGroup
	errs := make([]error, n)
	for c := range n {
		wait.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(reads)) && errs[c] == nil; i = next.Add(1) - 1 {
				_, errs[c] = d.ReadAt(make([]byte, reads[i].Length), int64(reads[i].Offset))
			}
		})
	}
	wait.Wait()
	return errors.Join(errs...)
}

// TestTimesAreTheDevices: as long as nobody waits for another, a request takes the latency that is
// drawn for it, to the nanosecond, whatever the clock and the threads did.
func TestTimesAreTheDevices(t *testing.T) {
	spec := flash.Spec{Servers: 6, LTFB: 300 * units.Microsecond, LTFBShape: shape(),
		ServerRate: 100 * units.MBps}
	reads := random(40)
	_, _, want := loop(newDrive(spec, 7), reads, 1)
	for _, opt := range []Options{{Parallel: 1, Seed: 7}, {Parallel: 6, Seed: 7},
		{Parallel: 6, Seed: 7, Ring: true}} {
		d, err := New(zeros{}, nil, spec, opt)
		if err != nil {
			t.Fatal(err)
		}
		times := make([]units.Nanos, len(reads))
		if !d.TimeReads(times) {
			t.Fatal("it says that it cannot time reads")
		}
		if err := d.ReadBatch(batch(reads)); err != nil {
			t.Fatal(err)
		}
		equal(t, "timed reads", times, want...)
		d.TimeReads(nil)
		clear(times)
		if err := d.ReadBatch(batch(reads[:3])); err != nil {
			t.Fatal(err)
		}
		if slices.Max(times) != 0 {
			t.Error("times were written after they were ended")
		}
	}
}

// TestLateCallersAreBackOnTime: what a caller came too late is counted once, for one caller, and
// soon or never.
func TestLateCallersAreBackOnTime(t *testing.T) {
	d := &Device{late: []lateness{{at: 10 * ms, by: 3 * ms}, {at: 12 * ms, by: ms},
		{at: 12 * ms, by: 2 * ms}}}
	for _, c := range []struct{ now, want units.Nanos }{{12*ms + 1000, 11*ms + 1000}, {12*ms + 2000,
		10*ms + 2000}, {12*ms + 3000, 12*ms + 3000}} {
		if got := d.came(c.now); got != c.want {
			t.Errorf("a read at %v counts from %v, want %v", c.now, got, c.want)
		}
	}
}

func TestMode(t *testing.T) {
	for _, ring := range []bool{false, true} {
		d, err := New(zeros{}, nil, testFlash(), Options{Parallel: 3, Ring: ring})
		if err != nil {
			t.Fatal(err)
		}
		m := d.Mode()
		if m.Engine != flashio.EngineEmulated || m.Parallel != 3 || m.Align != 512 ||
			strings.Contains(strings.Join(m.Notes, " "), "ring") != ring {
			t.Errorf("ring %v: %+v", ring, m)
		}
	}
}

//go:build unix

package cuda_test

import (
	"bytes"
	"errors"
	"os"
	"syscall"
	"testing"

	"github.com/windrow-sim/windrow/kernels/cuda"
	"github.com/windrow-sim/windrow/kernels/cuda/suite"
)

// TestCopies copies bytes to the device, across it and back, through each kind of host memory.
func TestCopies(t *testing.T) {
	d, library := open(t)
	b := suite.New(t, d, 40)
	const size = 5000
	pinned, err := b.Device.HostAlloc(size, true)
	b.Must(err)
	registered, err := syscall.Mmap(-1, 0, 2*os.Getpagesize(), syscall.PROT_READ|syscall.PROT_WRITE,
		syscall.MAP_ANON|syscall.MAP_PRIVATE)
	b.Must(err)
	defer func() { b.Must(syscall.Munmap(registered)) }()
	b.Must(b.Device.HostRegister(registered))
	if err := b.Device.HostRegister(registered); err == nil {
		t.Error("memory was registered twice")
	}
	for name, host := range map[string][]byte{"pinned": pinned, "registered": registered[:size],
		"plain": make([]byte, size)} {
		content := b.Bytes(size)
		copy(host, content)
		one, two, got := b.Room(size), b.Room(size), make([]byte, size)
		b.Must(b.Device.ToDevice(one.Ptr, host, b.Stream))
		b.Must(b.Device.OnDevice(two.Ptr, one.Ptr, size, b.Stream))
		b.Must(b.Device.Fill(one.Ptr, 7, size-1, b.Stream))
		b.Must(b.Device.ToHost(got, two.Ptr, b.Stream))
		b.Must(b.Device.SyncStream(b.Stream))
		if !bytes.Equal(got, content) {
			t.Errorf("%s memory: the bytes changed on their way", name)
		}
		b.Must(b.Device.ToHost(host, one.Ptr, b.Stream))
		b.Must(b.Device.Synchronize())
		if !bytes.Equal(host[:size-1], bytes.Repeat([]byte{7}, size-1)) ||
			host[size-1] != content[size-1] {
			t.Errorf("%s memory: Fill was not read back", name)
		}
	}
	b.Must(b.Device.HostUnregister(registered))
	// a device that shares the host's page tables may well have one
	if _, err := b.Device.Mapped(registered); err == nil && library != nil {
		t.Error("memory that is not registered has an address on the device")
	}
}

// TestMissingWait: without the event the stand-in gives the old data, every time.
func TestMissingWait(t *testing.T) {
	d, _ := emulated(t)
	one, err := d.NewStream()
	if err != nil {
		t.Fatal(err)
	}
	two, err := d.NewStream()
	if err != nil {
		t.Fatal(err)
	}
	m, err := d.Alloc(4)
	if err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 4)
	err = errors.Join(d.Fill(m.Ptr, 1, 4, one), d.ToHost(got, m.Ptr, two), d.SyncStream(two))
	if err != nil || got[0] != 0xff {
		t.Errorf("a stream that does not wait got %v, %v; want memory as it was: 0xff", got, err)
	}
}

// TestElapsed: a real device has times, the stand-in has none.
func TestElapsed(t *testing.T) {
	d, library := open(t)
	s, err := d.NewStream()
	if err != nil {
		t.Fatal(err)
	}
	var events [2]cuda.Event
	for i := range events {
		if events[i], err = d.NewEvent(true); err != nil {
			t.Fatal(err)
		}
		if err := d.Record(events[i], s); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.SyncStream(s); err != nil {
		t.Fatal(err)
	}
	took, err := d.Elapsed(events[0], events[1])
	if library == nil {
		if err != nil || took < 0 {
			t.Errorf("elapsed: %v, %v", took, err)
		}
		return
	}
	var failed *cuda.Error
	if !errors.As(err, &failed) || failed.Code != 801 || took != 0 {
		t.Errorf("the stand-in gave a time: %v, %v", took, err)
	}
}

// TestAnyGoroutine calls from threads that have never seen the device.
func TestAnyGoroutine(t *testing.T) {
	d, _ := open(t)
	done := make(chan error)
	const callers = 8
	for range callers {
		go func() {
			m, err := d.Alloc(100)
			if err == nil {
				err = d.Free(m)
			}
			done <- err
		}()
	}
	for range callers {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// TestRefusals: an error of the driver has its call and code.
func TestRefusals(t *testing.T) {
	d, _ := open(t)
	m, err := d.Load(".version 8.0\n.target sm_70\n.address_size 64\n")
	if err != nil {
		t.Fatal(err)
	}
	// The stand-in's codes; a driver may say of text that it is no image at all.
	refusals := map[string]struct {
		err  error
		call string
		code cuda.Result
	}{
		"no such kernel": {second(d.Function(m, "nothing")), "cuModuleGetFunction", 500},
		"not PTX":        {second(d.Load("this is not PTX")), "cuModuleLoadDataEx", 218},
		"foreign memory": {d.Driver.HostFree(make([]byte, 8)), "cuMemFreeHost", 1},
		"too large":      {second(d.Alloc(1 << 50)), "cuMemAlloc_v2", 2},
	}
	for name, r := range refusals {
		var failed *cuda.Error
		if !errors.As(r.err, &failed) || failed.Call != r.call || failed.Code != r.code &&
			!(r.code == 218 && failed.Code == 200) {
			t.Errorf("%s: %v; want %s with code %d", name, r.err, r.call, r.code)
		}
	}
	if !errors.Is(refusals["too large"].err, cuda.ErrMemory) {
		t.Errorf("too large: %v is not ErrMemory", refusals["too large"].err)
	}
}

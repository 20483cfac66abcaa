package standin_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/windrow-sim/windrow/kernels/cuda"
	"github.com/windrow-sim/windrow/kernels/metal"
	"github.com/windrow-sim/windrow/kernels/metal/standin"
)

// deaf is the stand-in for a driver that forgets a message.
type deaf struct {
	*standin.Runtime
	to string
}

func (d *deaf) Send(to metal.ID, message string, args ...any) metal.ID {
	if message == d.to {
		return to
	}
	return d.Runtime.Send(to, message, args...)
}

// session adds two lists on a device.
func session(d *cuda.Device) error {
	k, err := cuda.NewKernels(d)
	if err != nil {
		return err
	}
	x, err := d.Alloc(4000)
	if err != nil {
		return err
	}
	return errors.Join(d.Fill(x.Ptr, 0, x.Size, 0), k.Add(0, x, x, 1000), d.OnDevice(x.Ptr,
		x.Ptr+2000, 2000, 0), d.Synchronize(), d.Close())
}

// TestForgottenMessages: a message that a driver must not forget ends the program, or leaves an
// object at the end.
func TestForgottenMessages(t *testing.T) {
	for message, want := range map[string]string{
		"useResources:count:usage:":           "add uses a buffer that Metal was not told of",
		"setBytes:length:atIndex:":            "without all that it needs",
		"setComputePipelineState:":            "without all that it needs",
		"setThreadgroupMemoryLength:atIndex:": "without all that it needs",
		"endEncoding":                         "is released without endEncoding",
		"retain":                              "is released without endEncoding",
		"commit":                              "was not committed",
		"setFastMathEnabled:":                 "fast mathematics",
		"release":                             "1 MTLBuffer",
		"drain":                               " NSAutoreleasePool",
	} {
		t.Run(message, func(t *testing.T) {
			r := standin.Open(t)
			defer r.Forget()
			said := func() (said string) {
				defer func() {
					if p := recover(); p != nil {
						said = fmt.Sprint(p)
					}
				}()
				driver, err := metal.OpenOn(&deaf{r, message}, r.Device())
				if err != nil {
					return err.Error()
				}
				d, err := cuda.Open(driver, 0)
				if err != nil {
					return err.Error()
				}
				if err := session(d); err != nil {
					return err.Error()
				}
				return r.Left()
			}()
			if !strings.Contains(said, want) {
				t.Errorf("%q, want %q", said, want)
			}
		})
	}
}

// open is a device.
func open(t *testing.T, r *standin.Runtime) *cuda.Device {
	t.Helper()
	driver, err := r.Driver()
	if err != nil {
		t.Fatal(err)
	}
	d, err := cuda.Open(driver, 0)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestFence: a write beyond a buffer, on its page, ends the program when the buffer is released.
func TestFence(t *testing.T) {
	r := standin.Open(t)
	defer r.Forget()
	d := open(t, r)
	k, err := cuda.NewKernels(d)
	if err != nil {
		t.Fatal(err)
	}
	m, err := d.Alloc(8)
	if err != nil {
		t.Fatal(err)
	}
	larger := cuda.Mem{Ptr: m.Ptr, Size: 12}
	if err := errors.Join(k.Add(0, larger, larger, 3), d.Synchronize()); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if p := fmt.Sprint(recover()); !strings.Contains(p, "beyond a buffer of 8 bytes") {
			t.Errorf("%s: want the buffer", p)
		}
	}()
	t.Error(d.Free(m))
}

// TestFaults: the nth message fails, once or from then on.
func TestFaults(t *testing.T) {
	r := standin.Open(t)
	d := open(t, r)
	const message = "newBufferWithLength:options:"
	for _, lose := range []bool{false, true} {
		r.Fail(message, 2, "no", lose)
		for i, fails := range []bool{false, true, lose} {
			if _, err := d.Alloc(8); (err != nil) != fails {
				t.Errorf("lose %v, message %d: %v", lose, i, err)
			}
		}
	}
	if n := r.Calls(message); n != 6 {
		t.Errorf("%d calls, want 6", n)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

// TestGoroutines: several goroutines use a device, each its own stream.
func TestGoroutines(t *testing.T) {
	r := standin.Open(t)
	d := open(t, r)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			s, err := d.NewStream()
			if err != nil {
				t.Error(err)
				return
			}
			for range 10 {
				m, err := d.Alloc(64)
				got := make([]byte, 64)
				err = errors.Join(err, d.Fill(m.Ptr, 7, 64, s), d.ToHost(got, m.Ptr, s), d.Free(m))
				if err != nil || got[63] != 7 {
					t.Errorf("%v, %v", got, err)
				}
			}
		})
	}
	all.Wait()
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

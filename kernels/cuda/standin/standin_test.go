package standin_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/kernels/cuda"
	"github.com/windrow-sim/windrow/kernels/cuda/standin"
)

// selftest is PTX of the kernels in library/selftest.cc, as far as the stand-in reads it.
const selftest = ".version 8.0\n.target sm_70\n.address_size 64\n" +
	".visible .entry selftest_skips(\n.visible .entry selftest_splits(\n" +
	".visible .entry selftest_uneven(\n.visible .entry selftest_wild(\n" +
	".visible .entry selftest_beyond(\n.visible .entry selftest_before(\n"

// launch runs a kernel of selftest on one block and returns its output.
func launch(t *testing.T, kernel string, threads int, size int64) (out []float32, trouble string,
	err error) {
	t.Helper()
	library := standin.Open(t)
	driver, err := cuda.OpenLibrary(library.Path())
	if err != nil {
		t.Fatal(err)
	}
	d, err := cuda.Open(driver, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	m, err := d.Load(selftest)
	if err != nil {
		t.Fatal(err)
	}
	f, err := d.Function(m, kernel)
	if err != nil {
		t.Fatal(err)
	}
	mem, err := d.Alloc(size)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Launch(f, cuda.Grid{X: 1, Y: 1, Z: 1}, threads, 0,
		[]cuda.Arg{cuda.PointerArg(mem.Ptr)}); err != nil {
		t.Fatal(err)
	}
	out = make([]float32, size/4)
	err = d.ToHost(cuda.AsBytes(out), mem.Ptr, 0)
	return out, library.Trouble(), errors.Join(err, d.Synchronize())
}

func TestUnevenWarps(t *testing.T) {
	out, _, err := launch(t, "selftest_uneven", 128, 4*128)
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range out {
		if v != float32(32*(i/32+1)) {
			t.Fatalf("thread %d: %g", i, v)
		}
	}
}

// TestForbidden: an operation that hangs or is undefined on a device loses the stand-in's, with the
// reason.
func TestForbidden(t *testing.T) {
	for name, c := range map[string]struct {
		kernel  string
		threads int
		size    int64
		trouble string
	}{
		"barrier that some skip": {"selftest_skips", 64, 256,
			"selftest_skips: threads of one block wait at different places"},
		"half a warp shuffles": {"selftest_splits", 32, 128,
			"selftest_splits: threads of one warp wait at different places"},
		"part of a warp shuffles": {"selftest_uneven", 16, 64,
			"selftest_uneven: threads of one warp wait at different places"},
		"pointer into nowhere": {"selftest_wild", 64, 256,
			"selftest_wild: thread 0 used an address that there is not"},
		"read behind the end": {"selftest_beyond", 32, 128,
			"selftest_beyond: thread 0 used an address that there is not"},
		"write behind the end": {"selftest_uneven", 64, 128,
			"selftest_uneven: thread 32 used an address that there is not"},
		"write into what is left": {"selftest_uneven", 32, 124,
			"selftest_uneven wrote beyond an allocation of 124 bytes"},
		"write before the start": {"selftest_before", 32, 128,
			"selftest_before wrote beyond an allocation of 128 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			_, trouble, err := launch(t, c.kernel, c.threads, c.size)
			if !errors.Is(err, cuda.ErrLost) || !strings.Contains(err.Error(),
				"CUDA_ERROR_ILLEGAL_ADDRESS (700)") || !strings.HasPrefix(trouble, c.trouble) {
				t.Errorf("%v; trouble %q, want %q", err, trouble, c.trouble)
			}
		})
	}
}

// TestForeignPointer: a kernel may use device memory, not host memory.
func TestForeignPointer(t *testing.T) {
	library := standin.Open(t)
	driver, err := cuda.OpenLibrary(library.Path())
	if err != nil {
		t.Fatal(err)
	}
	d, err := cuda.Open(driver, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	k, err := cuda.NewKernels(d)
	if err != nil {
		t.Fatal(err)
	}
	nowhere := cuda.Mem{Ptr: 4096, Size: 64}
	if err := errors.Join(k.Add(0, nowhere, nowhere, 16), d.Synchronize()); !errors.Is(err,
		cuda.ErrLost) || !strings.Contains(library.Trouble(), "add got a pointer") {
		t.Errorf("%v, trouble %q", err, library.Trouble())
	}
}

// TestLeftovers: the stand-in finds memory that a program does not free.
func TestLeftovers(t *testing.T) {
	library := standin.Open(t)
	driver, err := cuda.OpenLibrary(library.Path())
	if err != nil {
		t.Fatal(err)
	}
	if err := driver.Use(0); err != nil {
		t.Fatal(err)
	}
	if _, err := driver.Alloc(10); err != nil {
		t.Fatal(err)
	}
	if _, err := driver.NewStream(); err != nil {
		t.Fatal(err)
	}
	if left := library.Left(); left != "1 pieces of device memory, 1 streams, 1 contexts" {
		t.Errorf("left: %q", left)
	}
	library.Forget()
}

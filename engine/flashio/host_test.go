package flashio

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/windrow-sim/windrow/internal/units"
)

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	path := writeImage(t, dir, 4096)
	for _, c := range []struct {
		path string
		opt  Options
		want string
	}{
		{path, Options{Engine: "libaio"}, "known are auto, pread, uring, mmap, mem"},
		{path, Options{Engine: EngineEmulated}, "device model"},
		{path, Options{Direct: "yes"}, "known are auto, on, off"},
		{path, Options{Parallel: -1}, "parallel -1"},
		{path, Options{Engine: EnginePread, Parallel: 1 << 20}, "outside 0..4096"},
		{filepath.Join(dir, "none"), Options{}, "none"},
		{dir, Options{}, dir},
	} {
		r, err := Open(c.path, c.opt)
		if err == nil {
			r.Close()
			t.Errorf("%s %+v was accepted", c.path, c.opt)
			continue
		}
		mustContain(t, err.Error(), "flashio: ", c.want)
	}
}

func TestParallelIsNotIgnoredSilently(t *testing.T) {
	for _, e := range []Engine{EngineMmap, EngineMem} {
		r, err := Open(writeImage(t, t.TempDir(), 10), Options{Engine: e, Parallel: 8})
		if errors.Is(err, ErrEnvironment) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		mustContain(t, notes(r.Mode()), "parallel 8")
		r.Close()
	}
}

func TestOpenEmptyFile(t *testing.T) {
	path := writeImage(t, t.TempDir(), 0)
	for _, s := range subjects() {
		t.Run(s.name, func(t *testing.T) {
			r := openSubject(t, s, path)
			if err := r.ReadBatch([]Request{{0, nil}}); err != nil {
				t.Error(err)
			}
			if err := r.ReadBatch([]Request{{0, make([]byte, 1)}}); err == nil {
				t.Error("read a byte of an empty file")
			}
		})
	}
}

func TestDescribe(t *testing.T) {
	path := writeImage(t, t.TempDir(), 12345)
	info, err := Describe(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Path != path || info.Size != 12345 || info.FileSystem == "" {
		t.Errorf("%+v", info)
	}
	if info.FileSystem == "ext4" && runtime.GOOS == "linux" && !info.MemoryBacked {
		if info.LogicalBlock%512 != 0 || info.DirectKnown && info.DirectOff%512 != 0 {
			t.Errorf("odd block sizes: %+v", info)
		}
	}
	if _, err := Describe(filepath.Join(path, "none")); err == nil {
		t.Error("described nothing")
	}
}

func TestAlignedBuffer(t *testing.T) {
	for _, c := range []struct{ n, align, want int }{
		{1, 0, 4096}, {4096, 512, 4096}, {5000, 4096, 4096}, {1 << 20, 1 << 16, 1 << 16},
		{100, 5000, 8192}, {100, 2 << 20, 2 << 20},
	} {
		b := AlignedBuffer(c.n, c.align)
		if len(b) != c.n || bufferAddress(b)%uintptr(c.want) != 0 {
			t.Fatalf("%+v: %d bytes at %#x", c, len(b), bufferAddress(b))
		}
		for i := range b {
			if b[i] != 0 {
				t.Fatalf("%+v: byte %d is not zero", c, i)
			}
			b[i] = 1 // all of it can be written
		}
		if err := FreeBuffer(b); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
	}
	for _, n := range []int{0, -1} {
		if b := AlignedBuffer(n, 4096); b != nil {
			t.Errorf("%d bytes: %d", n, len(b))
		}
	}
	if err := FreeBuffer(nil); err != nil {
		t.Error(err)
	}
	b := alignedBuffer(t, 8192)
	if err := FreeBuffer(b[100:]); err == nil && runtime.GOOS != "windows" {
		t.Error("freed a part of a buffer")
	}
}

func TestParseReadBytes(t *testing.T) {
	for _, c := range []struct {
		text string
		want int64
		ok   bool
	}{
		{"rchar: 5\nread_bytes: 4096\nwrite_bytes: 1\n", 4096, true},
		{"read_bytes: 7", 7, true},
		{"read_bytes: x\n", 0, false},
		{"rchar: 5\n", 0, false},
		{"", 0, false},
	} {
		if n, ok := parseReadBytes(c.text); n != c.want || ok != c.ok {
			t.Errorf("%q: %d %v", c.text, n, ok)
		}
	}
}

// Direct reads reach the device every time; buffered ones do so after DropCache, and not twice.
func TestReadsReachTheDevice(t *testing.T) {
	path := writeImage(t, t.TempDir(), 1<<20)
	info, err := Describe(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := ProcessReadBytes(); !ok || promiseOf(info) != promiseDirect {
		t.Skipf("this host does not count, or %s is no file system of a drive", info.FileSystem)
	}
	if err := DropCache(path); err != nil {
		t.Fatal(err)
	}
	buf := alignedBuffer(t, 1<<20)
	reqs := make([]Request, 16)
	for i := range reqs {
		reqs[i] = Request{int64(i) << 16, buf[i<<16:][:1<<16]}
	}
	for _, c := range []struct {
		what     string
		opt      Options
		min, max units.Bytes
	}{
		{"direct pread", Options{Engine: EnginePread, Direct: DirectOn}, 1 << 20, 2 << 20},
		{"direct pread again", Options{Engine: EnginePread, Direct: DirectOn}, 1 << 20, 2 << 20},
		{"direct uring", Options{Engine: EngineUring, Direct: DirectOn}, 1 << 20, 2 << 20},
		{"cold pread", Options{Engine: EnginePread, Direct: DirectOff}, 1 << 20, 2 << 20},
		{"warm pread", Options{Engine: EnginePread, Direct: DirectOff}, 0, 1 << 19},
		{"warm mmap", Options{Engine: EngineMmap, Direct: DirectOff}, 0, 1 << 19},
	} {
		t.Run(c.what, func(t *testing.T) {
			r := openSubject(t, subject{opt: c.opt}, path)
			before, _ := ProcessReadBytes()
			if err := r.ReadBatch(reqs); err != nil {
				t.Fatal(err)
			}
			after, _ := ProcessReadBytes()
			if n := units.Bytes(after - before); n < c.min || n > c.max {
				t.Errorf("%v came from the device, want %v to %v", n, c.min, c.max)
			}
		})
	}
}

func TestDropCacheOfNothing(t *testing.T) {
	if err := DropCache(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("dropped the cache of no file")
	} else if !errors.Is(err, os.ErrNotExist) && !errors.Is(err, ErrEnvironment) {
		t.Error(err)
	}
}

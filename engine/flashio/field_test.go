package flashio

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/windrow-sim/windrow/engine/flashio/uring"
	"github.com/windrow-sim/windrow/internal/ioengine"
	"github.com/windrow-sim/windrow/internal/units"
)

// hostWith is the real host with a file that looks like info.
func hostWith(info FileInfo) host {
	h := realHost()
	h.describe = func(f *os.File) (FileInfo, error) {
		real, err := describeFile(f)
		info.Path, info.Size = real.Path, real.Size
		return info, err
	}
	h.setDirect = func(*os.File) (string, error) { return "", nil }
	return h
}

// refusing is a host on which opening a ring fails with err.
func refusing(err error, sysctl string) host {
	h := realHost()
	h.openRing = func(int, int, int) (ring, error) {
		return nil, fmt.Errorf("uring: io_uring_setup: %w",
			err)
	}
	h.probeRing = func() error { _, err := h.openRing(0, 0, 1); return err }
	h.sysctl = func() string { return sysctl }
	return h
}

func mustContain(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("%q does not say %q", text, p)
		}
	}
}

func notes(m Mode) string { return strings.Join(m.Notes, "\n") }

// O1: on tmpfs the answer is the name of the file system and a remedy, not a bare EINVAL.
func TestField_O1_TmpfsIsNamed(t *testing.T) {
	path := writeImage(t, t.TempDir(), 8192)
	h := hostWith(FileInfo{FileSystem: "tmpfs", MemoryBacked: true})
	h.setDirect = func(*os.File) (string, error) {
		t.Error("asked for direct reads of tmpfs")
		return "", syscall.EINVAL
	}
	_, err := openOn(h, path, Options{Engine: EnginePread, Direct: DirectOn})
	if !errors.Is(err, ErrEnvironment) {
		t.Fatalf("direct on tmpfs: %v", err)
	}
	mustContain(t, err.Error(), "tmpfs", path, "file system of the drive")
	if strings.Contains(err.Error(), "invalid argument") {
		t.Errorf("%q passes on an EINVAL", err)
	}
}

// O2: tmpfs accepts O_DIRECT on newer kernels; it is memory all the same.
func TestField_O2_TmpfsThatAcceptsDirect(t *testing.T) {
	dir := t.TempDir()
	h := hostWith(FileInfo{FileSystem: "tmpfs", MemoryBacked: true}) // its setDirect succeeds
	if shm, err := os.MkdirTemp("/dev/shm", "flashio"); err == nil {
		t.Cleanup(func() { os.RemoveAll(shm) })
		if info, err := Describe(writeImage(t, shm, 8192)); err == nil &&
			info.FileSystem == "tmpfs" {
			dir, h = shm, realHost()
		}
	}
	path := writeImage(t, dir, 8192)
	for _, direct := range []Direct{DirectAuto, DirectOff} {
		r, err := openOn(h, path, Options{Engine: EnginePread, Direct: direct})
		if err != nil {
			t.Fatal(err)
		}
		m := r.Mode()
		if m.Direct || !m.MemoryBacked || m.Align != 1 {
			t.Errorf("direct %s: %+v", direct, m)
		}
		mustContain(t, notes(m), "tmpfs", "lives in memory")
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

// O4: the alignment is the kernel's answer, else the device's logical block, else 4096; never a
// fixed 512.
func TestField_O4_Alignment(t *testing.T) {
	for _, c := range []struct {
		info FileInfo
		want units.Bytes
	}{
		{FileInfo{DirectKnown: true, DirectBuf: 512, DirectOff: 512, LogicalBlock: 4096}, 512},
		{FileInfo{DirectKnown: true, DirectBuf: 4, DirectOff: 4096}, 4096},
		{FileInfo{DirectKnown: true, DirectBuf: 4096, DirectOff: 512}, 4096},
		{FileInfo{LogicalBlock: 4096}, 4096},
		{FileInfo{LogicalBlock: 512}, 512},
		{FileInfo{}, 4096},
	} {
		c.info.FileSystem = "ext4"
		p, err := planDirect(c.info, DirectOn)
		if err != nil || !p.direct || p.align != c.want {
			t.Errorf("%+v: align %d, direct %v, %v; want %d", c.info, p.align, p.direct, err,
				c.want)
		}
	}
	path := writeImage(t, t.TempDir(), 16384)
	r, err := openOn(hostWith(FileInfo{FileSystem: "ext4", LogicalBlock: 4096}), path,
		Options{Engine: EnginePread})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	buf := alignedBuffer(t, 4096)
	if err := r.ReadBatch([]Request{{512, buf[:512]}}); !errors.Is(err, ErrMisaligned) {
		t.Errorf("512-byte read with 4096-byte sectors: %v", err)
	}
	if err := r.ReadBatch([]Request{{4096, buf}}); err != nil {
		t.Error(err)
	}
}

// O6: file systems that may serve direct reads from a cache are used, and said to be unproven.
func TestField_O6_DirectUnproven(t *testing.T) {
	for _, fs := range []string{"btrfs", "zfs", "overlay", "nfs", "fuse", unknownFileSystem} {
		p, err := planDirect(FileInfo{FileSystem: fs, Path: "x.img"}, DirectAuto)
		if err != nil || !p.direct || len(p.notes) != 1 {
			t.Errorf("%s: %+v, %v", fs, p, err)
			continue
		}
		mustContain(t, p.notes[0], "Direct unproven", fs, "/proc/self/io", "x.img")
	}
	for _, fs := range []string{"ext4", "xfs", "f2fs", blockDevice} {
		if p, err := planDirect(FileInfo{FileSystem: fs}, DirectAuto); err != nil ||
			len(p.notes) != 0 {
			t.Errorf("%s: %+v, %v", fs, p, err)
		}
	}
}

// A file that the kernel says cannot be read directly, and a file system that refuses in the end.
func TestDirectRefused(t *testing.T) {
	path := writeImage(t, t.TempDir(), 8192)
	never := hostWith(FileInfo{FileSystem: "ext4", DirectKnown: true})
	refuses := hostWith(FileInfo{FileSystem: "squashfs"})
	refuses.setDirect = func(*os.File) (string, error) { return "", syscall.EINVAL }
	for _, h := range []host{never, refuses} {
		if _, err := openOn(h, path, Options{Engine: EnginePread, Direct: DirectOn}); !errors.Is(
			err, ErrEnvironment) {
			t.Errorf("direct on: %v", err)
		}
		r, err := openOn(h, path, Options{Engine: EnginePread})
		if err != nil {
			t.Fatal(err)
		}
		if m := r.Mode(); m.Direct || m.Align != 1 || !m.WantDirect {
			t.Errorf("mode %+v", m)
		}
		mustContain(t, notes(r.Mode()), "page cache", path)
		if err := r.ReadBatch([]Request{{1, make([]byte, 3)}}); err != nil {
			t.Error(err)
		}
		r.Close()
	}
	for _, e := range []Engine{EngineMmap, EngineMem} {
		if _, err := Open(path, Options{Engine: e, Direct: DirectOn}); !errors.Is(err,
			ErrEnvironment) {
			t.Errorf("direct %s: %v", e, err)
		}
	}
}

// checkRingRefusal: auto falls back and says why, uring by name fails, the doctor's answer says the
// same.
func checkRingRefusal(t *testing.T, h host, parts ...string) {
	t.Helper()
	path := writeImage(t, t.TempDir(), 8192)
	r, err := openOn(h, path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	m := r.Mode()
	if m.Engine != EnginePread || m.Requested != EngineAuto ||
		m.Parallel != ioengine.DefaultParallel(ioengine.Pread) {
		t.Errorf("mode %+v", m)
	}
	if ok, why := h.uringStatus(); ok {
		t.Error("status is ok")
	} else {
		mustContain(t, why, parts...)
	}
	if _, err := openOn(h, path, Options{Engine: EngineUring}); !errors.Is(err, ErrEnvironment) {
		t.Errorf("uring by name: %v", err)
	} else {
		mustContain(t, err.Error(), append(parts, "pread")...)
	}
	if text := notes(m); text != "" { // no note where io_uring is not expected
		mustContain(t, text, append(parts, "pread")...)
	} else if _, err := os.Stat("/proc/sys/kernel"); err == nil {
		t.Error("the fall-back has no note")
	}
}

func TestField_O8_RingRefusedEPERM(t *testing.T) {
	t.Run("group", func(t *testing.T) {
		checkRingRefusal(t, refusing(syscall.EPERM, "1"), "EPERM", "io_uring_disabled is 1",
			"io_uring_group")
	})
	t.Run("all", func(t *testing.T) {
		checkRingRefusal(t, refusing(syscall.EPERM, "2"), "EPERM", "io_uring_disabled is 2",
			"sysctl kernel.io_uring_disabled=0")
	})
	t.Run("seccomp", func(t *testing.T) {
		checkRingRefusal(t, refusing(syscall.EPERM, "0"), "EPERM",
			"seccomp profile")
	})
	t.Run("older", func(t *testing.T) {
		checkRingRefusal(t, refusing(syscall.EPERM, ""), "EPERM",
			"seccomp profile")
	})
}

func TestField_O9_RingRefusedENOSYS(t *testing.T) {
	checkRingRefusal(t, refusing(syscall.ENOSYS, ""), "ENOSYS", "CONFIG_IO_URING")
}

func TestRingNotBuilt(t *testing.T) {
	checkRingRefusal(t, refusing(uring.ErrNotBuilt, "0"), "-tags=giouring", "-checklinkname=0")
}

// fakeRing refuses registration.
type fakeRing struct{ err error }

func (f fakeRing) Read(uring.Batch) (int, error) { return 0, nil }
func (f fakeRing) Time([]units.Nanos)            {}
func (f fakeRing) Register([][]byte) error       { return f.err }
func (f fakeRing) Starved() int64                { return 0 }
func (f fakeRing) Close() error                  { return nil }

// O10: too little lockable memory for registered buffers costs some speed and no more.
func TestField_O10_RegisterENOMEM(t *testing.T) {
	h := realHost()
	h.openRing = func(int, int, int) (ring, error) {
		return fakeRing{fmt.Errorf("uring: register buffers: %w", syscall.ENOMEM)}, nil
	}
	h.memlock = func() (units.Bytes, bool) { return 64 * units.KiB, true }
	r, err := openOn(h, writeImage(t, t.TempDir(), 8192), Options{Engine: EngineUring})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	ok, note := RegisterBuffers(WithCounter(r), make([]byte, 1<<20))
	if ok {
		t.Error("registered")
	}
	mustContain(t, note, "1MiB", "64KiB", "ulimit -l 1024")
	if err := r.ReadBatch([]Request{{0, alignedBuffer(t, 4096)}}); err != nil {
		t.Errorf("unregistered read: %v", err)
	}
}

func TestRegisterBuffers(t *testing.T) {
	path := writeImage(t, t.TempDir(), imageSize)
	r := openSubject(t, subject{opt: Options{Engine: EngineUring}}, path)
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	a, b := alignedBuffer(t, 64<<10), alignedBuffer(t, 64<<10)
	outside := alignedBuffer(t, 64<<10)
	for _, bufs := range [][][]byte{{a, b}, {b}, nil, {a}} { // each replaces the one before
		if ok, note := RegisterBuffers(r, bufs...); !ok {
			t.Skip(note)
		}
		reqs := []Request{{0, a}, {64 << 10, b[4096:]}, {128 << 10, outside}}
		clear(a)
		clear(b)
		clear(outside)
		if err := r.ReadBatch(reqs); err != nil {
			t.Fatal(err)
		}
		checkBytes(t, reqs, want)
	}
	if ok, note := RegisterBuffers(NewMem(nil), a); ok || note != "" {
		t.Errorf("memory: %v %q", ok, note)
	}
}

func TestUringStatusAgreesWithOpen(t *testing.T) {
	ok, why := UringStatus()
	r, err := Open(writeImage(t, t.TempDir(), 4096), Options{Engine: EngineUring})
	if err == nil {
		r.Close()
	}
	if ok != (err == nil) || why == "" {
		t.Errorf("status %v (%s), open %v", ok, why, err)
	}
}

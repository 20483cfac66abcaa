package flashio

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"github.com/windrow-sim/windrow/engine/flashio/uring"
	"github.com/windrow-sim/windrow/internal/units"
)

// host is Open's view of the system. Tests replace its functions one by one.
type host struct {
	describe  func(f *os.File) (FileInfo, error)
	setDirect func(f *os.File) (note string, err error)
	openRing  func(fd, depth, align int) (ring, error)
	probeRing func() error
	// sysctl returns the text of kernel.io_uring_disabled, "" where there is none.
	sysctl func() string
	// memlock returns RLIMIT_MEMLOCK; ok is false where it is unlimited or unknown.
	memlock func() (limit units.Bytes, ok bool)
}

// ring has the methods of a uring.Ring that the uring engine needs.
type ring interface {
	Read(b uring.Batch) (int, error)
	Time(into []units.Nanos)
	Register(bufs [][]byte) error
	Starved() int64
	Close() error
}

func realHost() host {
	return host{
		describe:  describeFile,
		setDirect: setDirect,
		openRing: func(fd, depth, align int) (ring, error) {
			r, err := uring.Open(fd, depth, align)
			if err != nil {
				return nil, err // not r: a nil *Ring in the interface would not be nil
			}
			return r, nil
		},
		probeRing: uring.Probe,
		sysctl:    uringSysctl,
		memlock:   memlockLimit,
	}
}

func uringSysctl() string {
	text, err := os.ReadFile("/proc/sys/kernel/io_uring_disabled")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// UringStatus reports whether this program can read through io_uring on this host, and if not, why
// and the remedy.
func UringStatus() (ok bool, why string) { return realHost().uringStatus() }

func (h host) uringStatus() (bool, string) {
	if err := h.probeRing(); err != nil {
		return false, h.uringRefusal(err)
	}
	return true, "io_uring works"
}

// uringRefusal explains the error of opening a ring, with the remedy.
func (h host) uringRefusal(err error) string {
	switch {
	case errors.Is(err, uring.ErrNotBuilt):
		return uring.ErrNotBuilt.Error()
	case errors.Is(err, syscall.ENOSYS):
		return "this kernel has no io_uring, or one that cannot read (ENOSYS): boot a kernel of " +
			"at least Linux 5.6 built with CONFIG_IO_URING"
	case errors.Is(err, syscall.EPERM), errors.Is(err, syscall.EACCES):
		return "the kernel refused io_uring (EPERM): " + h.permission()
	case errors.Is(err, syscall.ENOMEM):
		return "the kernel has no memory for the ring (ENOMEM): use a smaller depth, or raise " +
			"the limit of locked memory with `ulimit -l`"
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return "too many open files for a ring: raise the limit with `ulimit -n`"
	}
	return fmt.Sprintf("io_uring failed: %v", err)
}

// permission names the setting that forbids io_uring.
func (h host) permission() string {
	switch value := h.sysctl(); value {
	case "1":
		return "kernel.io_uring_disabled is 1, which allows it only to members of " +
			"kernel.io_uring_group and to processes with CAP_SYS_ADMIN: " +
			"join the group, or run `sysctl kernel.io_uring_disabled=0`"
	case "2":
		return "kernel.io_uring_disabled is 2, which forbids it to everyone: run `sysctl " +
			"kernel.io_uring_disabled=0`"
	case "":
		return "this kernel has no sysctl that forbids it, so a seccomp filter does, as most " +
			"container engines set one: " +
			"run the container with a seccomp profile that allows io_uring_setup, " +
			"io_uring_enter and io_uring_register"
	default:
		return "kernel.io_uring_disabled is " + value + ", so a seccomp filter forbids it, as " +
			"most container engines set one: " +
			"run the container with a seccomp profile that allows io_uring_setup, " +
			"io_uring_enter and io_uring_register"
	}
}

package flashio

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"

	"github.com/windrow-sim/windrow/engine/flashio/uring"
)

// Default parallelism: see Options.Parallel.
const (
	defaultThreads = 32
	defaultDepth   = 256
	maxThreads     = 4096
)

// Open opens the file at path for reading. Fall-backs taken (from io_uring to pread, from direct to
// buffered) are told in the Notes of the Reader's Mode; asked for by name (EngineUring, DirectOn)
// they are errors that wrap ErrEnvironment.
func Open(path string, opt Options) (Reader, error) { return openOn(realHost(), path, opt) }

func openOn(h host, path string, opt Options) (Reader, error) {
	opt, err := checkOptions(opt)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("flashio: open: %w", err)
	}
	r, err := openFile(h, f, opt)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return r, nil
}

// checkOptions fills in defaults and refuses what no engine can do.
func checkOptions(opt Options) (Options, error) {
	if opt.Engine == "" {
		opt.Engine = EngineAuto
	}
	if opt.Direct == "" {
		opt.Direct = DirectAuto
	}
	limit := maxThreads
	switch opt.Engine {
	case EngineAuto, EnginePread, EngineMmap, EngineMem:
	case EngineUring:
		limit = uring.MaxDepth
	case EngineEmulated:
		return opt, fmt.Errorf("flashio: open: engine %q reads through a device model and not "+
			"from a file alone; "+
			"give one of auto, pread, uring, mmap, mem", opt.Engine)
	default:
		return opt, fmt.Errorf("flashio: open: unknown engine %q; known are auto, pread, uring, "+
			"mmap, mem", opt.Engine)
	}
	switch opt.Direct {
	case DirectAuto, DirectOn, DirectOff:
	default:
		return opt, fmt.Errorf("flashio: open: unknown direct mode %q; known are auto, on, off",
			opt.Direct)
	}
	if opt.Parallel < 0 || opt.Parallel > limit {
		return opt, fmt.Errorf("flashio: open: parallel %d is outside 0..%d", opt.Parallel, limit)
	}
	return opt, nil
}

// file is what the engines that read from a file share.
type file struct {
	f      *os.File
	path   string
	size   int64 // when it was opened
	mode   Mode
	closed bool
}

// Mode implements Reader.
func (f *file) Mode() Mode { return f.mode }

// check refuses a batch that cannot be served, before any of it is read.
func (f *file) check(reqs []Request) error {
	if f.closed {
		return closedError(f.mode.Engine, f.path)
	}
	return checkRequests(&f.mode, f.path, f.size, reqs)
}

func (f *file) note(format string, args ...any) {
	f.mode.Notes = append(f.mode.Notes, sentence(fmt.Sprintf(format, args...)))
}

// openFile makes the Reader for an open file, which the Reader then owns.
func openFile(h host, f *os.File, opt Options) (Reader, error) {
	info, err := h.describe(f)
	if err != nil {
		return nil, err
	}
	base := file{f: f, path: f.Name(), size: int64(info.Size), mode: Mode{
		Requested: opt.Engine, WantDirect: opt.Direct != DirectOff, Align: 1, Parallel: 1,
		FileSystem: info.FileSystem, MemoryBacked: info.MemoryBacked,
	}}
	if opt.Engine == EngineMmap || opt.Engine == EngineMem {
		return openBuffered(base, info, opt)
	}
	if err := base.setDirect(h, info, opt.Direct); err != nil {
		return nil, err
	}
	if opt.Engine != EnginePread {
		r, err := openUring(h, base, opt)
		if err == nil {
			return r, nil
		}
		why := h.uringRefusal(err)
		if opt.Engine == EngineUring {
			return nil, fmt.Errorf("flashio: uring: %w: %s; or open with engine pread (%w)",
				ErrEnvironment, why, err)
		}
		if runtime.GOOS == "linux" { // elsewhere nobody expects io_uring
			base.note("Reads go through pread: %s", why)
		}
	}
	return openPread(base, f, opt.Parallel), nil
}

// setDirect makes the file's reads direct if they can be, and says so in the mode.
func (f *file) setDirect(h host, info FileInfo, want Direct) error {
	plan, err := planDirect(info, want)
	if err != nil {
		return err
	}
	f.mode.Notes = append(f.mode.Notes, plan.notes...)
	if !plan.direct {
		return nil
	}
	note, err := h.setDirect(f.f)
	switch {
	case err == nil:
		f.mode.Direct, f.mode.Align = true, plan.align
		if note != "" {
			f.note("%s", note)
		}
	case want == DirectOn:
		return fmt.Errorf("flashio: direct: %w: %s on %s: %v; put the file on ext4 or xfs, or "+
			"open it with direct off", ErrEnvironment, f.path, info.FileSystem, err)
	default:
		f.note("Reads go through the page cache: %s cannot read %s directly (%v); put the file "+
			"on ext4 or xfs", info.FileSystem, f.path, err)
	}
	return nil
}

// openBuffered opens the engines that have no direct reads.
func openBuffered(base file, info FileInfo, opt Options) (Reader, error) {
	const why = "%s reads through memory and never directly; use pread or uring to measure flash"
	if opt.Direct == DirectOn {
		return nil, fmt.Errorf("flashio: direct: %w: "+why, ErrEnvironment, opt.Engine)
	}
	if opt.Direct == DirectAuto {
		base.note("Engine "+why, opt.Engine)
	}
	if opt.Parallel > 1 {
		base.note("Engine %s reads with one thread; parallel %d is for pread and uring", opt.Engine,
			opt.Parallel)
	}
	if opt.Engine == EngineMmap {
		return openMmap(base)
	}
	return loadMem(base)
}

// loadMem reads the whole file into memory.
func loadMem(base file) (Reader, error) {
	data := make([]byte, base.size)
	if _, err := io.ReadFull(io.NewSectionReader(base.f, 0, base.size), data); err != nil {
		return nil, fmt.Errorf("flashio: mem: %s: read of %d bytes: %w", base.path, base.size, err)
	}
	if err := base.f.Close(); err != nil {
		return nil, fmt.Errorf("flashio: mem: %w", err)
	}
	base.f, base.mode.Engine, base.mode.MemoryBacked = nil, EngineMem, true
	return &memReader{file: base, data: data}, nil
}

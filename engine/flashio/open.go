package flashio

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/windrow-sim/windrow/internal/ioengine"
)

// Open opens the file at path for reading. A fall-back (from io_uring to pread, from direct to
// buffered) is a note in the Reader's Mode. If the caller named the engine or DirectOn, it is an
// error that wraps ErrEnvironment instead.
func Open(path string, opt Options) (Reader, error) { return openOn(realHost(), path, opt) }

func openOn(h host, path string, opt Options) (Reader, error) {
	opt, err := checkOptions(opt)
	if err != nil {
		return nil, err
	}
	f, err := openStored(path)
	if err != nil {
		return nil, fmt.Errorf("flashio: open: %w", err)
	}
	r, err := openFile(h, f, opt)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return r, nil
}

// checkOptions fills in defaults and refuses impossible options.
func checkOptions(opt Options) (Options, error) {
	if opt.Engine == "" {
		opt.Engine = EngineAuto
	}
	if opt.Direct == "" {
		opt.Direct = DirectAuto
	}
	row, known := ioengine.Find(string(opt.Engine))
	limit, names := row.MaxParallel, strings.Join(ioengine.Names(), ", ")
	switch {
	case known:
	case opt.Engine == EngineAuto:
		limit = ioengine.MaxThreads
	case opt.Engine == EngineEmulated:
		return opt, fmt.Errorf("flashio: open: engine %q reads through a device model and not "+
			"from a file alone; give one of %s", opt.Engine, names)
	default:
		return opt, fmt.Errorf("flashio: open: unknown engine %q; known are %s", opt.Engine, names)
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

// file is the common part of the engines that read from a file.
type file struct {
	f      *os.File
	path   string
	size   int64 // at the time of opening
	mode   Mode
	closed bool
}

// Mode implements Reader.
func (f *file) Mode() Mode { return f.mode }

// length is that of the file, which ReadFull does not read beyond.
func (f *file) length() int64 { return f.size }

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
	if row, _ := ioengine.Find(string(opt.Engine)); row.Cached {
		err = base.setCached(opt)
	} else {
		err = base.setDirect(h, info, opt.Direct)
	}
	switch {
	case err != nil:
		return nil, err
	case opt.Engine == EngineAuto:
		return openPreferred(h, base, opt)
	}
	return implementationOf(opt.Engine).open(h, base, opt)
}

// setDirect makes the file's reads direct if possible, and records this in the mode.
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

// setCached checks the options of an engine that reads through memory, and notes those that it
// ignores.
func (f *file) setCached(opt Options) error {
	const why = "%s reads through memory and never directly; use pread or uring to measure flash"
	if opt.Direct == DirectOn {
		return fmt.Errorf("flashio: direct: %w: "+why, ErrEnvironment, opt.Engine)
	}
	if opt.Direct == DirectAuto {
		f.note("Engine "+why, opt.Engine)
	}
	if opt.Parallel > 1 {
		f.note("Engine %s reads with one thread; parallel %d is for pread and uring", opt.Engine,
			opt.Parallel)
	}
	return nil
}

package flashio

import (
	"errors"
	"fmt"
	"runtime"
	"slices"

	"github.com/windrow-sim/windrow/internal/ioengine"
)

// Engine names an I/O engine: a name of the table in internal/ioengine.
type Engine string

// The engines that a file can be opened with. EngineAuto stands for the first of
// ioengine.Preferred that this host and this build have.
const (
	EngineAuto  Engine = ioengine.Auto
	EnginePread Engine = ioengine.Pread
	EngineUring Engine = ioengine.Uring
	EngineMmap  Engine = ioengine.Mmap
	EngineMem   Engine = ioengine.Mem
)

// EngineEmulated reads with the times of a device model (replay/emulated). Open does not know it.
const EngineEmulated Engine = "emulated"

// implementation is the code of an engine of the table.
type implementation struct {
	engine Engine
	// open makes the Reader of a file, which the Reader then owns. An engine that the host lacks is
	// a refusal.
	open func(h host, base file, opt Options) (Reader, error)
	// works reports whether the host has the engine; nil = every host does.
	works func(h host) bool
}

// implementations are the engines of internal/ioengine, each in the file with its name.
func implementations() []implementation {
	return []implementation{
		{engine: EnginePread, open: openPool},
		{engine: EngineUring, open: openUring, works: func(h host) bool {
			ok, _ := h.uringStatus()
			return ok
		}},
		{engine: EngineMmap, open: openMmap},
		{engine: EngineMem, open: loadMem},
	}
}

func implementationOf(e Engine) implementation {
	list := implementations()
	return list[slices.IndexFunc(list, func(i implementation) bool { return i.engine == e })]
}

// Working lists the engines that read directly from the device and work on this host, in the order
// of the table.
func Working() []Engine {
	h := realHost()
	var list []Engine
	for _, i := range implementations() {
		row, _ := ioengine.Find(string(i.engine))
		if !row.Cached && (i.works == nil || i.works(h)) {
			list = append(list, i.engine)
		}
	}
	return list
}

// Best is the engine that EngineAuto stands for on this host.
func Best() Engine {
	working := Working()
	for _, name := range ioengine.Preferred() {
		if slices.Contains(working, Engine(name)) {
			return Engine(name)
		}
	}
	return EnginePread
}

// missingError: the host lacks an engine. It wraps ErrEnvironment and the cause.
type missingError struct {
	engine Engine
	why    string // with the remedy
	cause  error
}

func (r *missingError) Error() string {
	return fmt.Sprintf("flashio: %s: %v: %s; or open with engine pread (%v)", r.engine,
		ErrEnvironment, r.why, r.cause)
}

func (r *missingError) Unwrap() []error { return []error{ErrEnvironment, r.cause} }

// openPreferred opens the first preferred engine that the host has, and notes why it is not the
// very first.
func openPreferred(h host, base file, opt Options) (Reader, error) {
	list := ioengine.Preferred()
	for i := 0; ; i++ {
		r, err := implementationOf(Engine(list[i])).open(h, base, opt)
		var missing *missingError
		if !errors.As(err, &missing) || i == len(list)-1 {
			return r, err
		}
		if runtime.GOOS == "linux" { // io_uring is not expected elsewhere
			base.note("Reads go through %s: %s", list[i+1], missing.why)
		}
	}
}

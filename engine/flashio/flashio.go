package flashio

import (
	"github.com/windrow-sim/windrow/internal/units"
)

// Request asks for len(Buf) bytes of the file at Offset. For a direct reader Offset, len(Buf) and
// the address of Buf are multiples of Mode.Align; a request that is not is an error, never a silent
// buffered read. It may then end beyond the file, by less than Mode.Align: that part of Buf becomes
// zeros.
type Request struct {
	Offset int64
	Buf    []byte
}

// Reader reads batches; it is the engine's only way to flash. Readers stack: Faults(Uring(file)).
//
// ReadBatch returns when every request has been filled completely (short reads and EINTR are
// retried inside), or with the first error in request order, wrapped with engine, file, offset and
// length. After an error the contents of the buffers are undefined, but no read is in flight any
// more. It is not safe for concurrent use. It neither keeps reqs nor allocates in steady state.
type Reader interface {
	ReadBatch(reqs []Request) error
	// Mode reports how the reads are really done. It does not change during the life of a Reader.
	Mode() Mode
	// Close waits for the workers and closes the file. A second Close returns nil.
	Close() error
}

// find returns the outermost of a Reader and of the Readers inside it that has more methods.
func find[T any](r Reader) (T, bool) {
	for {
		if found, ok := r.(T); ok {
			return found, true
		}
		outer, ok := r.(interface{ Unwrap() Reader })
		if !ok {
			var none T
			return none, false
		}
		r = outer.Unwrap()
	}
}

// Mode is the truth about a Reader, written into every result (design invariant 8).
type Mode struct {
	Engine    Engine `json:"engine"`    // the engine that serves the reads
	Requested Engine `json:"requested"` // the engine that the caller asked for
	// reads bypass the page cache, as far as the host can promise
	Direct     bool `json:"direct"`
	WantDirect bool `json:"want_direct"` // the caller asked for direct reads
	// alignment of offset, length and buffer; 1 when buffered
	Align      units.Bytes `json:"align"`
	Parallel   int         `json:"parallel"`    // threads (pread) or queue depth (uring)
	FileSystem string      `json:"file_system"` // by statfs, e.g. "ext4", "tmpfs"
	// tmpfs and the like: its rates say nothing about flash
	MemoryBacked bool `json:"memory_backed"`
	// fall-backs with their reasons, each a whole sentence with its remedy
	Notes []string `json:"notes"`
}

// Options configure the reads of a file.
type Options struct {
	Engine Engine // EngineAuto when empty
	Direct Direct
	// Parallel is the number of requests in flight; 0 = the default of the engine's row in
	// internal/ioengine.
	Parallel int
}

// Direct says whether reads bypass the page cache.
type Direct string

// DirectAuto tries direct reads and falls back to buffered ones with a note; DirectOn fails
// instead.
const (
	DirectAuto Direct = "auto"
	DirectOn   Direct = "on"
	DirectOff  Direct = "off"
)

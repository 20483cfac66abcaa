package world

import (
	"fmt"
	"slices"
	"sync"
	"unsafe"

	"github.com/windrow-sim/windrow/engine/flashio"
	"github.com/windrow-sim/windrow/internal/decisions/layout"
	"github.com/windrow-sim/windrow/internal/units"
)

// witness is a Reader around the pool that notes what the engine asks for, and refuses to be used
// by two at a time.
type witness struct {
	flashio.Reader
	geo    layout.Geometry
	chunk  units.Bytes
	closed func() // at the end of Close

	mu      sync.Mutex // never held across a read
	busy    bool
	batches int
	layers  []asked  // by layer, since the last call of take
	memory  []extent // of the process, that was read into
	wrong   []string
}

// asked holds the requests of the engine for one layer.
type asked struct {
	requests int
	bytes    units.Bytes
	extents  []extent // of the file
}

// extent is a range of addresses.
type extent struct{ from, to int64 }

func (w *witness) complain(format string, args ...any) {
	w.wrong = append(w.wrong, fmt.Sprintf(format, args...))
}

// ReadBatch implements flashio.Reader.
func (w *witness) ReadBatch(reqs []flashio.Request) error {
	w.begin(reqs)
	err := w.Reader.ReadBatch(reqs)
	w.mu.Lock()
	w.busy = false
	w.mu.Unlock()
	return err
}

// Close implements flashio.Reader.
func (w *witness) Close() error {
	err := w.Reader.Close()
	w.closed()
	return err
}

func (w *witness) begin(reqs []flashio.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.busy {
		w.complain("two batches are read at a time")
	}
	w.busy = true
	if len(reqs) > 0 {
		w.batches++
	}
	var buffers []extent
	for _, r := range reqs {
		at := int64(uintptr(unsafe.Pointer(unsafe.SliceData(r.Buf))))
		buffers = append(buffers, extent{at, at + int64(len(r.Buf))})
		if w.chunk > 0 && units.Bytes(len(r.Buf)) > w.chunk {
			w.complain("a request of %d bytes: the chunk is %d", len(r.Buf), w.chunk)
		}
		l := w.layer(r.Offset)
		l.requests++
		l.bytes += units.Bytes(len(r.Buf))
		l.extents = append(l.extents, extent{r.Offset, r.Offset + int64(len(r.Buf))})
	}
	sortExtents(buffers)
	for i := 1; i < len(buffers); i++ {
		if buffers[i].from < buffers[i-1].to {
			w.complain("two requests of a batch are read to one place")
			break
		}
	}
	w.memory = merged(append(w.memory, buffers...))
}

// layer returns the requests for the layer at an offset.
func (w *witness) layer(offset int64) *asked {
	for l := len(w.geo.Base) - 1; l > 0; l-- {
		if offset >= w.geo.Base[l] {
			return &w.layers[l]
		}
	}
	return &w.layers[0]
}

// take returns what was asked since the last call.
func (w *witness) take() []asked {
	w.mu.Lock()
	defer w.mu.Unlock()
	list := w.layers
	w.layers = make([]asked, len(w.geo.Base))
	return list
}

// staging is the memory that was read into.
func (w *witness) staging() (sum int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range w.memory {
		sum += e.to - e.from
	}
	return sum
}

// begun is the number of batches so far that read something.
func (w *witness) begun() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.batches
}

func sortExtents(list []extent) {
	slices.SortFunc(list, func(a, b extent) int { return int(a.from - b.from) })
}

// merged sorts extents and joins those that touch.
func merged(list []extent) []extent {
	sortExtents(list)
	out := list[:0]
	for _, e := range list {
		if n := len(out); n > 0 && e.from <= out[n-1].to {
			out[n-1].to = max(out[n-1].to, e.to)
			continue
		}
		out = append(out, e)
	}
	return out
}

// covers reports whether merged extents hold all bytes of a range.
func covers(list []extent, e extent) bool {
	i, found := slices.BinarySearchFunc(list, e.from, func(x extent, from int64) int {
		return int(x.from - from)
	})
	if !found {
		i--
	}
	return i >= 0 && list[i].from <= e.from && e.to <= list[i].to
}

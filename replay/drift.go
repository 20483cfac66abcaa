package replay

import (
	"fmt"
	"slices"
	"time"

	"github.com/windrow-sim/windrow/engine/flashio"
	"github.com/windrow-sim/windrow/internal/decisions/layout"
	"github.com/windrow-sim/windrow/internal/rng"
	"github.com/windrow-sim/windrow/internal/units"
)

// The reference pattern: the same reads every time, so that a change of their speed is a change of
// the device.
const (
	referenceReads = 128
	referenceBytes = 16 * units.KiB
)

// Drift says how steady the device was while it was measured. Shared and virtual disks move by tens
// of per cent within seconds; a comparison made while they did is worth nothing, and says so.
type Drift struct {
	Rates   []units.Rate `json:"rates"` // of the reference pattern, in order
	Known   bool         `json:"known"` // there are enough readings to say
	Percent float64      `json:"percent"`
}

// reference reads a fixed pattern of the image through the reader under test.
type reference struct {
	reader   flashio.Reader
	requests []flashio.Request
	buffer   []byte
	rates    []units.Rate
	warm     bool
}

func newReference(reader flashio.Reader, mode flashio.Mode, geo layout.Geometry,
	cfg Config) (*reference, error) {
	align := max(int64(mode.Align), 4096)
	size := (int64(referenceBytes) + align - 1) / align * align
	r := &reference{reader: reader, buffer: flashio.AlignedBuffer(int(size)*cfg.ReferenceReads,
		layout.StagingAlign)}
	if r.buffer == nil {
		return nil, fmt.Errorf("replay: no memory for the reference reads: %w",
			flashio.ErrEnvironment)
	}
	random := rng.Stream(cfg.Seed, "replay/reference")
	if places := geo.Size / size; places > 0 {
		for i := range int64(cfg.ReferenceReads) {
			r.requests = append(r.requests, flashio.Request{Offset: random.Int64N(places) * size,
				Buf: r.buffer[i*size : (i+1)*size]})
		}
	}
	return r, nil
}

// read takes one reading. The first is made twice and counts once: a device that was idle has
// caches, credit or power states to use up that it will not have again.
func (r *reference) read() error {
	if len(r.requests) == 0 {
		return nil
	}
	if !r.warm {
		r.warm = true
		if err := r.read(); err != nil {
			return err
		}
		r.rates = r.rates[:0]
	}
	begin := time.Now()
	if err := r.reader.ReadBatch(r.requests); err != nil {
		return fmt.Errorf("replay: reference reads: %w", err)
	}
	r.rates = append(r.rates, units.Bytes(len(r.buffer)).Over(units.Nanos(time.Since(begin))))
	return nil
}

// fewestReadings tell a drift.
const fewestReadings = 3

// finish takes the reading after the last token, and more where there are too few.
func (r *reference) finish(cfg Config) error {
	if cfg.ReferenceEvery <= 0 || len(r.requests) == 0 {
		return nil
	}
	for again := true; again; again = len(r.rates) < fewestReadings {
		if err := r.read(); err != nil {
			return err
		}
	}
	return nil
}

// drift compares the medians of thirds of the run: single readings are as noisy as single reads,
// but when the middle of one third differs from another's, the device has moved.
func (r *reference) drift() Drift {
	d := Drift{Rates: r.rates}
	n := len(r.rates)
	if n < fewestReadings {
		return d
	}
	d.Known = true
	low, high := units.Rate(1<<62), units.Rate(0)
	for third := range 3 {
		m := median(r.rates[third*n/3 : (third+1)*n/3])
		low, high = min(low, m), max(high, m)
	}
	d.Percent = 100 * (float64(high)/float64(low) - 1)
	return d
}

func median(rates []units.Rate) units.Rate {
	sorted := slices.Sorted(slices.Values(rates))
	return sorted[len(sorted)/2]
}

func (r *reference) close() { flashio.FreeBuffer(r.buffer) }

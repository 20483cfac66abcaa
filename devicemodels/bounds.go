package devicemodels

import (
	"fmt"
	"math"

	"github.com/windrow-sim/windrow/internal/bounds"
	"github.com/windrow-sim/windrow/internal/units"
)

// The numbers of a device. A number beyond its range has a wrong unit or belongs to no machine. The
// ranges also keep a simulation finite: what takes memory per server, steps per request or events
// per second of simulated time is bounded, and no time overflows.
var (
	serverRange = bounds.Range[int]{Least: 1, Most: 1 << 16,
		Why: "each is simulated, and no drive has as many dies"}
	readerRange = bounds.Range[int]{Least: 0, Most: 4096,
		Why: "0 is one thread, and no program reads a mapping with more"}
	depthRange = bounds.Range[int]{Least: 1, Most: 1 << 20, Why: "no device holds more requests"}
	queueRange = bounds.Range[int]{Least: 0, Most: 1 << 20, Why: "0 is no limit, and no device " +
		"holds more requests"}
	countRange = bounds.Range[int]{Least: 0, Most: 1 << 50, Why: "no measurement counts more"}
	iopsRange  = bounds.Range[int64]{Least: 0, Most: 1e9, Why: "0 is no limit, and no drive " +
		"answers one request a nanosecond"}
	rateRange = bounds.Range[units.Rate]{Least: 1e3, Most: 100_000 * units.GBps,
		Why: "a rate beyond has a wrong unit"}
	latencyRange = bounds.Range[units.Nanos]{Least: 0, Most: 60 * units.Second,
		Why: "a longer operation has a wrong unit"}
	periodRange = bounds.Range[units.Nanos]{Least: 0, Most: 365 * 24 * 3600 * units.Second,
		Why: "a longer time has a wrong unit"}
	sizeRange  = bounds.Range[units.Bytes]{Least: 0, Most: 1 << 59, Why: "no device is larger"}
	blockRange = bounds.Range[units.Bytes]{Least: 1, Most: units.GiB, Why: "no device has larger " +
		"blocks"}
	pageRange = bounds.Range[units.Bytes]{Least: 0, Most: units.GiB, Why: "no device has larger " +
		"blocks"}
	// A read is cut into pieces of this size, each of which is an event.
	pieceRange = bounds.Range[units.Bytes]{Least: 4 * units.KiB, Most: 1 << 59,
		Why: "the host does not split a read into less than a page"}
	chunkRange = bounds.Range[units.Bytes]{Least: 1, Most: 1 << 40, Why: "no read is larger"}
	// Reads of others are an event each.
	othersRange = bounds.Range[float64]{Least: 0, Most: 1e7, Why: "no drive answers more"}
	// Times are divided by the factor.
	factorRange     = bounds.Range[float64]{Least: 0.01, Most: 1, Why: "no drive slows down more"}
	gflopsRange     = bounds.Range[float64]{Least: 0, Most: 1e9, Why: "no machine computes more"}
	contentionRange = bounds.Range[float64]{Least: 0, Most: 1e6, Why: "no byte of I/O costs the " +
		"memory more"}
	percentRange = bounds.Range[float64]{Least: 0, Most: 1e9, Why: "a share beyond is no error"}
	gpuRateRange = bounds.Range[units.Rate]{Least: 1e3, Most: rateRange.Most,
		Why: "a rate beyond has a wrong unit, and all rates of a GPU are needed"}
	gpuFixedRange = bounds.Range[units.Nanos]{Least: 0, Most: units.Second,
		Why: "a longer operation has a wrong unit"}
	gpuMemoryRange = bounds.Range[units.Bytes]{Least: 1, Most: 1 << 50,
		Why: "write what the device has"}
	// Fits repeat the model of every cell for every candidate.
	cellsRange = bounds.Range[int]{Least: 0, Most: 10_000, Why: "a fit of more does not end"}
)

// CoreRange is the number of cores of a host.
var CoreRange = bounds.Range[int]{Least: 1, Most: 1 << 16, Why: "no machine has more"}

// within refuses a number outside of its range.
func within[T units.Rate | units.Bytes | units.Nanos | int | int64 | float64](v *validator,
	path string, value T, r bounds.Range[T]) {
	v.want(r.Has(value), path, value, r.Refuse(value))
}

// rate checks a rate; 0 is none.
func (v *validator) rate(path string, r units.Rate) {
	v.want(r == 0 || rateRange.Has(r), path, r, "is neither 0 nor from "+rateRange.String())
}

func (v *validator) duration(path string, t units.Nanos) { within(v, path, t, latencyRange) }

func (v *validator) period(path string, t units.Nanos) { within(v, path, t, periodRange) }

func (v *validator) bytes(path string, b units.Bytes) { within(v, path, b, sizeRange) }

func (v *validator) percent(path string, p float64) {
	within(v, path, p, percentRange)
}

// others checks the number of background reads per second.
func (v *validator) others(rate units.Rate, chunk units.Bytes) {
	reads := float64(rate) / float64(max(chunk, 1))
	v.want(othersRange.Has(math.Ceil(reads)), "flash.background.rate", rate,
		fmt.Sprintf("in reads of %v is %.3g reads per second, which %s", chunk, reads,
			othersRange.Refuse(reads)))
}

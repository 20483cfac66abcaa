package devicemodels

import (
	"math"
	"slices"

	"github.com/windrow-sim/windrow/devicemodels/flash"
	"github.com/windrow-sim/windrow/internal/units"
)

// A token bucket in front of a device (a control group, a cloud volume) stalls some reads: most are
// as fast as the device, and now and then one waits for the next credit. The histogram of single
// reads shows both kinds.
const (
	// A read has stalled when it took stallFactor times the median and at least stallLeast. A
	// drive's own queues and retries seldom take so long.
	stallFactor = 10
	stallLeast  = 2 * units.Millisecond
	// A cell is limited when its reads spent stallShare of their time in at least stallCount
	// stalls.
	stallShare = 0.3
	stallCount = 5
	// Cells share a limit when their rates are within sameLimit of each other.
	sameLimit = 0.1
)

// stalls describes the effect of a limit on the reads of a cell.
type stalls struct {
	fast   float64     // mean of the reads that did not stall, ns
	period units.Nanos // between two stalls of one thread
}

// stallsOf examines the times of single reads of a cell; ok is false when they show no limit.
func stallsOf(c *Cell) (s stalls, ok bool) {
	h := &c.Times
	if h.Total() == 0 || c.Tainted != "" {
		return s, false
	}
	least := stalledFrom(h)
	var fast, slow float64
	var slowCount int64
	for at, n := range h.All() {
		if at >= least {
			slow += float64(n) * float64(at)
			slowCount += n
		} else {
			fast += float64(n) * float64(at)
		}
	}
	fastCount := h.Total() - slowCount
	if slowCount < stallCount || fastCount == 0 || slow < stallShare*(fast+slow) {
		return s, false
	}
	return stalls{fast / float64(fastCount), units.Nanos((fast + slow) / float64(slowCount))}, true
}

// stalledFrom is the least time of a stalled read.
func stalledFrom(h *flash.Histogram) units.Nanos {
	return max(stallLeast,
		stallFactor*h.Quantile(0.5))
}

// findLimit returns the token bucket that limited cells have in common; nil when there is none. The
// cells must agree on bytes or on requests per second. With a single chunk size the limit is taken
// as one on bytes. The interval is that of the shallowest cell: with many threads the credit of an
// interval may not be enough for each of them.
func findLimit(cells []Cell) *flash.Limit {
	var rates, iops []float64
	chunks := map[units.Bytes]bool{}
	var interval units.Nanos
	shallowest := math.MaxInt
	for i := range cells {
		c := &cells[i]
		s, ok := stallsOf(c)
		if !ok {
			continue
		}
		rates = append(rates, float64(c.Rate))
		iops = append(iops, float64(c.Rate)/float64(c.Chunk))
		chunks[c.Chunk] = true
		if c.Depth < shallowest || c.Depth == shallowest && s.period < interval {
			shallowest, interval = c.Depth, s.period
		}
	}
	if len(rates) < 2 {
		return nil
	}
	limit := flash.Limit{Interval: units.Nanos(roundTo(float64(interval),
		float64(units.Millisecond)))}
	switch {
	case agree(rates):
		limit.Rate = units.Rate(digits4(middleOf(rates)))
	case agree(iops) && len(chunks) > 1:
		limit.IOPS = int64(digits4(middleOf(iops)))
	default:
		return nil
	}
	return &limit
}

// agree reports whether nine of ten values are within sameLimit of their median.
func agree(values []float64) bool {
	middle, apart := middleOf(values), 0
	for _, v := range values {
		if math.Abs(v/middle-1) > sameLimit {
			apart++
		}
	}
	return apart <= len(values)/10
}

func middleOf(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

func roundTo(v, step float64) float64 { return math.Max(math.Round(v/step), 1) * step }

// spreadOf returns the distribution of single reads that do not wait for others: those of the cell
// at depth 1 with the smallest chunks, without stalled reads. It is empty when there is no such
// cell.
func spreadOf(cells []Cell) (h flash.Histogram) {
	var from *Cell
	for i := range cells {
		if c := &cells[i]; c.Depth == 1 && c.Times.Total() > 0 && (from == nil ||
			c.Chunk < from.Chunk) {
			from = c
		}
	}
	if from == nil {
		return h
	}
	if _, stalled := stallsOf(from); !stalled {
		return from.Times.Clone()
	}
	least := stalledFrom(&from.Times)
	for at, n := range from.Times.All() {
		if at < least {
			h.Add(at, n)
		}
	}
	return h
}

// burst is the rate of a cell's device between stalls: the requests in flight over the time of one
// (Little's law).
func (s stalls) burst(c *Cell) float64 { return float64(c.Depth) * float64(c.Chunk) * 1e9 / s.fast }

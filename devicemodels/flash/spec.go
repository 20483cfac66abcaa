package flash

import (
	"github.com/windrow-sim/windrow/internal/units"
)

// Spec describes a flash device. It is immutable. The closed form, the event model and the fit use
// nothing else. Servers, LTFB, ServerRate, LinkRate, Align and Engines describe every device. The
// other parts are optional; the zero value means that the device lacks the part.
//
// LTFB is the latency to first byte, the part of a read's time that does not depend on its size
// (LLM in a flash, 2.1).
type Spec struct {
	Servers int `yaml:"servers" json:"servers"`
	// Placement says which server a read waits for; empty is PlaceAny.
	Placement Placement `yaml:"placement,omitempty" json:"placement,omitempty"`
	// Stripe is the number of consecutive bytes on one server under PlaceByAddress; 0 = 4096 B.
	Stripe units.Bytes `yaml:"stripe,omitempty" json:"stripe,omitempty"`
	LTFB   units.Nanos `yaml:"ltfb" json:"ltfb"` // mean
	// LTFBShape gives the distribution around the mean; empty = always the mean.
	LTFBShape  Histogram  `yaml:"ltfb_shape,omitempty" json:"ltfb_shape,omitempty"`
	ServerRate units.Rate `yaml:"server_rate" json:"server_rate"` // per server; 0 = no limit
	LinkRate   units.Rate `yaml:"link_rate" json:"link_rate"`     // shared; 0 = no limit
	MaxIOPS    int64      `yaml:"max_iops,omitempty" json:"max_iops,omitempty"`
	// requests inside the device; more wait outside
	QueueDepth int `yaml:"queue_depth,omitempty" json:"queue_depth,omitempty"`
	// smallest direct read
	Align units.Bytes `yaml:"align" json:"align"`
	// Page is the least unit that the medium reads: shorter or misaligned reads cost whole pages.
	Page units.Bytes `yaml:"page,omitempty" json:"page,omitempty"`
	// MaxTransfer is the largest request that the device takes; the host splits larger reads and
	// issues the pieces at once.
	MaxTransfer units.Bytes `yaml:"max_transfer,omitempty" json:"max_transfer,omitempty"`
	Limit       *Limit      `yaml:"limit,omitempty" json:"limit,omitempty"`
	Spans       []Span      `yaml:"spans,omitempty" json:"spans,omitempty"` // in order of Within
	Sustained   *Sustained  `yaml:"sustained,omitempty" json:"sustained,omitempty"`
	Background  *Background `yaml:"background,omitempty" json:"background,omitempty"`
	PageCache   *PageCache  `yaml:"page_cache,omitempty" json:"page_cache,omitempty"`
	// Engines gives the host's cost of using the device, by engine name ("pread", "uring", "mmap",
	// ...).
	Engines map[string]EngineCost `yaml:"engines" json:"engines"`
}

// Placement selects the server of a read.
type Placement string

// The placements.
//
// A drive's dies hold fixed addresses: two reads may need the same die while others are idle. The
// throughput of a drive therefore rises gradually with depth. With servers that serve any read it
// has a sharp bend at one depth. A virtual disk is often one thread. The thread wakes an LTFB after
// the first request of an idle queue, takes all waiting requests and serves them one after the
// other at MaxIOPS and LinkRate. Only then it looks again: n requests take one LTFB and n services.
const (
	PlaceAny       Placement = "any"     // the first to be free
	PlaceByAddress Placement = "address" // the one that holds the address
	// a single one that takes all waiting reads, in rounds; Servers is not used
	PlaceInRounds Placement = "rounds"
)

// defaultStripe spreads reads of usual sizes over all servers.
const defaultStripe = 4096

// EngineCost is host time per batch and per request. A pread pool spends the cost of requests on
// all cores of the host, a ring on one. On slow cores this cost is the bottleneck, whatever the
// drive.
type EngineCost struct {
	// once per batch: waking the workers, or one system call
	Batch    units.Nanos `yaml:"batch" json:"batch"`
	Submit   units.Nanos `yaml:"submit" json:"submit"`     // per request, before the device sees it
	Complete units.Nanos `yaml:"complete" json:"complete"` // per request, after the device is done
	Serial   bool        `yaml:"serial,omitempty" json:"serial,omitempty"`
	// Cached engines read through Spec.PageCache (mmap).
	Cached bool `yaml:"cached,omitempty" json:"cached,omitempty"`
}

// Limit is a token bucket in front of the device, as of cloud volumes and control groups. Credit
// for Rate bytes (and IOPS requests) per second arrives every Interval. Unused credit is kept up to
// Burst. Linux's block-I/O controller gives credit in slices of 0.1 s (20 ms on drives without
// rotation), so that readers stall between slices.
type Limit struct {
	Rate     units.Rate  `yaml:"rate,omitempty" json:"rate,omitempty"` // 0 = no limit on bytes
	IOPS     int64       `yaml:"iops,omitempty" json:"iops,omitempty"` // 0 = no limit on requests
	Interval units.Nanos `yaml:"interval,omitempty" json:"interval,omitempty"`
	// 0 = the credit of one interval
	Burst units.Bytes `yaml:"burst,omitempty" json:"burst,omitempty"`
}

// Span is the effect of the address range of a workload: for a short range the drive keeps its
// mapping table in its own memory. Within 0 is any range and comes last.
type Span struct {
	Within  units.Bytes `yaml:"within" json:"within"`
	MaxIOPS int64       `yaml:"max_iops,omitempty" json:"max_iops,omitempty"` // 0 = as elsewhere
	// ExtraLTFB is added to every read's latency to first byte.
	ExtraLTFB units.Nanos `yaml:"extra_ltfb,omitempty" json:"extra_ltfb,omitempty"`
}

// Sustained is thermal throttling. After Cliff of uninterrupted reading every rate falls to the
// share Factor. The drive cools while it is idle and is fresh after Cool.
type Sustained struct {
	Cliff  units.Nanos `yaml:"cliff" json:"cliff"`
	Factor float64     `yaml:"factor" json:"factor"` // 0 < Factor ≤ 1
	Cool   units.Nanos `yaml:"cool" json:"cool"`
}

// Background is the load of other readers: Poisson arrivals of reads of Chunk bytes, Rate bytes per
// second.
type Background struct {
	Rate  units.Rate  `yaml:"rate" json:"rate"`
	Chunk units.Bytes `yaml:"chunk" json:"chunk"`
}

// PageCache is the path of a mapped file. Pages in memory are copied. Others fault, and each fault
// fetches the missing pages of ReadAhead bytes around it. When Capacity is full, pages accessed
// once are evicted sooner than pages accessed again.
type PageCache struct {
	// memory for cached pages; 0 = no limit
	Capacity  units.Bytes `yaml:"capacity" json:"capacity"`
	ReadAhead units.Bytes `yaml:"read_ahead" json:"read_ahead"` // fetched by one fault, at most
	Fault     units.Nanos `yaml:"fault" json:"fault"`           // host time per fault
	// FillRate gives the host time for the bytes that a fault fetches, besides the device's time; 0
	// = no time.
	FillRate units.Rate `yaml:"fill_rate,omitempty" json:"fill_rate,omitempty"`
	HitRate  units.Rate `yaml:"hit_rate" json:"hit_rate"` // of copying cached bytes; 0 = no time
	// Advice is what the program says of its accesses (madvise); empty = nothing.
	Advice Advice `yaml:"advice,omitempty" json:"advice,omitempty"`
	// Threads is the number of threads that read, and so fault, at once; 0 = 1.
	Threads int `yaml:"threads,omitempty" json:"threads,omitempty"`
	// Map is the host time of a fault on a page in memory, which maps 64 KiB around it.
	Map units.Nanos `yaml:"map,omitempty" json:"map,omitempty"`
	// ReclaimRate gives the host time for the bytes that a fault evicts; 0 = no time.
	ReclaimRate units.Rate `yaml:"reclaim_rate,omitempty" json:"reclaim_rate,omitempty"`
}

// Advice is an advice to the system about a mapping. With any, Linux evicts pages in the order in
// which they came in, however often they are accessed.
type Advice string

// The advices.
const (
	AdviseNormal     Advice = ""
	AdviseRandom     Advice = "random"     // MADV_RANDOM: a fault fetches a single page
	AdviseSequential Advice = "sequential" // MADV_SEQUENTIAL: the window begins at the fault
)

// Within returns the device for a workload whose reads are spread over span bytes: it applies the
// first of Spans that is wide enough. A span of 0 is unknown and counts as the widest.
func (s *Spec) Within(span units.Bytes) Spec {
	out := *s
	for _, at := range s.Spans {
		if at.Within != 0 && (span == 0 || span > at.Within) {
			continue
		}
		if at.MaxIOPS > 0 {
			out.MaxIOPS = at.MaxIOPS
		}
		out.LTFB += at.ExtraLTFB
		break
	}
	out.Spans = nil
	return out
}

// Steady returns the device after its cliff, as for an endless workload.
func (s *Spec) Steady() Spec {
	out := *s
	if s.Sustained == nil {
		return out
	}
	slower := func(r units.Rate) units.Rate { return units.Rate(float64(r) * s.Sustained.Factor) }
	out.ServerRate, out.LinkRate = slower(s.ServerRate), slower(s.LinkRate)
	out.MaxIOPS = int64(float64(s.MaxIOPS) * s.Sustained.Factor)
	out.LTFB = units.Nanos(float64(s.LTFB) / s.Sustained.Factor)
	out.Sustained = nil
	return out
}

// Medium is the number of bytes that the medium reads for a read of length bytes at offset: whole
// pages.
func (s *Spec) Medium(offset, length units.Bytes) units.Bytes {
	if s.Page <= 1 {
		return length
	}
	first, end := offset/s.Page*s.Page, (offset+length+s.Page-1)/s.Page*s.Page
	return end - first
}

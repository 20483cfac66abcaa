package flash

import (
	"github.com/windrow-sim/windrow/internal/units"
)

// Spec is what is known about a flash device: immutable, and all that the closed form, the event
// model and the fit look at. Servers, LTFB, ServerRate, LinkRate, Align and Engines describe every
// device; the rest is optional, and its zero value means that the device does not have it.
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
	// LTFBShape gives the distribution around that mean; empty = always the mean.
	LTFBShape  Histogram  `yaml:"ltfb_shape,omitempty" json:"ltfb_shape,omitempty"`
	ServerRate units.Rate `yaml:"server_rate" json:"server_rate"` // per server; 0 = no limit
	LinkRate   units.Rate `yaml:"link_rate" json:"link_rate"`     // shared; 0 = no limit
	MaxIOPS    int64      `yaml:"max_iops,omitempty" json:"max_iops,omitempty"`
	// requests inside the device; more wait outside
	QueueDepth int `yaml:"queue_depth,omitempty" json:"queue_depth,omitempty"`
	// smallest direct read
	Align units.Bytes `yaml:"align" json:"align"`
	// Page is what the medium reads at least: shorter or misaligned reads cost whole pages.
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

// Placement says which of the servers serves a read.
type Placement string

// The placements. A drive's dies hold fixed addresses, so that two reads may want the same die
// while others are idle: its throughput rises softly with depth. Servers that can serve any read
// bend it at one depth. A virtual disk is often one thread that wakes up an LTFB after the first
// request of an idle queue, takes all requests that wait by then, serves them one after the other
// at MaxIOPS and LinkRate, and only then looks again: n requests take LTFB and n services.
const (
	PlaceAny       Placement = "any"     // the first to be free
	PlaceByAddress Placement = "address" // the one that holds the address
	// one, which takes all that wait, in rounds; Servers does not count
	PlaceInRounds Placement = "rounds"
)

// defaultStripe spreads reads of the usual sizes over all servers.
const defaultStripe = 4096

// EngineCost is host time spent per batch and per request. A pread pool spends the per-request cost
// on as many cores as the host has; a ring spends it on one. A host with slow cores is limited by
// it, whatever the drive can do.
type EngineCost struct {
	// once per batch: waking the workers, or one system call
	Batch    units.Nanos `yaml:"batch" json:"batch"`
	Submit   units.Nanos `yaml:"submit" json:"submit"`     // per request, before the device sees it
	Complete units.Nanos `yaml:"complete" json:"complete"` // per request, after the device is done
	Serial   bool        `yaml:"serial,omitempty" json:"serial,omitempty"`
	// Cached engines read through Spec.PageCache, one fault at a time (mmap).
	Cached bool `yaml:"cached,omitempty" json:"cached,omitempty"`
}

// Limit is a token bucket in front of the device, as cloud volumes and control groups have: credit
// for Rate bytes (and IOPS requests) per second arrives every Interval, and unused credit is kept
// up to Burst. Linux's block-I/O controller hands out credit in slices of 0.1 s (20 ms on drives
// without rotation), so that a reader stops and goes.
type Limit struct {
	Rate     units.Rate  `yaml:"rate,omitempty" json:"rate,omitempty"` // 0 = no limit on bytes
	IOPS     int64       `yaml:"iops,omitempty" json:"iops,omitempty"` // 0 = no limit on requests
	Interval units.Nanos `yaml:"interval,omitempty" json:"interval,omitempty"`
	// 0 = the credit of one interval
	Burst units.Bytes `yaml:"burst,omitempty" json:"burst,omitempty"`
}

// Span is the effect of how far the reads of a workload are spread: within a short stretch the
// drive keeps its mapping table in its own memory. Within 0 stands for any spread and comes last.
type Span struct {
	Within  units.Bytes `yaml:"within" json:"within"`
	MaxIOPS int64       `yaml:"max_iops,omitempty" json:"max_iops,omitempty"` // 0 = as elsewhere
	// ExtraLTFB is added to every read's latency to first byte.
	ExtraLTFB units.Nanos `yaml:"extra_ltfb,omitempty" json:"extra_ltfb,omitempty"`
}

// Sustained is thermal throttling: after Cliff of uninterrupted reading every rate falls to Factor
// of what it was; the drive cools while idle and is as new after Cool.
type Sustained struct {
	Cliff  units.Nanos `yaml:"cliff" json:"cliff"`
	Factor float64     `yaml:"factor" json:"factor"` // 0 < Factor ≤ 1
	Cool   units.Nanos `yaml:"cool" json:"cool"`
}

// Background is what others read from the device meanwhile: reads of Chunk that arrive at random,
// Rate bytes per second.
type Background struct {
	Rate  units.Rate  `yaml:"rate" json:"rate"`
	Chunk units.Bytes `yaml:"chunk" json:"chunk"`
}

// PageCache is the path of a mapped file: pages in memory are copied, others fault one by one, each
// bringing what memory lacks of ReadAhead bytes around it. When Capacity is full, others go for
// them: of those accessed once sooner than of those accessed again.
type PageCache struct {
	// memory for cached pages; 0 = no limit
	Capacity  units.Bytes `yaml:"capacity" json:"capacity"`
	ReadAhead units.Bytes `yaml:"read_ahead" json:"read_ahead"` // brought in by one fault, at most
	Fault     units.Nanos `yaml:"fault" json:"fault"`           // host time per fault
	// FillRate is that of the host time for bytes that a fault brings in, besides the device's; 0 =
	// no time.
	FillRate units.Rate `yaml:"fill_rate,omitempty" json:"fill_rate,omitempty"`
	HitRate  units.Rate `yaml:"hit_rate" json:"hit_rate"` // of copying cached bytes; 0 = no time
}

// Within returns the device as a workload sees it whose reads are spread over span bytes: the first
// of Spans that is wide enough is applied. A span of 0 is not known and taken for the widest.
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

// Steady returns the device after its cliff: what an endless workload gets.
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

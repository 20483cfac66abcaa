package flash

import (
	"math"

	"github.com/windrow-sim/windrow/internal/units"
)

// Throughput returns the data rate of a closed loop of depth requests of chunk bytes each at random
// places, read with engine on a host of cores cores, with the device fresh (see Steady) and the
// reads spread over all of it (see Within).
//
// With PlaceAny it is the least of the capacities of the stations and of the demand of depth
// requests (asymptotic bounds of operational analysis: Denning and Buzen, "The Operational Analysis
// of Queueing Network Models", 1978):
//
//	servers   k / (LTFB + b/ServerRate)
//	link      LinkRate / b
//	drive     MaxIOPS
//	host      cores / (submit + complete), or 1 / (submit + complete) for a serial engine
//	loop      depth / (submit + LTFB + max(b/ServerRate, b/LinkRate) + complete)
//
// With PlaceByAddress reads wait for busy servers while others are idle. The result is then
// approximate mean value analysis (see meanValue) below these bounds. PlaceInRounds gives depth /
// (submit + LTFB + depth·(1/MaxIOPS + b/ServerRate + b/LinkRate) + complete). An engine without
// costs in the device costs nothing: the empty name gives the device alone. Batch costs are not
// included, as a closed loop has no batches. Cached engines are no closed loop of the device: the
// result is the rate of reads that all miss. It is 0 when chunk or depth is not positive.
func (s *Spec) Throughput(engine string, cores int, chunk units.Bytes, depth int) units.Rate {
	if chunk <= 0 || depth <= 0 {
		return 0
	}
	rate := s.requestRate(engine, cores, chunk, depth) * float64(chunk)
	if rate >= math.MaxInt64 {
		return math.MaxInt64
	}
	return units.Rate(math.Round(rate))
}

// Latency returns the mean time of one request in that loop, waiting included: depth divided by the
// request rate (Little's law). The result is 0 when chunk or depth is not positive.
func (s *Spec) Latency(engine string, cores int, chunk units.Bytes, depth int) units.Nanos {
	if chunk <= 0 || depth <= 0 {
		return 0
	}
	return units.FromSeconds(float64(depth) / s.requestRate(engine, cores, chunk, depth))
}

// requestRate returns requests per second; +Inf when nothing in the model takes time.
func (s *Spec) requestRate(engine string, cores int, chunk units.Bytes, depth int) float64 {
	cost := s.Engines[engine]
	if cost.Cached {
		return s.faultRate(cost, cores, chunk)
	}
	return s.Loop(cores, cost.Serial).Rate(cost.Submit.Seconds()+cost.Complete.Seconds(),
		float64(chunk), float64(depth))
}

// faultRate is the rate of reads that fault for all of their bytes, one fault at a time in each
// thread, while read-ahead goes on. With several threads it is an upper bound.
func (s *Spec) faultRate(cost EngineCost, cores int, chunk units.Bytes) float64 {
	cache := s.PageCache
	if cache == nil || cache.ReadAhead <= 0 {
		return math.Inf(1)
	}
	faults, fetch := cache.faults(chunk), cache.fetch()
	host := (cache.Fault + cache.FillRate.Time(fetch)).Seconds()
	one := s.Loop(1, true).Rate(host, float64(fetch), 1)
	copying := cost.Submit.Seconds() + cost.Complete.Seconds() + cache.HitRate.Time(chunk).Seconds()
	alone := 1 / (faults/one + copying)
	threads := float64(cache.readers())
	if threads == 1 {
		return alone
	}
	busy := faults*host + copying
	return min(threads*alone, s.Loop(cores, false).Rate(host, float64(fetch), threads)/faults,
		float64(max(cores, 1))/busy)
}

// Loop is the closed form in seconds. Throughput and the fit both evaluate it, so that a fit
// minimises the error that a device file later shows. A fit changes its fields.
type Loop struct {
	Servers   float64
	Placement Placement
	LTFB      float64 // s, mean
	LTFBCV2   float64 // squared coefficient of variation of the LTFB
	PerByte   float64 // s/B of one server
	LinkByte  float64 // s/B of the link
	PerIO     float64 // s per request at the drive's request limit
	HostCores float64 // cores that share the request cost
	Most      float64 // requests inside the device; 0 = no limit

	LimitByte, LimitIO float64 // s/B and s per request of the token bucket
	Page, MaxTransfer  float64 // B
	OthersRate         float64 // background reads per second
	OthersChunk        float64 // B
}

// Loop returns the closed form of a device read by an engine.
func (s *Spec) Loop(cores int, serial bool) Loop {
	wide := s.Within(0)
	_, cv2 := s.LTFBShape.Moments()
	l := Loop{
		Servers: float64(s.Servers), Placement: s.Placement, LTFB: wide.LTFB.Seconds(),
		LTFBCV2: cv2,
		PerByte: inverse(float64(s.ServerRate)), LinkByte: inverse(float64(s.LinkRate)),
		PerIO:     inverse(float64(wide.MaxIOPS)),
		HostCores: hostServers(serial, cores), Most: float64(s.QueueDepth), Page: float64(s.Page),
		MaxTransfer: float64(s.MaxTransfer),
	}
	if s.Limit != nil {
		l.LimitByte, l.LimitIO = inverse(float64(s.Limit.Rate)), inverse(float64(s.Limit.IOPS))
	}
	if s.Background != nil && s.Background.Chunk > 0 {
		l.OthersChunk = float64(s.Background.Chunk)
		l.OthersRate = float64(s.Background.Rate) / l.OthersChunk
	}
	return l
}

// Rate returns the requests per second of a loop of depth requests of b bytes, each costing host
// seconds of processor time.
func (l Loop) Rate(host, b, depth float64) float64 {
	pieces := 1.0
	if l.MaxTransfer > 0 && b > l.MaxTransfer {
		// The pieces of a read are in flight together, like requests of a deeper loop, and the last
		// one ends the read. The wait of the others for it is left out: the rate is an upper bound.
		pieces = math.Ceil(b / l.MaxTransfer)
	}
	d := l.demands(host/pieces, b/pieces)
	whole := host + pieces*d.perIO + d.ltfb + max(d.transfer, pieces*d.link)
	bound := max(d.server/l.Servers, d.link, d.perIO, d.limit, d.host/l.HostCores,
		whole/depth/pieces)
	inside := depth * pieces
	if l.Most > 0 && l.Most < inside {
		inside = l.Most
		bound = max(bound, (d.lone()-d.host)/l.Most)
		d.host = 0 // spent outside the device
	}
	switch {
	case l.Placement == PlaceInRounds:
		service := d.perIO + d.transfer + d.link
		round := d.host + d.ltfb + inside*service
		return min(inside/round, 1/max(d.limit, host/pieces/l.HostCores)) / pieces
	case l.Placement != PlaceByAddress || bound == 0:
		return 1 / bound / pieces
	}
	return min(l.meanValue(d, inside), 1/bound) / pieces
}

// demands are the service times of one request at the stations, stretched by the background load.
type demands struct {
	host               float64
	server, serverCV2  float64 // LTFB and transfer
	ltfb, transfer     float64
	link, perIO, limit float64
}

func (l Loop) demands(host, b float64) demands {
	medium := b
	if l.Page > 1 {
		// A read aligned to less than a page touches b/page pages on average and a part of one
		// more. Reads of whole pages count as aligned to pages.
		medium = math.Ceil(b/l.Page) * l.Page
	}
	d := demands{host: host, ltfb: l.LTFB, transfer: medium * l.PerByte, link: b * l.LinkByte,
		perIO: l.PerIO, limit: max(b*l.LimitByte, l.LimitIO)}
	if l.OthersRate > 0 {
		busy := l.OthersRate * (l.LTFB + l.OthersChunk*l.PerByte) / l.Servers
		left := func(busy float64) float64 { return 1 / max(1-busy, 1e-3) }
		d.ltfb *= left(busy)
		d.transfer *= left(busy)
		d.link *= left(l.OthersRate * l.OthersChunk * l.LinkByte)
		d.perIO *= left(l.OthersRate * l.PerIO)
	}
	d.server = d.ltfb + d.transfer
	if d.server > 0 {
		d.serverCV2 = l.LTFBCV2 * (d.ltfb / d.server) * (d.ltfb / d.server)
	}
	return d
}

// lone is the time of a request that does not wait.
func (d *demands) lone() float64 {
	return d.host + d.perIO + d.ltfb + max(d.transfer, d.link)
}

// meanValue is approximate mean value analysis of a closed network for n = 1 … depth requests. The
// network has the host's cores, the request limit, k servers chosen by address, and the link.
//
// A request finds at each station the mean queue of a network with one request less. With a squared
// coefficient of variation c² of the service time, the remaining part of the service in progress is
// half of (1+c²) services (Reiser, "A Queueing Network Analysis of Computer Communication Networks
// with Window Flow Control", 1979). With exponential service the result is exact: n/(n+k-1) of k
// servers. For other service it is too fast when there are few servers; sharper corrects it.
// Requests with constant service times synchronise and do not meet at stations with one server.
// Their wait there is scaled by the irregularity that the servers cause.
func (l Loop) meanValue(d demands, depth float64) float64 {
	k := l.Servers
	var qServer, qLink, qIO, qHost float64 // mean numbers present at the stations
	var rate, irregular, best float64
	// Seidmann's approximation of the cores: one core of k-fold speed and a delay for the rest.
	core, delay := d.host/l.HostCores, d.host*(l.HostCores-1)/l.HostCores
	depth = min(depth, deepest)
	most := l.most(d, core)
	wait := func(service, queue float64) float64 {
		return max(service*(queue-rate*service/2), 0) * irregular
	}
	for n := 1.0; ; n++ {
		n = min(n, depth)
		wHost, wIO := wait(core, qHost)+core, wait(d.perIO, qIO)+d.perIO
		server := max(d.server*(qServer-rate/k*d.server*(1-d.serverCV2)/2), 0)
		// The link moves the bytes while the server produces them.
		link := wait(d.link, qLink) + d.link
		total := wHost + delay + wIO + server + d.ltfb + max(d.transfer, link)
		rate = min(n/total, most)
		// A further request never makes a loop slower, but past its peak the correction would.
		best = max(best, l.sharpened(d, rate, n))
		if n >= depth {
			return best
		}
		if rate == most { // further requests change only the correction
			return max(best, l.sharpened(d, rate, depth))
		}
		qHost, qIO, qLink = rate*wHost, rate*wIO, rate*link
		qServer = rate / k * (server + d.server)
		irregular = min(1, irregularity*server/d.server+math.Sqrt(d.serverCV2))
	}
}

// sharpened corrects a rate of mean value analysis for constant service.
func (l Loop) sharpened(d demands, rate, n float64) float64 {
	k := l.Servers
	return rate / (1 + sharper(n, k)*max(1-d.serverCV2, 0)*min(1, rate*d.server/k))
}

// deepest bounds the steps of mean value analysis. A loop of more requests reaches the same rate.
const deepest = 1 << 20

// irregularity is the ratio of the irregularity of arrivals behind the servers to their mean wait
// in services; fitted to the event model.
const irregularity = 2

// most is the rate that keeps the slowest station always busy.
func (l Loop) most(d demands, core float64) float64 {
	// +Inf when nothing takes time
	return 1 / max(d.server/l.Servers, d.link, d.perIO, d.limit, core)
}

// sharper is the relative error of mean value analysis for constant service at k servers and n
// requests, fitted to the event model: at most 0.19/k, where n is near k.
func sharper(n, k float64) float64 {
	if k <= 1 {
		return 0
	}
	x := n / k
	shape := x
	if x > 1 {
		shape = 2 * x / (1 + x*x)
	}
	return 0.19 / k * shape
}

func hostServers(serial bool, cores int) float64 {
	if serial || cores < 1 {
		return 1
	}
	return float64(cores)
}

// inverse maps "no limit", which is 0 in a device, to no time.
func inverse(v float64) float64 {
	if v <= 0 {
		return 0
	}
	return 1 / v
}

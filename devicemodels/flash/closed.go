package flash

import (
	"math"

	"github.com/windrow-sim/windrow/internal/units"
)

// Throughput returns the data rate of a closed loop of depth requests of chunk bytes each at random
// places, read with engine on a host of cores cores, with the device fresh (see Steady) and the
// reads spread over all of it (see Within).
//
// With PlaceAny it is the smallest of what each station can do and of what depth requests can ask
// for (asymptotic bounds of operational analysis: Denning and Buzen, "The Operational Analysis of
// Queueing Network Models", 1978):
//
//	servers   k / (LTFB + b/ServerRate)
//	link      LinkRate / b
//	drive     MaxIOPS
//	host      cores / (submit + complete), or 1 / (submit + complete) for a serial engine
//	loop      depth / (submit + LTFB + max(b/ServerRate, b/LinkRate) + complete)
//
// With PlaceByAddress reads wait for busy servers while others are idle, and the result is
// approximate mean value analysis (see meanValue) below those bounds. PlaceInRounds gives depth /
// (submit + LTFB + depth·(1/MaxIOPS + b/ServerRate + b/LinkRate) + complete). An engine the device
// has no costs for costs nothing, so the empty name gives the device alone. Batch costs are not
// included: a closed loop has no batches. Cached engines are not a closed loop of the device: for
// them it is the rate of reads that all miss. The result is 0 when chunk or depth is not positive.
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
		return s.faultRate(cost, chunk)
	}
	return s.Loop(cores, cost.Serial).Rate(cost.Submit.Seconds()+cost.Complete.Seconds(),
		float64(chunk), float64(depth))
}

// faultRate is that of reads of which every one faults for all of its bytes, one fault at a time.
func (s *Spec) faultRate(cost EngineCost, chunk units.Bytes) float64 {
	cache := s.PageCache
	if cache == nil || cache.ReadAhead <= 0 {
		return math.Inf(1)
	}
	faults := cache.faults(chunk)
	one := s.Loop(1, true).Rate((cache.Fault + cache.FillRate.Time(cache.ReadAhead)).Seconds(),
		float64(cache.ReadAhead), 1)
	return 1 / (faults/one + cost.Submit.Seconds() + cost.Complete.Seconds() +
		cache.HitRate.Time(chunk).Seconds())
}

// Loop is the closed form in seconds: the form that both Throughput and the fit evaluate, so that a
// fit minimises exactly the error that a device file later shows. Its fields may be moved by a fit.
type Loop struct {
	Servers   float64
	Placement Placement
	LTFB      float64 // s, mean
	LTFBCV2   float64 // squared coefficient of variation of the LTFB
	PerByte   float64 // s/B of one server
	LinkByte  float64 // s/B of the link
	PerIO     float64 // s per request at the drive's request limit
	HostCores float64 // cores that the request cost is spread over
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
		// Pieces of one read are in flight together, as so many requests of a deeper loop, and the
		// last of them ends the read. What the others wait for it is left out, so that this is an
		// upper bound.
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
		d.host = 0 // it is spent outside
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

// demands are the times that one request asks of the stations, stretched by what others take of
// them.
type demands struct {
	host               float64
	server, serverCV2  float64 // LTFB and transfer
	ltfb, transfer     float64
	link, perIO, limit float64
}

func (l Loop) demands(host, b float64) demands {
	medium := b
	if l.Page > 1 {
		// A read that starts anywhere aligned to less than a page touches on average b/page pages
		// and a part of one more; reads of whole pages are taken to be aligned to them.
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

// lone is the time of a request that waits for nobody.
func (d *demands) lone() float64 {
	return d.host + d.perIO + d.ltfb + max(d.transfer, d.link)
}

// meanValue is approximate mean value analysis of the closed network of host cores, request limit,
// k servers chosen by address and link, for n = 1 … depth requests: a request finds at each station
// the mean queue of a network with one request less, where the one in service is, for service times
// of squared variation c², half (1+c²) served (Reiser, "A Queueing Network Analysis of Computer
// Communication Networks with Window Flow Control", 1979). With exponential service it is exact:
// n/(n+k-1) of k servers. For other service it is too fast when there are few servers; sharper
// corrects that. Requests of constant times fall into step and do not meet at the single stations:
// what they wait there is scaled by how irregular the servers make them.
func (l Loop) meanValue(d demands, depth float64) float64 {
	k := l.Servers
	var qServer, qLink, qIO, qHost float64 // mean numbers present at the stations
	var rate, irregular, best float64
	// Seidmann's approximation of the cores: one core of k-fold speed and a delay for the rest.
	core, delay := d.host/l.HostCores, d.host*(l.HostCores-1)/l.HostCores
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
		// One request more never makes a loop slower; the correction, past its peak, would.
		best = max(best, l.sharpened(d, rate, n))
		if n >= depth {
			return best
		}
		if rate == most { // more requests change nothing but the correction
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

// irregularity is how many times their mean wait, in services, the arrivals behind the servers are
// irregular; fitted to the event model.
const irregularity = 2

// most is the rate at which the slowest station is always busy.
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

// inverse maps "no limit", written 0 in a device, to no time.
func inverse(v float64) float64 {
	if v <= 0 {
		return 0
	}
	return 1 / v
}

package devicemodels

import (
	"math"

	"github.com/windrow-sim/windrow/internal/units"
)

// Throughput returns the data rate of a closed loop of depth requests of chunk bytes each, read with engine on a host of
// cores cores: the smallest of what each station can do and of what depth requests can ask for.
//
//	servers   k / (LTFB + b/ServerRate)
//	link      LinkRate / b
//	drive     MaxIOPS
//	host      cores / (submit + complete), or 1 / (submit + complete) for a serial engine
//	loop      depth / (submit + LTFB + max(b/ServerRate, b/LinkRate) + complete)
//
// An engine the device has no costs for costs nothing, so the empty name gives the device alone. Batch costs are not
// included: a closed loop has no batches. The result is 0 when chunk or depth is not positive.
func (f *Flash) Throughput(engine string, cores int, chunk units.Bytes, depth int) units.Rate {
	if chunk <= 0 || depth <= 0 {
		return 0
	}
	rate := f.requestRate(engine, cores, chunk, depth) * float64(chunk)
	if rate >= math.MaxInt64 {
		return math.MaxInt64
	}
	return units.Rate(math.Round(rate))
}

// Latency returns the mean time of one request in that loop, waiting included: depth divided by the request rate
// (Little's law). The result is 0 when chunk or depth is not positive.
func (f *Flash) Latency(engine string, cores int, chunk units.Bytes, depth int) units.Nanos {
	if chunk <= 0 || depth <= 0 {
		return 0
	}
	return units.FromSeconds(float64(depth) / f.requestRate(engine, cores, chunk, depth))
}

// requestRate returns requests per second; +Inf when nothing in the model takes time.
func (f *Flash) requestRate(engine string, cores int, chunk units.Bytes, depth int) float64 {
	cost := f.Engines[engine]
	host := cost.Submit.Seconds() + cost.Complete.Seconds()
	m := closedForm{
		servers:   float64(f.Servers),
		ltfb:      f.LTFB.Seconds(),
		perByte:   inverse(float64(f.ServerRate)),
		linkByte:  inverse(float64(f.LinkRate)),
		perMax:    inverse(float64(f.MaxIOPS)),
		hostCores: hostServers(cost.Serial, cores),
	}
	return m.rate(host, float64(chunk), float64(depth))
}

// closedForm is the model in seconds: the form that both Throughput and the fit evaluate, so that a fit minimises
// exactly the error that Fit.Cells later shows.
type closedForm struct {
	servers   float64
	ltfb      float64 // s
	perByte   float64 // s/B of one server
	linkByte  float64 // s/B of the link
	perMax    float64 // s per request at the drive's request limit
	hostCores float64 // cores that the request cost is spread over
}

// rate returns the requests per second of a loop of depth requests of b bytes, each costing host seconds of CPU.
func (m closedForm) rate(host, b, depth float64) float64 {
	unloaded := host + m.ltfb + b*max(m.perByte, m.linkByte)
	perRequest := max(
		(m.ltfb+b*m.perByte)/m.servers,
		b*m.linkByte,
		m.perMax,
		host/m.hostCores,
		unloaded/depth,
	)
	return inverse0(perRequest)
}

func hostServers(serial bool, cores int) float64 {
	if serial || cores < 1 {
		return 1
	}
	return float64(cores)
}

// inverse maps "no limit", written 0 in a device, to no time.
func inverse(rate float64) float64 {
	if rate <= 0 {
		return 0
	}
	return 1 / rate
}

func inverse0(seconds float64) float64 {
	if seconds <= 0 {
		return math.Inf(1)
	}
	return 1 / seconds
}

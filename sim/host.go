package sim

import (
	"slices"

	"github.com/windrow-sim/windrow/devicemodels"
	"github.com/windrow-sim/windrow/devicemodels/flash"
	"github.com/windrow-sim/windrow/internal/decisions/launch"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/traces"
)

// Work counts the work of one layer for one token. The host's times follow from it.
type Work struct {
	Need      int // units whose rows the layer uses
	Hits      int // of them in memory
	Loads     int // of them not in memory: read before the layer computes
	Evictions int // units evicted after the layer
	Copies    int // rows copied inside memory: rows that fill gaps, and loaded rows
	Resident  int // rows in memory while the layer computes
}

// LayerTimes are the times of one layer of one token on the host. The reads come between Predict
// and Memory.
type LayerTimes struct {
	Attention, Predict, Memory, FFN units.Nanos

	Bounded units.Nanos // the part of them that is a roofline bound
	Traffic units.Bytes // of memory while computing, for devicemodels.Host.Overlap

	GPU GPUWork // the work of a GPU; Streams turns it into times
}

// Sum is the time of all parts.
func (t LayerTimes) Sum() units.Nanos { return t.Attention + t.Predict + t.Memory + t.FFN }

// Add returns the sum of two layers, part by part, without the work of a GPU.
func (t LayerTimes) Add(o LayerTimes) LayerTimes {
	return LayerTimes{
		Attention: t.Attention + o.Attention, Predict: t.Predict + o.Predict, Memory: t.Memory +
			o.Memory, FFN: t.FFN + o.FFN,
		Bounded: t.Bounded + o.Bounded, Traffic: t.Traffic + o.Traffic,
	}
}

// TokenTimes are the times of the host once per token: the output head, and the cost of resident
// rows.
type TokenTimes struct {
	Other, Bounded units.Nanos
	Traffic        units.Bytes

	GPU Stage // the embedding and the output head; Streams turns it into a time
}

// Host charges the times of a device's host on traces of one model. It is immutable and safe for
// concurrent use.
type Host struct {
	spec    devicemodels.Host
	compute devicemodels.Compute
	head    *traces.Header
	rank    int  // of the predictor; 0 = masks cost nothing
	gpu     *gpu // nil = the host computes
}

// NewHost returns the host of a device; predictorRank is Config.PredictorRank.
func NewHost(device *devicemodels.Device, head *traces.Header, predictorRank int) *Host {
	return &Host{spec: device.Host, compute: device.Host.At(head.DType), head: head,
		rank: predictorRank}
}

// NewHost returns the host of a checked configuration, with its GPU if the backend is one.
func (cfg *Config) NewHost(head *traces.Header) *Host {
	h := NewHost(cfg.Device, head, cfg.PredictorRank)
	if cfg.Backend == OnHost {
		return h
	}
	predictor := h.compute.Predictor
	h.compute = cfg.Device.GPU.At(head.DType, &cfg.Device.Host)
	if h.compute.Predictor = predictor; h.rank == 0 {
		h.compute.Predictor = devicemodels.Term{}
	}
	h.gpu = &gpu{
		spec: cfg.Device.GPU, compute: h.compute, family: launch.Of(head.Shape.Rows),
		observed: cfg.Observed,
		input:    h.rank > 0,
	}
	return h
}

// Layer charges one layer of the token at a position.
func (h *Host) Layer(pos int, w *Work) (t LayerTimes) {
	if h.gpu != nil {
		return h.gpu.layer(h, pos, w)
	}
	t.Attention = h.attention(pos, &t)
	t.Predict = h.spec.Decide(w.Need) + h.predictor(&t)
	t.Memory = t.charge(h.compute.Copy, units.Bytes(w.Copies)*h.head.UnitBytes, w.Copies)
	if w.Loads > 0 { // to an accelerator with memory of its own
		t.Memory += t.charge(h.compute.Transfer, units.Bytes(w.Loads)*h.head.UnitBytes, 1)
	}
	used := units.Bytes(w.Need) * h.head.UnitBytes
	if h.spec.ResidentRows {
		used = units.Bytes(w.Resident) * h.head.UnitBytes
	}
	t.Traffic += used
	t.FFN = t.charge(h.compute.Rows, used, 1)
	return t
}

// attention charges the four projections (q, k, v, out) as resident mat-vecs and the reading of
// pos+1 keys and values (float32 in the engine's cache).
func (h *Host) attention(pos int, t *LayerTimes) units.Nanos {
	s := &h.head.Shape
	weights, cache := s.AttentionBytes(), s.KVBytes()*units.Bytes(pos+1)
	t.Traffic += weights + cache
	return h.spec.LayerFixed + h.spec.SyncFixed + t.charge(h.compute.Dense, weights, 4) +
		t.charge(h.compute.KV, cache, 1)
}

// predictor charges the two mat-vecs of a low-rank predictor: d_model × rank, then rank × units
// (LLM in a flash, 3.1).
func (h *Host) predictor(t *LayerTimes) units.Nanos {
	if h.rank == 0 {
		return 0
	}
	s := &h.head.Shape
	weights := units.Bytes(h.rank) * units.Bytes(s.DModel+h.head.Units) * units.Bytes(s.DTypeSize)
	t.Traffic += weights
	return t.charge(h.compute.Predictor, weights, 2)
}

// charge returns the time of a term, and adds it to Bounded if it is a bound.
func (t *LayerTimes) charge(term devicemodels.Term, bytes units.Bytes, calls int) units.Nanos {
	took := term.Time(bytes, calls)
	if term.Basis == devicemodels.Roofline {
		t.Bounded += took
	}
	return took
}

// Token charges the output head, the fixed time of a token, and the cost of resident rows.
func (h *Host) Token(resident int) TokenTimes {
	if h.gpu != nil {
		ends := h.gpu.ends(h)
		return TokenTimes{Other: h.gpu.alone(ends), GPU: ends}
	}
	var t LayerTimes
	weights := h.head.Shape.HeadBytes()
	took := h.spec.TokenFixed + t.charge(h.compute.Dense, weights, 1) + t.charge(h.compute.Held,
		units.Bytes(resident)*h.head.UnitBytes, 1)
	return TokenTimes{Other: took, Bounded: t.Bounded, Traffic: weights}
}

// Dense charges a layer whose units are all resident and all used: one mat-vec for every row of a
// unit. It has no decisions and no copies.
func (h *Host) Dense(pos int) (t LayerTimes) {
	if h.gpu != nil {
		return h.gpu.dense(h, pos)
	}
	t.Attention = h.attention(pos, &t)
	weights := units.Bytes(h.head.Units) * h.head.UnitBytes
	t.Traffic += weights
	t.FFN = t.charge(h.compute.Dense, weights, max(h.head.Shape.Rows, 1))
	return t
}

// Scatter is the time to copy rows from the staging buffer into the cache.
func (h *Host) Scatter(rows int) units.Nanos {
	if rows == 0 {
		return 0
	}
	if h.gpu != nil {
		return h.gpu.alone(h.gpu.scatter(h, 0, rows))
	}
	bytes := units.Bytes(rows) * h.head.UnitBytes
	return h.compute.Copy.Time(bytes, rows) + h.compute.Transfer.Time(bytes, 1)
}

// lost is the time that compute loses to the reads and row copies beside it. computing and traffic
// are the time and the memory traffic of the compute, beside is the progress of the reads during
// it, moving is the time of row copies during it. Memory is shared as devicemodels.Host.Overlap
// says. A host without an accelerator computes on all of its cores: reads and row copies take cores
// and memory from the compute.
func (h *Host) lost(computing units.Nanos, traffic units.Bytes, beside flash.Progress,
	moving units.Nanos) units.Nanos {
	lost := h.spec.Overlap(beside.Busy, beside.Moved, computing, traffic) - computing
	if h.gpu != nil || h.spec.HasAccelerator() {
		return lost // an accelerator receives rows beside its compute
	}
	if h.spec.Cores > 0 {
		lost = max(lost, min(beside.Host/units.Nanos(h.spec.Cores), computing))
	}
	return lost + moving
}

// Overlap is the time of a token whose reads run beside its compute; see
// devicemodels.Host.Overlap.
func (h *Host) Overlap(io units.Nanos, moved units.Bytes, computing units.Nanos,
	traffic units.Bytes) units.Nanos {
	return h.spec.Overlap(io, moved, computing, traffic)
}

// terms returns the terms that are charged.
func (h *Host) terms() []devicemodels.Term {
	return slices.DeleteFunc(h.compute.Terms(), func(t devicemodels.Term) bool {
		return t.Name == h.compute.Predictor.Name && h.rank == 0
	})
}

// unknown reports whether some work is charged no time because its rate is not known.
func (h *Host) unknown() bool {
	return slices.ContainsFunc(h.terms(), func(t devicemodels.Term) bool {
		return t.Basis == devicemodels.Unknown
	})
}

package sim

import (
	"slices"

	"github.com/windrow-sim/windrow/devicemodels"
	"github.com/windrow-sim/windrow/devicemodels/flash"
	"github.com/windrow-sim/windrow/internal/decisions/launch"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/traces"
)

// Work is what one layer of one token has to do, in counts: the decisions as the host's clock sees
// them.
type Work struct {
	Need      int // units whose rows the layer uses
	Hits      int // of them in memory
	Loads     int // and not: read before the layer computes
	Evictions int // units that leave after it
	Copies    int // rows copied inside memory: those that fill gaps, and loaded ones
	Resident  int // rows in memory while the layer computes
}

// LayerTimes is what one layer of one token costs the host; its reads lie between Predict and
// Memory.
type LayerTimes struct {
	Attention, Predict, Memory, FFN units.Nanos

	Bounded units.Nanos // of them, at the roofline
	Traffic units.Bytes // of memory while computing, for devicemodels.Host.Overlap

	GPU GPUWork // what of it is asked of a GPU; Streams makes times of that
}

// Sum is the time of all parts.
func (t LayerTimes) Sum() units.Nanos { return t.Attention + t.Predict + t.Memory + t.FFN }

// Add returns the sum of two of them, part by part, without what is asked of a GPU.
func (t LayerTimes) Add(o LayerTimes) LayerTimes {
	return LayerTimes{
		Attention: t.Attention + o.Attention, Predict: t.Predict + o.Predict, Memory: t.Memory +
			o.Memory, FFN: t.FFN + o.FFN,
		Bounded: t.Bounded + o.Bounded, Traffic: t.Traffic + o.Traffic,
	}
}

// TokenTimes is what the host spends once per token: the output head, and what holding the cached
// rows costs.
type TokenTimes struct {
	Other, Bounded units.Nanos
	Traffic        units.Bytes

	GPU Stage // the embedding and the output head; Streams makes a time of that
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

// NewHost returns the host of a checked configuration, with the GPU that computes for it if one
// does.
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
		asked:    h.rank > 0,
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

// charge returns what a term takes, and adds up times that are bounds.
func (t *LayerTimes) charge(term devicemodels.Term, bytes units.Bytes, calls int) units.Nanos {
	took := term.Time(bytes, calls)
	if term.Basis == devicemodels.Roofline {
		t.Bounded += took
	}
	return took
}

// Token charges the output head, what else happens once per token, and what holding rows costs.
func (h *Host) Token(held int) TokenTimes {
	if h.gpu != nil {
		ends := h.gpu.ends(h)
		return TokenTimes{Other: h.gpu.inTurn(ends), GPU: ends}
	}
	var t LayerTimes
	weights := h.head.Shape.HeadBytes()
	took := h.spec.TokenFixed + t.charge(h.compute.Dense, weights, 1) + t.charge(h.compute.Held,
		units.Bytes(held)*h.head.UnitBytes, 1)
	return TokenTimes{Other: took, Bounded: t.Bounded, Traffic: weights}
}

// Dense charges a layer whose units are all in memory and all used: one mat-vec for every row of a
// unit. It decides and moves nothing.
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

// Scatter is how long rows take from the staging buffer to their places, apart from compute.
func (h *Host) Scatter(rows int) units.Nanos {
	if rows == 0 {
		return 0
	}
	if h.gpu != nil {
		return h.gpu.inTurn(h.gpu.scatter(h, 0, rows))
	}
	bytes := units.Bytes(rows) * h.head.UnitBytes
	return h.compute.Copy.Time(bytes, rows) + h.compute.Transfer.Time(bytes, 1)
}

// lost is what compute of a time and a traffic loses to what goes on beside it: reads (for no
// longer than the compute, moving bytes and taking some time of single cores) and the moving of
// rows. Memory is shared as devicemodels.Host.Overlap says. A host without an accelerator computes
// on all of its cores: it lacks those that reads take, and moves rows with the memory and the cores
// that it would compute with.
func (h *Host) lost(computing units.Nanos, traffic units.Bytes, beside flash.Progress,
	moving units.Nanos) units.Nanos {
	lost := h.spec.Overlap(beside.Busy, beside.Moved, computing, traffic) - computing
	if h.gpu != nil || h.spec.TransferRate > 0 || h.spec.SyncFixed > 0 || h.spec.HeldRate > 0 {
		return lost // what an accelerator's memory gets, it gets beside its compute
	}
	if h.spec.Cores > 0 {
		lost = max(lost, min(beside.Host/units.Nanos(h.spec.Cores), computing))
	}
	return lost + moving
}

// Overlap is how long a token takes whose reads go on during its compute; see
// devicemodels.Host.Overlap.
func (h *Host) Overlap(io units.Nanos, moved units.Bytes, computing units.Nanos,
	traffic units.Bytes) units.Nanos {
	return h.spec.Overlap(io, moved, computing, traffic)
}

// terms are those that are charged.
func (h *Host) terms() []devicemodels.Term {
	return slices.DeleteFunc(h.compute.Terms(), func(t devicemodels.Term) bool {
		return t.Name == h.compute.Predictor.Name && h.rank == 0
	})
}

// unknown reports whether work is charged as no time.
func (h *Host) unknown() bool {
	return slices.ContainsFunc(h.terms(), func(t devicemodels.Term) bool {
		return t.Basis == devicemodels.Unknown
	})
}

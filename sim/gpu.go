package sim

import (
	"fmt"

	"github.com/windrow-sim/windrow/devicemodels"
	"github.com/windrow-sim/windrow/internal/decisions/launch"
	"github.com/windrow-sim/windrow/internal/units"
)

// Backend says what computes.
type Backend string

// The backends.
const (
	OnHost Backend = ""     // the host's own processors
	OnCUDA Backend = "cuda" // the device model's GPU, as the engine uses it
)

// ParseBackend returns the backend with a name; "cpu" is the host.
func ParseBackend(name string) (Backend, error) {
	switch name {
	case "cpu":
		return OnHost, nil
	case string(OnCUDA):
		return OnCUDA, nil
	}
	return "", fmt.Errorf("sim: no backend is called %q; known are cpu and %s", name, OnCUDA)
}

// Stage is what one part of a layer asks of a GPU.
type Stage struct {
	// of kernels that the engine's events enclose: what engine.DeviceTimes has of it
	Work units.Nanos
	// of what else the stream does for it: small kernels, moves and lists before and behind them
	Around units.Nanos
	Calls  int // of the host
	// Reply is how long what the host waits for takes to it; negative = it does not wait.
	Reply units.Nanos
}

// floatBytes is the size of what comes back from a GPU.
const floatBytes = 4

// noReply: the host does not wait for the end of a stage.
const noReply units.Nanos = -1

// GPUWork is what one layer asks of a GPU. Rows go by another stream than computing.
type GPUWork struct{ Attention, Scatter, FFN Stage }

// gpu charges the stages of a GPU; see the package's documentation for the equations.
type gpu struct {
	spec     *devicemodels.GPU
	compute  devicemodels.Compute
	family   launch.Model
	observed bool
	asked    bool // a predictor on the host wants the input of every feed-forward part
}

// stage is the host's calls beside what they take on the device: work is that of mat-vecs and fused
// kernels.
func (g *gpu) stage(c launch.Calls, work units.Nanos) Stage {
	return Stage{
		Work: work + units.Nanos(c.Small)*g.spec.KernelFixed,
		Around: units.Nanos(c.Around)*g.spec.KernelFixed +
			units.Nanos(c.Lists)*g.spec.TransferFixed,
		Calls: c.All(), Reply: noReply,
	}
}

// watch lets the host wait for a stage where somebody looks at its time.
func (g *gpu) watch(s Stage) Stage {
	if g.observed && s.Reply == noReply && s.Calls > 0 {
		s.Reply = 0
	}
	return s
}

// attention is the four projections and the keys and values of all positions.
func (g *gpu) attention(h *Host, pos int) Stage {
	shape := &h.head.Shape
	s := g.stage(g.family.Attention(), g.compute.Dense.Time(shape.AttentionBytes(),
		4)+g.compute.KV.Time(shape.KVBytes()*units.Bytes(pos+1), 1))
	if g.asked {
		s.Calls++
		s.Reply = g.transfer(units.Bytes(shape.DModel) * floatBytes)
		if g.observed { // waited for attention before it asks for the input
			s.Reply += g.spec.SyncFixed
		}
	}
	return g.watch(s)
}

// transfer is a copy between pinned memory and the device.
func (g *gpu) transfer(b units.Bytes) units.Nanos {
	return g.spec.TransferFixed + g.spec.TransferRate.Time(b)
}

// scatter is rows that close gaps, then rows that were read.
func (g *gpu) scatter(h *Host, moved, loaded int) Stage {
	s := g.stage(launch.Arrive(moved > 0, loaded > 0), 0)
	if moved > 0 { // the engine's events enclose the scatter alone
		s.Around += g.compute.Copy.Time(units.Bytes(moved)*h.head.UnitBytes, 1)
	}
	if loaded > 0 {
		s.Work += g.compute.Transfer.Time(units.Bytes(loaded)*h.head.UnitBytes, 1)
	}
	return g.watch(s)
}

// ffn is a feed-forward part over so many units.
func (g *gpu) ffn(h *Host, need int, fromFlash bool) Stage {
	return g.watch(g.stage(launch.FFN(fromFlash),
		g.compute.Rows.Time(units.Bytes(need)*h.head.UnitBytes, 1)))
}

// ends are the embedding and the output head, whose logits the host waits for.
func (g *gpu) ends(h *Host) Stage {
	begin, head := g.stage(g.family.Begin(), 0), g.stage(launch.Head(),
		g.compute.Dense.Time(h.head.Shape.HeadBytes(), 1))
	return Stage{
		// that list is the logits
		Work: begin.Work + head.Work, Around: begin.Around + head.Around - g.spec.TransferFixed,
		Calls: begin.Calls + head.Calls, Reply: g.transfer(units.Bytes(h.head.Shape.Vocab) *
			floatBytes),
	}
}

// layer charges a layer. The host's parts are those of a token whose stages follow each other, for
// who does not follow the streams.
func (g *gpu) layer(h *Host, pos int, w *Work) (t LayerTimes) {
	t.GPU = GPUWork{Attention: g.attention(h, pos), Scatter: g.scatter(h, w.Copies-w.Loads,
		w.Loads),
		FFN: g.ffn(h, w.Need, true)}
	t.Predict = h.spec.Decide(w.Need) + h.predictor(&t)
	t.Traffic = 0 // of the host's memory
	t.Attention, t.Memory, t.FFN = g.inTurn(t.GPU.Attention), g.inTurn(t.GPU.Scatter),
		g.inTurn(t.GPU.FFN)
	return t
}

// dense charges a layer whose units are all on the device and all used.
func (g *gpu) dense(h *Host, pos int) (t LayerTimes) {
	t.GPU = GPUWork{Attention: g.attention(h, pos), FFN: g.ffn(h, h.head.Units, false)}
	t.Attention, t.FFN = g.inTurn(t.GPU.Attention), g.inTurn(t.GPU.FFN)
	return t
}

// inTurn is what a stage takes beside others of its stream: the device's time or that of asking for
// it, whichever is longer, and with a reply all of the way.
func (g *gpu) inTurn(s Stage) units.Nanos {
	device, asking := s.Work+s.Around, units.Nanos(s.Calls)*g.spec.LaunchFixed
	if s.Reply == noReply {
		return max(device, asking)
	}
	if s.Calls == 0 {
		return 0
	}
	return max(device+g.spec.LaunchFixed, asking) + s.Reply + g.spec.SyncFixed
}

// Streams are the clocks of a GPU beside the host's: when each of its streams is through with what
// it has been asked for. A nil *Streams is a machine without a GPU, whose parts take what
// LayerTimes says.
type Streams struct {
	spec           *devicemodels.GPU
	compute, moves units.Nanos
}

// NewStreams returns the streams of a host's GPU, idle; nil where the host computes itself.
func (h *Host) NewStreams() *Streams {
	if h.gpu == nil {
		return nil
	}
	return &Streams{spec: h.gpu.spec}
}

// Spent is a part on the host's clock: how long it took, and of that how long the host waited for
// the device. Device is the device's own time.
type Spent struct{ Took, Wait, Device units.Nanos }

// ask gives a stage to a stream at a time of the host. The stream begins when the first call has
// come to it and ends neither before the work is done nor before the last call came.
func (s *Streams) ask(stream *units.Nanos, now units.Nanos, g *Stage) (p Spent) {
	if g.Calls == 0 {
		return p
	}
	p.Took, p.Device = units.Nanos(g.Calls)*s.spec.LaunchFixed, g.Work
	*stream = max(max(*stream, now+s.spec.LaunchFixed)+g.Work+g.Around, now+p.Took)
	if g.Reply != noReply {
		*stream += g.Reply
		p.Wait = max(*stream-now-p.Took, 0) + s.spec.SyncFixed
		p.Took += p.Wait
	}
	return p
}

// Attention begins a layer at a time of the host.
func (s *Streams) Attention(now units.Nanos, t *LayerTimes) Spent {
	if s == nil {
		return Spent{Took: t.Attention}
	}
	return s.ask(&s.compute, now, &t.GPU.Attention)
}

// Sync is how long the host waits until the staging buffer may be read into again.
func (s *Streams) Sync(now units.Nanos) units.Nanos {
	if s == nil {
		return 0
	}
	return max(s.moves-now, 0)
}

// Memory is what follows the reads of a layer.
func (s *Streams) Memory(now units.Nanos, t *LayerTimes) Spent {
	if s == nil {
		return Spent{Took: t.Memory}
	}
	return s.ask(&s.moves, now, &t.GPU.Scatter)
}

// FFN ends a layer: it begins on the device when the rows are there.
func (s *Streams) FFN(now units.Nanos, t *LayerTimes) Spent {
	if s == nil {
		return Spent{Took: t.FFN}
	}
	s.compute = max(s.compute, s.moves)
	return s.ask(&s.compute, now, &t.GPU.FFN)
}

// Token ends a token: the host waits for its logits, and with them for everything.
func (s *Streams) Token(now units.Nanos, t *TokenTimes) Spent {
	if s == nil {
		return Spent{Took: t.Other}
	}
	return s.ask(&s.compute, now, &t.GPU)
}

package sim

import (
	"fmt"

	"github.com/windrow-sim/windrow/devicemodels"
	"github.com/windrow-sim/windrow/internal/decisions/launch"
	"github.com/windrow-sim/windrow/internal/units"
)

// Backend names the processor that computes.
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

// Stage is the work of one part of a layer on a GPU.
type Stage struct {
	// of the kernels that engine.DeviceTimes measures
	Work units.Nanos
	// of the other work of the stream: small kernels, row moves, and lists before and after them
	Around units.Nanos
	Calls  int // launches by the host
	// Reply is the device-to-host copy that the host blocks on; negative if it does not block.
	Reply units.Nanos
}

// floatBytes is the size of a value that is copied back from a GPU.
const floatBytes = 4

// noReply is the Reply of a stage that the host does not wait for.
const noReply units.Nanos = -1

// GPUWork is the work of one layer on a GPU. Scatter is on the stream of moves, the others are on
// the stream of compute.
type GPUWork struct{ Attention, Scatter, FFN Stage }

// gpu charges the stages of a GPU. The package documentation has the equations.
type gpu struct {
	spec     *devicemodels.GPU
	compute  devicemodels.Compute
	family   launch.Model
	observed bool
	input    bool // a predictor on the host needs the input of every feed-forward part
}

// stage returns a stage with its launches by the host and its time on the device. work is the time
// of mat-vecs and fused kernels.
func (g *gpu) stage(c launch.Calls, work units.Nanos) Stage {
	return Stage{
		Work: work + units.Nanos(c.Small)*g.spec.KernelFixed,
		Around: units.Nanos(c.Around)*g.spec.KernelFixed +
			units.Nanos(c.Lists)*g.spec.TransferFixed,
		Calls: c.All(), Reply: noReply,
	}
}

// observe makes the host wait for the end of a stage in an observed run.
func (g *gpu) observe(s Stage) Stage {
	if g.observed && s.Reply == noReply && s.Calls > 0 {
		s.Reply = 0
	}
	return s
}

// attention is the stage of the four projections and of the keys and values of all positions.
func (g *gpu) attention(h *Host, pos int) Stage {
	shape := &h.head.Shape
	s := g.stage(g.family.Attention(), g.compute.Dense.Time(shape.AttentionBytes(),
		4)+g.compute.KV.Time(shape.KVBytes()*units.Bytes(pos+1), 1))
	if g.input {
		s.Calls++
		s.Reply = g.transfer(units.Bytes(shape.DModel) * floatBytes)
		if g.observed { // the host waits for attention before it copies the input
			s.Reply += g.spec.SyncFixed
		}
	}
	return g.observe(s)
}

// transfer is the time of a copy between pinned memory and the device.
func (g *gpu) transfer(b units.Bytes) units.Nanos {
	return g.spec.TransferFixed + g.spec.TransferRate.Time(b)
}

// scatter is the stage of rows that fill gaps, then of rows that were read.
func (g *gpu) scatter(h *Host, moved, loaded int) Stage {
	s := g.stage(launch.Arrive(moved > 0, loaded > 0), 0)
	if moved > 0 { // engine.DeviceTimes measures the scatter alone
		s.Around += g.compute.Copy.Time(units.Bytes(moved)*h.head.UnitBytes, 1)
	}
	if loaded > 0 {
		s.Work += g.compute.Transfer.Time(units.Bytes(loaded)*h.head.UnitBytes, 1)
	}
	return g.observe(s)
}

// ffn is the stage of a feed-forward part over need units.
func (g *gpu) ffn(h *Host, need int, fromFlash bool) Stage {
	return g.observe(g.stage(launch.FFN(fromFlash),
		g.compute.Rows.Time(units.Bytes(need)*h.head.UnitBytes, 1)))
}

// ends is the stage of the embedding and the output head. The host waits for the logits.
func (g *gpu) ends(h *Host) Stage {
	begin, head := g.stage(g.family.Begin(), 0), g.stage(launch.Head(),
		g.compute.Dense.Time(h.head.Shape.HeadBytes(), 1))
	return Stage{
		// one of the lists is the copy of the logits, which is the reply
		Work: begin.Work + head.Work, Around: begin.Around + head.Around - g.spec.TransferFixed,
		Calls: begin.Calls + head.Calls, Reply: g.transfer(units.Bytes(h.head.Shape.Vocab) *
			floatBytes),
	}
}

// layer charges a layer. Its host times are those of stages one after the other, for callers that
// do not follow the streams.
func (g *gpu) layer(h *Host, pos int, w *Work) (t LayerTimes) {
	t.GPU = GPUWork{Attention: g.attention(h, pos), Scatter: g.scatter(h, w.Copies-w.Loads,
		w.Loads),
		FFN: g.ffn(h, w.Need, true)}
	t.Predict = h.spec.Decide(w.Need) + h.predictor(&t)
	t.Traffic = 0 // of the host's memory
	t.Attention, t.Memory, t.FFN = g.alone(t.GPU.Attention), g.alone(t.GPU.Scatter),
		g.alone(t.GPU.FFN)
	return t
}

// dense charges a layer whose units are all resident on the device and all used.
func (g *gpu) dense(h *Host, pos int) (t LayerTimes) {
	t.GPU = GPUWork{Attention: g.attention(h, pos), FFN: g.ffn(h, h.head.Units, false)}
	t.Attention, t.FFN = g.alone(t.GPU.Attention), g.alone(t.GPU.FFN)
	return t
}

// alone is the time of a stage on an idle stream: the device's time or the time of the launches,
// whichever is longer. With a reply it includes the whole way to the host.
func (g *gpu) alone(s Stage) units.Nanos {
	device, launches := s.Work+s.Around, units.Nanos(s.Calls)*g.spec.LaunchFixed
	if s.Reply == noReply {
		return max(device, launches)
	}
	if s.Calls == 0 {
		return 0
	}
	return max(device+g.spec.LaunchFixed, launches) + s.Reply + g.spec.SyncFixed
}

// Streams are the clocks of a GPU: the time at which each of its streams is idle. A nil *Streams
// stands for a machine without a GPU, whose parts take the times of LayerTimes.
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

// Spent is the time of a part: Took on the host's clock, the part of it that the host waited for
// the device, and Device on the device's clock.
type Spent struct{ Took, Wait, Device units.Nanos }

// launch starts a stage on a stream at a time of the host. The stream begins when the first call
// has reached it. It ends when the work is done and the last call has reached it.
func (s *Streams) launch(stream *units.Nanos, now units.Nanos, g *Stage) (p Spent) {
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
	return s.launch(&s.compute, now, &t.GPU.Attention)
}

// Sync is how long the host waits at a time until the staging buffer is free again.
func (s *Streams) Sync(now units.Nanos) units.Nanos {
	if s == nil {
		return 0
	}
	return max(s.moves-now, 0)
}

// Memory starts the row copies of a layer, after its reads.
func (s *Streams) Memory(now units.Nanos, t *LayerTimes) Spent {
	if s == nil {
		return Spent{Took: t.Memory}
	}
	return s.launch(&s.moves, now, &t.GPU.Scatter)
}

// FFN ends a layer. It starts on the device when the rows are in place.
func (s *Streams) FFN(now units.Nanos, t *LayerTimes) Spent {
	if s == nil {
		return Spent{Took: t.FFN}
	}
	s.compute = max(s.compute, s.moves)
	return s.launch(&s.compute, now, &t.GPU.FFN)
}

// Token ends a token. The host waits for its logits, which are the last work of the device.
func (s *Streams) Token(now units.Nanos, t *TokenTimes) Spent {
	if s == nil {
		return Spent{Took: t.Other}
	}
	return s.launch(&s.compute, now, &t.GPU)
}

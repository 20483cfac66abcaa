package cuda

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/windrow-sim/windrow/engine"
	"github.com/windrow-sim/windrow/engine/model"
	"github.com/windrow-sim/windrow/internal/units"
	kernels "github.com/windrow-sim/windrow/kernels/cuda"
)

// Options configure a device. The zero value is usable.
type Options struct {
	Memory units.Bytes // of the device that may be used; 0 = all
	// Library is the file name of the driver's library, for Open; empty = the driver of this build
	// (kernels/cuda.OpenDriver).
	Library string
}

// Backend is a model on a device: an engine.Backend, and the engine.Store of its rows.
type Backend struct {
	device  *kernels.Device
	kernels *kernels.Kernels
	opt     Options
	w       *model.Weights
	f       kernels.Activation
	used    atomic.Int64 // bytes of device memory

	compute, moves kernels.Stream
	lasting        scope // weights and lists
	weights        weights
	rows           []*rows    // by layer
	moving         sync.Mutex // reads in the background and on demand both move rows
	moveLists      *lists
	buffers        []staging

	clock clock

	work *work // nil until an engine prepares
	err  error // the first since Reset
}

// work holds the device memory of one engine's steps.
type work struct {
	scope
	setup                          *engine.Setup
	resident                       []int // layers whose rows this engine has copied to the device
	check                          []*rows
	x, h, out, q, att, k, v        kernels.Mem // (tokens, …) float32
	act, wide, logits, spare, all  kernels.Mem
	sums, heads                    kernels.Mem // room of FFN and Attention
	truth, rotary, local           kernels.Mem
	keys, vals                     kernels.Mem // (layer, sequence, context, kv_heads, head_dim)
	ids, positions, seqIDs         kernels.Mem // (tokens) int32
	lists                          *lists
	longest                        int // above every position of the step
	features                       [engine.FeatureKinds]feature
	hostLogits, hostAct, hostTruth []byte
	haveLogits                     bool
}

// feature is a feature of all tokens of a step, on the device and on the host.
type feature struct {
	at   kernels.Mem // (tokens, d_model) float32; FFNInput is h itself
	host []byte
	have bool
}

// Open takes an NVIDIA device of the machine into use for a model. Without one the error is
// kernels/cuda's ErrEnvironment and says what is missing.
func Open(w *model.Weights, opt Options) (*Backend, error) {
	open := kernels.OpenDriver
	if opt.Library != "" {
		open = func() (kernels.Driver, error) { return kernels.OpenLibrary(opt.Library) }
	}
	driver, err := open()
	if err != nil {
		return nil, err
	}
	d, err := kernels.Open(driver, 0)
	if err != nil {
		return nil, err
	}
	return New(d, w, opt)
}

// New copies a model's resident weights to a device of any driver. The Backend owns the device from
// then on; New closes it on an error.
func New(d *kernels.Device, w *model.Weights, opt Options) (*Backend, error) {
	b := &Backend{device: d, opt: opt, w: w, rows: make([]*rows, w.Shape.Layers)}
	b.lasting.b = b
	if err := b.open(); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return b, nil
}

func (b *Backend) open() (err error) {
	if b.f, err = activation(b.w.Arch.Activation); err != nil {
		return err
	}
	if b.kernels, err = kernels.NewKernels(b.device); err != nil {
		return err
	}
	if b.compute, err = b.device.NewStream(); err != nil {
		return err
	}
	if b.moves, err = b.device.NewStream(); err != nil {
		return err
	}
	s := &b.lasting
	b.clock.device = b.device
	for i := range b.clock.events {
		b.clock.events[i] = s.event(true)
	}
	b.weights = s.weights(b.w)
	// Of a unit: the places of a move, or offset and place of an arrival.
	const perUnit = 24
	b.moveLists = s.lists(b.moves, roomy(int64(perUnit*b.w.Shape.DFFN), b.w.Shape.Layers))
	if s.err != nil {
		return s.err
	}
	return b.device.SyncStream(b.compute)
}

// roomy is the size of lists for all layers of a step, or for as many as stay within a bound.
func roomy(layer int64, layers int) int64 {
	const bound, least = 64 << 20, 4096
	return max(min(layer*int64(layers), bound), 2*layer, least)
}

// Device describes the device.
func (b *Backend) Device() kernels.Facts { return b.device.Facts }

// Name is the device's.
func (b *Backend) Name() string { return b.device.Facts.Name }

// Close frees everything, and the device.
func (b *Backend) Close() error { return b.device.Close() }

// Prepare implements engine.Backend, like all that follow.
func (b *Backend) Prepare(s *engine.Setup) error {
	switch {
	case b.work != nil:
		return errors.New("engine/cuda: the backend serves an engine already; close that first")
	case s.Weights != b.w:
		return errors.New("engine/cuda: the backend holds the weights of another model")
	}
	b.work, b.err = &work{scope: scope{b: b}, setup: s}, nil
	if err := b.prepare(); err != nil {
		return errors.Join(err, b.Release())
	}
	return nil
}

func (b *Backend) prepare() error {
	w, s := b.work, b.w.Shape
	n, arch := w.setup.Batch, &b.w.Arch
	qDim, kvDim := s.Heads*s.HeadDim, s.KVHeads*s.HeadDim
	w.x, w.h, w.out, w.spare = w.floats(n, s.DModel), w.floats(n, s.DModel), w.floats(n, s.DModel),
		w.floats(n, s.DModel)
	w.q, w.att, w.k, w.v = w.floats(n, qDim), w.floats(n, qDim), w.floats(n, kvDim),
		w.floats(n, kvDim)
	w.act, w.logits = w.floats(n, s.DFFN), w.floats(n, s.Vocab)
	if arch.Embed != s.DModel {
		w.wide = w.floats(n, arch.Embed)
	}
	w.sums, w.heads = w.room(kernels.FFNScratch(s.DFFN, s.DModel, n)),
		w.room(kernels.AttentionScratch(s.Heads, s.HeadDim, n, w.setup.Context))
	w.keys = w.floats(s.Layers, w.setup.Sequences, w.setup.Context, kvDim)
	w.vals = w.floats(s.Layers, w.setup.Sequences, w.setup.Context, kvDim)
	w.rotary, w.local = w.table(arch.Rotary), w.table(arch.LocalRotary)
	w.hostLogits, w.hostAct = w.pinned(int64(4*n*s.Vocab)), w.pinned(int64(4*n*s.DFFN))
	w.features[engine.FFNInput] = feature{at: w.h, host: w.pinned(int64(4 * n * s.DModel))}
	for k, kept := range w.setup.Kept {
		if kept {
			w.features[k] = feature{at: w.floats(n, s.DModel),
				host: w.pinned(int64(4 * n * s.DModel))}
		}
	}
	masks := int64(n) * kernels.MaskBytes(s.DFFN)
	if w.setup.Check != nil {
		w.all, w.truth, w.hostTruth = w.floats(n, s.DFFN), w.room(masks), w.pinned(masks)
	}
	// Of a layer: units, places and masks; of a step three numbers of each token.
	w.lists = w.scope.lists(b.compute, roomy(int64(8*s.DFFN)+masks+int64(3*4*n)+256, s.Layers))
	if w.allows(b.rowBytes()); w.err != nil {
		return w.err
	}
	return b.copyRows()
}

// table puts the cosines and sines of rotary positions on the device.
func (w *work) table(r model.Rotary) kernels.Mem {
	table := kernels.RotaryTable(r.Frequencies(w.setup.Context), w.setup.Context)
	for i := range table {
		table[i] *= float32(r.Size())
	}
	return w.bytes(kernels.AsBytes(table))
}

// rowBytes returns the device memory that bringRows needs.
func (b *Backend) rowBytes() (sum int64) {
	for _, layers := range [][][]engine.Row{b.work.setup.Resident, b.work.setup.Check} {
		for _, list := range layers {
			sum += int64(len(list)) * int64(b.w.RecordBytes())
		}
	}
	return sum
}

// copyRows copies the rows of resident layers, and those of Config.Check, to the device.
func (b *Backend) copyRows() error {
	const portion = 8 << 20
	record := int64(b.w.RecordBytes()) + 16
	staging, err := b.Staging(max(record, min(portion, record*int64(b.w.Shape.DFFN))))
	if err != nil {
		return err
	}
	err = b.copyAll(staging)
	return errors.Join(err, b.FreeStaging(staging))
}

func (b *Backend) copyAll(staging []byte) error {
	w := b.work
	for l, list := range w.setup.Resident {
		if list == nil {
			continue
		}
		r, err := b.newRows(len(list))
		if err != nil {
			return err
		}
		b.rows[l], w.resident = r, append(w.resident, l)
		if err := b.fill(r, list, staging); err != nil {
			return err
		}
	}
	for _, list := range w.setup.Check {
		r, err := b.newRows(len(list))
		if err != nil {
			return err
		}
		w.check = append(w.check, r)
		if err := b.fill(r, list, staging); err != nil {
			return err
		}
	}
	return nil
}

// Release frees the memory of Prepare.
func (b *Backend) Release() error {
	w := b.work
	if w == nil {
		return nil
	}
	errs := []error{w.free()}
	for _, l := range w.resident {
		errs = append(errs, b.rows[l].free())
		b.rows[l] = nil
	}
	for _, r := range w.check {
		errs = append(errs, r.free())
	}
	b.work = nil
	return errors.Join(errs...)
}

// Reset waits for running work. A lost device stays lost.
func (b *Backend) Reset() {
	err := b.device.Synchronize()
	if b.err = err; !errors.Is(err, kernels.ErrLost) {
		b.err = nil
	}
}

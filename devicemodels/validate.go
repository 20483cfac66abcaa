package devicemodels

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/windrow-sim/windrow/devicemodels/flash"
)

// Validate returns all impossible values of d, one line per field with its path and value, wrapping
// ErrFormat. A rate of 0 means "no limit" in the flash and "not known" in the host. A zero host
// means that the device is a drive alone.
func (d *Device) Validate() error {
	return errors.Join(d.faults()...)
}

// faults are the errors of Validate.
func (d *Device) faults() []error {
	var v validator
	v.want(d.Version == FormatVersion, "version", d.Version,
		"is not supported; this program reads "+FormatVersion)
	v.want(d.Name != "", "name", d.Name, "is empty; give the machine a name")
	v.want(d.Source != "", "source", d.Source, "is empty; say where the numbers come from")
	for _, path := range slices.Sorted(maps.Keys(d.Sources)) {
		t, stopped, known := fieldType(reflect.TypeFor[Device](), path)
		v.want(t != nil, "sources", path, "is not a field of a device: "+suggest(stopped, known))
	}
	v.flash(&d.Flash)
	v.host(&d.Host)
	if d.GPU != nil {
		v.gpu(d.GPU)
		v.want(d.Sources["gpu"] != "", "sources", "gpu", "is missing; say where the numbers of "+
			"the GPU come from")
	}
	if d.Fit != nil {
		v.fit(d.Fit)
	}
	for i, c := range d.Calibrated {
		path := fmt.Sprintf("calibrated[%d]", i)
		t, stopped, known := fieldType(reflect.TypeFor[Device](), c.Term)
		v.want(t != nil, path+".term", c.Term, "is not a field of a device: "+suggest(stopped,
			known))
		v.want(len(c.Rows) > 0, path+".rows", len(c.Rows), "rows; name at least one")
	}
	return v.errs
}

type validator struct{ errs []error }

func (v *validator) want(ok bool, path string, value any, why string) {
	if !ok {
		v.errs = append(v.errs, &fault{path, fmt.Sprintf("%v %s", quote(value), why)})
	}
}

// fault is an impossible value of a field.
type fault struct{ path, text string }

func (f *fault) Error() string { return fmt.Sprintf("%s: %s: %v", f.path, f.text, ErrFormat) }
func (f *fault) Unwrap() error { return ErrFormat }

func quote(value any) any {
	if s, ok := value.(string); ok {
		return fmt.Sprintf("%q", s)
	}
	return value
}

func (v *validator) flash(f *flash.Spec) {
	within(v, "flash.servers", f.Servers, serverRange)
	v.duration("flash.ltfb", f.LTFB)
	v.rate("flash.server_rate", f.ServerRate)
	v.rate("flash.link_rate", f.LinkRate)
	within(v, "flash.max_iops", f.MaxIOPS, iopsRange)
	v.want(f.LTFB > 0 || f.ServerRate > 0 || f.LinkRate > 0 || f.MaxIOPS > 0,
		"flash", f.LTFB, "of latency and no limit at all: reads would take no time")
	v.want(f.Placement == "" || f.Placement == flash.PlaceAny ||
		f.Placement == flash.PlaceByAddress || f.Placement == flash.PlaceInRounds,
		"flash.placement", string(f.Placement), "is not a placement; write any, address or rounds")
	v.bytes("flash.stripe", f.Stripe)
	within(v, "flash.queue_depth", f.QueueDepth, queueRange)
	within(v, "flash.page", f.Page, pageRange)
	if f.MaxTransfer != 0 { // 0 = no limit
		within(v, "flash.max_transfer", f.MaxTransfer, pieceRange)
	}
	v.parts(f)
	v.want(f.Align&(f.Align-1) == 0, "flash.align", f.Align, "is not a power of two")
	within(v, "flash.align", f.Align, blockRange)
	v.want(len(f.Engines) > 0, "flash.engines", len(f.Engines),
		"engines; name at least one, for example pread")
	for _, name := range slices.Sorted(maps.Keys(f.Engines)) {
		path, cost := "flash.engines."+name, f.Engines[name]
		v.want(name != "", "flash.engines", name, "is no engine name")
		v.duration(path+".batch", cost.Batch)
		v.duration(path+".submit", cost.Submit)
		v.duration(path+".complete", cost.Complete)
	}
}

// parts checks the optional parts of a flash device.
func (v *validator) parts(f *flash.Spec) {
	if l := f.Limit; l != nil {
		v.rate("flash.limit.rate", l.Rate)
		within(v, "flash.limit.iops", l.IOPS, iopsRange)
		v.want(l.Rate > 0 || l.IOPS > 0, "flash.limit", l.Rate,
			"and no limit on requests: leave it out")
		v.duration("flash.limit.interval", l.Interval)
		v.bytes("flash.limit.burst", l.Burst)
	}
	for i, s := range f.Spans {
		path := fmt.Sprintf("flash.spans[%d]", i)
		v.bytes(path+".within", s.Within)
		v.want(s.Within > 0 || i == len(f.Spans)-1, path+".within", s.Within,
			"stands for any spread and comes last")
		v.want(i == 0 || s.Within == 0 || s.Within > f.Spans[i-1].Within, path+".within", s.Within,
			"is not larger than the one before")
		within(v, path+".max_iops", s.MaxIOPS, iopsRange)
		v.duration(path+".extra_ltfb", s.ExtraLTFB)
	}
	if s := f.Sustained; s != nil {
		v.period("flash.sustained.cliff", s.Cliff)
		within(v, "flash.sustained.factor", s.Factor, factorRange)
		v.period("flash.sustained.cool", s.Cool)
	}
	if b := f.Background; b != nil {
		v.rate("flash.background.rate", b.Rate)
		within(v, "flash.background.chunk", b.Chunk, blockRange)
		v.others(b.Rate, b.Chunk)
		v.want(f.LinkRate == 0 || b.Rate < f.LinkRate, "flash.background.rate", b.Rate,
			"is all of the link or more: nothing would be left")
	}
	if p := f.PageCache; p != nil {
		v.bytes("flash.page_cache.capacity", p.Capacity)
		within(v, "flash.page_cache.read_ahead", p.ReadAhead, blockRange)
		v.duration("flash.page_cache.fault", p.Fault)
		v.rate("flash.page_cache.fill_rate", p.FillRate)
		v.rate("flash.page_cache.hit_rate", p.HitRate)
		v.want(p.Advice == flash.AdviseNormal || p.Advice == flash.AdviseRandom ||
			p.Advice == flash.AdviseSequential, "flash.page_cache.advice", p.Advice,
			"is not random or sequential; leave it out for no advice")
		within(v, "flash.page_cache.threads", p.Threads, readerRange)
		v.duration("flash.page_cache.map", p.Map)
		v.rate("flash.page_cache.reclaim_rate", p.ReclaimRate)
	}
	for _, name := range slices.Sorted(maps.Keys(f.Engines)) {
		v.want(!f.Engines[name].Cached || f.PageCache != nil, "flash.engines."+name+".cached", true,
			"needs flash.page_cache")
	}
}

func (v *validator) host(h *Host) {
	if reflect.ValueOf(*h).IsZero() {
		return
	}
	within(v, "host.cores", h.Cores, CoreRange)
	v.rate("host.memory_rate", h.MemoryRate)
	v.rate("host.dense_rate", h.DenseRate)
	v.duration("host.dense_fixed", h.DenseFixed)
	v.rate("host.row_rate", h.RowRate)
	v.duration("host.row_fixed", h.RowFixed)
	v.rate("host.copy_rate", h.CopyRate)
	v.duration("host.copy_fixed", h.CopyFixed)
	v.rate("host.kv_rate", h.KVRate)
	v.duration("host.layer_fixed", h.LayerFixed)
	v.duration("host.token_fixed", h.TokenFixed)
	v.duration("host.decide_fixed", h.DecideFixed)
	v.duration("host.decide_unit", h.DecideUnit)
	v.accelerator(h)
	_, known := weightBytes(h.base())
	v.want(known, "host.precision", h.Precision, "is no precision; write f16, bf16, f32 or q8")
	v.precisions("host", h.Precisions, h.base())
}

// precisions checks the rates for other weights of a host or a GPU, whose rates are of base.
func (v *validator) precisions(of string, list map[string]Precision, base string) {
	for _, name := range slices.Sorted(maps.Keys(list)) {
		path, p := of+".precisions."+name, list[name]
		_, known := weightBytes(name)
		v.want(known && name != base, of+".precisions", name, "is not another precision than "+base+
			"; the known ones are f16, bf16, f32 and q8")
		v.rate(path+".dense_rate", p.DenseRate)
		v.rate(path+".row_rate", p.RowRate)
		v.want(p != (Precision{}), path, p.DenseRate, "and no row_rate either: leave it out")
	}
}

// accelerator checks the optional parts of a host.
func (v *validator) accelerator(h *Host) {
	within(v, "host.compute_gflops", h.ComputeGFLOPS, gflopsRange)
	v.rate("host.predictor_rate", h.PredictorRate)
	v.rate("host.transfer_rate", h.TransferRate)
	v.duration("host.transfer_fixed", h.TransferFixed)
	v.want(h.TransferFixed <= 0 || h.TransferRate != 0, "host.transfer_fixed", h.TransferFixed,
		"needs host.transfer_rate")
	v.duration("host.sync_fixed", h.SyncFixed)
	v.rate("host.held_rate", h.HeldRate)
	within(v, "host.io_contention", h.IOContention, contentionRange)
	v.want(!(h.IOContention > 0) || h.MemoryRate > 0, "host.io_contention", h.IOContention,
		"needs host.memory_rate")
}

func (v *validator) fit(f *Fit) {
	if f.When != "" {
		_, err := time.Parse(time.RFC3339, f.When)
		v.want(err == nil, "fit.when", f.When, "is not a time like 2006-01-02T15:04:05Z")
	}
	within(v, "fit.chunk_min", f.ChunkMin, chunkRange)
	v.want(f.ChunkMax >= f.ChunkMin, "fit.chunk_max", f.ChunkMax, "is less than fit.chunk_min")
	within(v, "fit.chunk_max", f.ChunkMax, chunkRange)
	within(v, "fit.depth_min", f.DepthMin, depthRange)
	v.want(f.DepthMax >= f.DepthMin, "fit.depth_max", f.DepthMax, "is less than fit.depth_min")
	within(v, "fit.depth_max", f.DepthMax, depthRange)
	v.percent("fit.mean_abs_percent", f.MeanAbsPct)
	v.percent("fit.worst_abs_percent", f.WorstAbsPct)
	v.percent("fit.drift_percent", f.DriftPct)
	for path, p := range map[string]*float64{"fit.leave_one_out_percent": f.LeaveOneOutPct,
		"fit.interval_percent": f.IntervalPct, "fit.host_interval_percent": f.HostPct} {
		if p != nil {
			v.percent(path, *p)
		}
	}
	within(v, "fit.cells", len(f.Cells), cellsRange)
	for i, c := range f.Cells {
		path := fmt.Sprintf("fit.cells[%d]", i)
		v.want(c.Engine != "", path+".engine", c.Engine, "is no engine name")
		within(v, path+".chunk", c.Chunk, chunkRange)
		within(v, path+".depth", c.Depth, depthRange)
		within(v, path+".reads", c.Reads, countRange)
		v.want(c.Rate > 0 || c.Tainted != "", path+".rate", c.Rate, "is no measurement")
		v.rate(path+".rate", c.Rate)
		v.want(c.RateLow <= c.RateHigh, path+".rate_low", c.RateLow, "is more than rate_high")
		v.rate(path+".rate_low", c.RateLow)
		v.rate(path+".rate_high", c.RateHigh)
		v.rate(path+".model", c.Model)
		v.duration(path+".p50", c.P50)
		v.duration(path+".p99", c.P99)
	}
}

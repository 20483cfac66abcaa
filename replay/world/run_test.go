package world

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/windrow-sim/windrow/engine"
	"github.com/windrow-sim/windrow/engine/flashio"
	"github.com/windrow-sim/windrow/internal/decisions/layout"
	"github.com/windrow-sim/windrow/internal/decisions/memory"
	"github.com/windrow-sim/windrow/internal/decisions/schedule"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/replay"
	"github.com/windrow-sim/windrow/sim"
	"github.com/windrow-sim/windrow/traces"
)

// outcome is the result of a case. Two runs of one case have equal outcomes.
type outcome struct {
	Kind     kind
	Findings []string    // what must not be
	Err      string      // of the engine
	Steps    int         // that were right
	End      units.Nanos // virtual
	Calls    int         // of pread
	Read     units.Bytes
}

// kind says how a case ended.
type kind string

// The kinds.
const (
	exact     kind = "exact"     // without faults, in the simulated time
	late      kind = "late"      // right, in spite of faults
	failed    kind = "failed"    // with an error, from which it recovered if the file did
	cancelled kind = "cancelled" // before its end
)

// world is one run.
type world struct {
	c      *Case
	w      *weights
	steps  []step
	trace  *traces.Memory
	need   *memory.Need
	run    *traces.Run // simulated
	result outcome

	disk    *disk
	reader  *witness
	plain   []plainWindow
	before  []units.Nanos   // cost of the host before each step
	after   [][]units.Nanos // after each layer of each step
	at      int             // the step
	events  []engine.LayerEvent
	started time.Time
}

// run runs a case. An error says that the case itself is not one. What panics here is found, also
// that the bubble hangs; what panics on a goroutine of the engine ends the program.
func (c *Case) run(t *testing.T) (got outcome, err error) {
	w := &world{}
	defer func() {
		if p := recover(); p != nil {
			w.find("panic: %v", p)
			got, err = w.result, nil
		}
	}()
	if w, err = c.world(); err != nil {
		return outcome{}, err
	}
	held := flashio.BuffersInUse()
	w.inBubble(t)
	if left := flashio.BuffersInUse() - held; left != 0 {
		w.find("%d bytes of buffers were not freed", left)
	}
	return w.result, nil
}

// world makes all that needs no time.
func (c *Case) world() (*world, error) {
	list, err := models()
	if err != nil {
		return nil, err
	}
	w := &world{c: c, w: list[c.Model], plain: plainOf(c.Policy, len(list[c.Model].bundles))}
	if w.steps, err = c.play(w.w); err != nil {
		return nil, err
	}
	w.trace = c.trace(w.w, w.steps)
	if w.need, err = memory.NeedOf(traces.MaskTrace(w.trace, w.trace.Tokens(), false),
		memory.Reads{Geometry: w.w.geo, Layout: c.Layout, Dense: c.Schedule.Dense},
		c.Policy); err != nil {
		return nil, err
	}
	if w.run, err = sim.Run(context.Background(), w.trace, sim.Config{Policy: c.Policy,
		Engine: engineName, Parallel: c.Parallel, Schedule: sim.Replayed(c.Schedule),
		Layout: c.Layout, Device: c.device(), Geometry: w.w.geo}); err != nil {
		return nil, err
	}
	w.costs()
	return w, nil
}

// costs are the times of the host in the simulated run. What comes before the first wait of a step
// is spent before the step, the rest after the layer that it follows.
func (w *world) costs() {
	layers, perStep := len(w.w.bundles), len(w.run.Rows)/len(w.steps)
	for i := range w.steps {
		var before units.Nanos
		after := make([]units.Nanos, layers)
		for _, r := range w.run.Rows[i*perStep : (i+1)*perStep] {
			early := r.Layer == 0 && (r.Part <= traces.PartPredict ||
				w.c.Schedule.Kind == schedule.Token)
			switch {
			case r.Part == traces.PartIO:
			case early:
				before += r.Dur
			case r.Part == traces.PartOther:
				after[layers-1] += r.Dur
			case r.Part <= traces.PartPredict: // beside the next layer's prefetches
				after[r.Layer-1] += r.Dur
			default:
				after[r.Layer] += r.Dur
			}
		}
		w.before, w.after = append(w.before, before), append(w.after, after)
	}
}

// inBubble runs the case.
func (w *world) inBubble(t *testing.T) {
	synctest.Test(t, func(*testing.T) {
		w.started = time.Now()
		if err := w.drive(); err != nil {
			w.result.Err = err.Error()
		}
		w.result.End = units.Nanos(time.Since(w.started))
		if w.disk != nil {
			w.result.Calls, w.result.Read = w.disk.count, w.disk.moved
			w.result.Findings = append(w.result.Findings, w.disk.wrong...)
			w.result.Findings = append(w.result.Findings, w.reader.wrong...)
		}
	})
}

func (w *world) find(format string, args ...any) {
	w.result.Findings = append(w.result.Findings, fmt.Sprintf(format, args...))
}

// open makes the disk and the reader.
func (w *world) open() error {
	c := w.c
	cfg := sim.Config{Engine: engineName, Parallel: c.Parallel, Device: c.device(),
		Geometry: w.w.geo}
	station, err := cfg.NewStation(c.Seed)
	if err != nil {
		return err
	}
	w.disk = newDisk(c, w.w.file, station)
	opt := flashio.SourceOptions{Path: diskPath, Size: int64(len(w.w.file)),
		Align: max(c.Layout.Align, 1), Threads: c.Parallel}
	var reader flashio.Reader
	if c.Ring {
		reader, err = openRing(c, w.disk, opt)
	} else {
		reader, err = flashio.NewPool(w.disk, opt)
	}
	if err != nil {
		return err
	}
	w.reader = &witness{Reader: reader, geo: w.w.geo, chunk: c.Layout.MaxRequest,
		layers: make([]asked, len(w.w.bundles)), closed: func() {}}
	return nil
}

func (w *world) replayConfig() replay.Config {
	return replay.Config{Policy: w.c.Policy, Schedule: w.c.Schedule, Layout: w.c.Layout,
		Threads: w.c.Threads, Seed: w.c.Seed,
		Bundles: func(l int) ([]byte, error) { return w.w.bundles[l], nil }}
}

// drive runs the case in the bubble and checks how it ended.
func (w *world) drive() error {
	if err := w.open(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if w.c.Cancel > 0 {
		timer := time.AfterFunc(time.Duration(w.c.Cancel), cancel)
		defer timer.Stop()
	}
	if w.c.Replay {
		return w.replay(ctx)
	}
	rows, _, err := replay.NewFlash(w.trace, w.trace.Tokens(), w.w.model, w.w.geo, w.reader,
		w.replayConfig())
	if err != nil {
		w.find("opening: %v", err)
		return errors.Join(err, w.reader.Close())
	}
	observer := &watcher{w: w, ctx: ctx}
	e, err := engine.New(w.w.model, rows, w.c.engineConfig(w.c.Threads, observer,
		w.c.predictors()))
	if err != nil {
		w.find("opening: %v", err)
		return errors.Join(err, rows.Close())
	}
	err = w.forward(e)
	w.judge(err)
	if err != nil && ctx.Err() == nil && w.c.Faults.Truncated == 0 {
		// The file is well again: from a reset on, everything is right.
		w.disk.heal()
		w.at = 0
		if again := w.forward(e); again != nil {
			w.find("after a reset: %v", again)
		}
	}
	begun := w.reader.begun()
	e.Close()
	if closing := rows.Close(); closing != nil {
		w.find("closing: %v", closing)
	}
	if more := w.reader.begun() - begun; more > 1 {
		w.find("closing reads %d batches more", more)
	}
	w.budget()
	return err
}

// forward runs the steps from w.at on. An error is the engine's.
func (w *world) forward(e *engine.Engine) error {
	for ; w.at < len(w.steps); w.at++ {
		st := &w.steps[w.at]
		if st.reset {
			w.plain = plainOf(w.c.Policy, len(w.w.bundles))
			begun := w.reader.begun()
			if e.Reset(); w.reader.begun() > begun+1 {
				w.find("step %d: a reset reads %d batches more", w.at, w.reader.begun()-begun)
			}
			w.reader.take()
		}
		w.events = w.events[:0]
		sleep(w.before[w.at])
		logits, err := st.run(e)
		if err != nil {
			return err
		}
		w.check(st, logits)
		w.result.Steps++
	}
	return nil
}

func sleep(d units.Nanos) {
	if d > 0 {
		time.Sleep(time.Duration(d))
	}
}

// watcher keeps a step's events, spends the host's time and passes cancellation on.
type watcher struct {
	w   *world
	ctx context.Context
}

func (o *watcher) Layer(ev *engine.LayerEvent) error {
	if ev.Entry > 0 {
		return nil
	}
	o.w.events = append(o.w.events, *ev)
	sleep(o.w.after[o.w.at][ev.Layer])
	return o.ctx.Err()
}

func (o *watcher) Token(*engine.TokenEvent) error { return nil }

// exact reports whether the simulator must tell the engine's times.
func (w *world) exact() bool { return w.c.Faults == Faults{} && w.result.Err == "" }

// check compares a step with the dense engine, the simulator and the plain twin.
func (w *world) check(st *step, logits [][]float32) {
	for i := range logits {
		if !slices.Equal(bits(logits[i]), st.logits[i]) {
			w.find("step %d, token %d: other logits than the dense engine's", w.at, i)
		}
	}
	perStep := len(w.run.Rows) / len(w.steps)
	rows := w.run.Rows[w.at*perStep : (w.at+1)*perStep]
	read := w.reader.take()
	for l := range w.events {
		w.checkLayer(st, &w.events[l], &read[l], rows)
	}
	last := rows[perStep-1]
	if now := units.Nanos(time.Since(w.started)); w.exact() && now != last.Start+last.Dur {
		w.find("step %d ends at %d ns, simulated at %d", w.at, now, last.Start+last.Dur)
	}
}

func (w *world) checkLayer(st *step, ev *engine.LayerEvent, read *asked, rows []traces.RunRow) {
	where := fmt.Sprintf("step %d, layer %d", w.at, ev.Layer)
	var want traces.RunRow // the sum over the parts
	for _, r := range rows {
		if int(r.Layer) == ev.Layer {
			want.Hits, want.Misses, want.Evictions = want.Hits+r.Hits, want.Misses+r.Misses,
				want.Evictions+r.Evictions
			want.Requests += r.Requests
			if r.Part == traces.PartIO {
				want.Bytes, want.Dur = want.Bytes+r.Bytes, want.Dur+r.Dur
			}
		}
	}
	got := traces.RunRow{Hits: uint32(ev.Hits), Misses: uint32(ev.Misses),
		Evictions: uint32(ev.Evictions), Requests: uint32(ev.Requests), Bytes: ev.Bytes,
		Dur: ev.IO.Dur}
	if !w.exact() {
		got.Dur, want.Dur = 0, 0
	}
	if got != want {
		w.find("%s: hits %d, misses %d, evictions %d, requests %d, bytes %d, waited %d; "+
			"simulated %d, %d, %d, %d, %d, %d", where, got.Hits, got.Misses, got.Evictions,
			got.Requests, got.Bytes, got.Dur, want.Hits, want.Misses, want.Evictions,
			want.Requests, want.Bytes, want.Dur)
	}
	if read.requests != ev.Requests || read.bytes != ev.Bytes {
		w.find("%s: %d requests of %d bytes were read, %d of %d are told", where, read.requests,
			read.bytes, ev.Requests, ev.Bytes)
	}
	record := w.w.geo.Record
	if w.c.Layout.Align == 1 && w.c.Layout.Gap == 0 && w.w.geo.Stride == record &&
		ev.Bytes != units.Bytes(ev.Misses)*record {
		w.find("%s: %d bytes for %d misses of %d", where, ev.Bytes, ev.Misses, record)
	}
	w.checkPlain(st, ev, read, where)
}

// checkPlain compares a layer with the plain twin of its policy: the counts, and that the file was
// read where the missing records are.
func (w *world) checkPlain(st *step, ev *engine.LayerEvent, read *asked, where string) {
	if w.plain == nil || ev.Layer < w.c.Schedule.Dense {
		return
	}
	load, hits, evictions := w.plain[ev.Layer].step(st.need[ev.Layer], w.w.geo.Units)
	if hits != ev.Hits || len(load) != ev.Misses || evictions != ev.Evictions {
		w.find("%s: %d hits, %d misses, %d evictions; a plain window has %d, %d, %d", where,
			ev.Hits, ev.Misses, ev.Evictions, hits, len(load), evictions)
	}
	list := merged(read.extents)
	for _, u := range load {
		from := w.w.geo.Base[ev.Layer] + int64(u)*int64(w.w.geo.Stride)
		if !covers(list, extent{from, from + int64(w.w.geo.Record)}) {
			w.find("%s: unit %d was not read", where, u)
			return
		}
	}
}

// judge says whether an error, or none, is right for the faults of the file.
func (w *world) judge(err error) {
	f := w.c.Faults
	canceled := errors.Is(err, context.Canceled)
	switch {
	case err == nil && w.exact():
		w.result.Kind = exact
	case err == nil:
		w.result.Kind = late
	case canceled:
		w.result.Kind = cancelled
	default:
		w.result.Kind = failed
	}
	switch {
	case err == nil:
		if f.Truncated > 0 && w.disk.count >= f.Truncated && w.disk.beyond {
			w.find("no error, although the file was cut off")
		}
		if f.EIO > 0 && w.disk.count >= f.EIO || f.NoMemory > 0 && w.disk.count >= f.NoMemory {
			w.find("no error, although a read failed")
		}
		return
	case canceled && w.c.Cancel > 0:
		if late := units.Nanos(time.Since(w.started)) - w.c.Cancel; late > w.patience() {
			w.find("cancelled at %d, returned %d later", w.c.Cancel, late)
		}
		return
	case f.transient():
		w.find("an error, although all faults pass: %v", err)
		return
	case !strings.Contains(err.Error(), diskPath):
		w.find("the error does not name the file: %v", err)
	}
	var kind error = syscall.EIO
	switch {
	case f.Truncated > 0:
		kind = io.ErrUnexpectedEOF
	case f.NoMemory > 0:
		kind = syscall.ENOMEM
	}
	if !errors.Is(err, kind) {
		w.find("an error of another kind than %v: %v", kind, err)
	}
}

// patience is how long the longest step takes, as far as the simulator knows, with a read's delay
// for every request.
func (w *world) patience() units.Nanos {
	var longest units.Nanos
	perStep := len(w.run.Rows) / len(w.steps)
	for i := range w.steps {
		var took units.Nanos
		for _, r := range w.run.Rows[i*perStep : (i+1)*perStep] {
			took += r.Dur + units.Nanos(r.Requests)*units.Millisecond
		}
		longest = max(longest, took)
	}
	return 2 * longest
}

// budget checks the memory that was read into: the staging buffer of demand reads and that of
// prefetches, whose sizes are known before the first token.
func (w *world) budget() {
	room := int64(w.need.Staging)
	if w.c.Schedule.Kind != schedule.Demand {
		prefetch := int64(w.c.Schedule.Staging)
		if prefetch == 0 {
			prefetch = layout.Rounded(room)
		}
		room += prefetch
	}
	if held := w.reader.staging(); held > room {
		w.find("%d bytes of staging were used, %d are accounted for", held, room)
	}
}

// replay drives the case by package replay and compares the Runs.
func (w *world) replay(ctx context.Context) error {
	result, err := replay.Run(ctx, w.trace, w.w.model, w.w.geo, w.reader, w.replayConfig())
	w.judge(err)
	if result == nil {
		return err
	}
	w.result.Steps = len(result.Run.Rows) * len(w.steps) / len(w.run.Rows)
	if err == nil && len(result.Run.Rows) != len(w.run.Rows) {
		w.find("%d rows, simulated %d", len(result.Run.Rows), len(w.run.Rows))
	}
	for i, r := range result.Run.Rows {
		if i == len(w.run.Rows) {
			break
		}
		s := w.run.Rows[i]
		if s.Depth = r.Depth; !w.exact() || r.Part != traces.PartIO {
			s.Start = r.Start // parts of no time stand in another order
		}
		if !w.exact() {
			s.Dur = r.Dur
		}
		if r != s {
			w.find("row %d: %+v, simulated %+v; took %d and %d", i, r, s, r.Dur, s.Dur)
			break
		}
	}
	return err
}

// heal ends the faults.
func (d *disk) heal() { d.faults.Store(&Faults{}) }

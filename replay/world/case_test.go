package world

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"

	"github.com/windrow-sim/windrow/devicemodels"
	"github.com/windrow-sim/windrow/devicemodels/flash"
	"github.com/windrow-sim/windrow/internal/decisions/layout"
	"github.com/windrow-sim/windrow/internal/decisions/policy"
	"github.com/windrow-sim/windrow/internal/decisions/schedule"
	"github.com/windrow-sim/windrow/internal/rng"
	"github.com/windrow-sim/windrow/internal/units"
)

// Case is one run: all that a seed chooses. It is written whole as JSON, so that a kept case stays
// what it was when draw changes.
type Case struct {
	Seed   uint64 // of masks, latencies and faults
	Model  int    // of models
	Script Script
	Policy policy.Spec
	// Schedule of the reads; a dense prefix and the staging buffer are in it.
	Schedule schedule.Spec
	Layout   layout.Options // Align is the file's
	Threads  int            // that compute
	Parallel int            // threads that read, or depth of the ring
	// Ring reads through the ring of engine uring, over a simulated kernel, instead of a pool of
	// threads.
	Ring   bool `json:",omitempty"`
	Flash  flash.Spec
	Host   devicemodels.Host // costs of the host, slept between the parts of a token
	Replay bool              // driven by replay.Run, without costs of the host
	Faults Faults
	Cancel units.Nanos // when the run is cancelled; 0 = never
}

// Script says what tokens there are.
type Script struct {
	Masks     Masks
	Share     float64 // of the units that a token needs: Random and Predicted
	Sequences int     // side by side
	Batch     int     // most tokens in a step
	Steps     int     // steps between two resets
	Rounds    int     // a reset before each
	Rewinds   bool    // some steps take back positions first
}

// Masks says where the masks of a script come from.
type Masks string

// The origins of masks.
const (
	True      Masks = "true"      // a dense run's, with other units added
	Random    Masks = "random"    // drawn, whatever the values are
	Predicted Masks = "predicted" // the engine's predictors, which err
)

// Faults are the faults of the file. Chances are per call of pread, numbers count calls from 1.
type Faults struct {
	Short, Interrupted, Again float64 // short reads, EINTR, EAGAIN and ENOMEM in turn
	Late                      float64 // a read is late by up to a millisecond
	EIO, NoMemory             int     // the call that fails so, the first of those; 0 = none
	Bad                       int64   // a block at this offset cannot be read; 0 = none
	Truncated                 int     // before this call the file loses its end; 0 = never
}

// transient reports whether the faults pass.
func (f Faults) transient() bool {
	return f.EIO == 0 && f.NoMemory == 0 && f.Bad == 0 && f.Truncated == 0
}

// text is the case as JSON.
func (c *Case) text() string {
	b, err := json.MarshalIndent(c, "", "\t")
	if err != nil {
		return fmt.Sprint(err)
	}
	return string(b) + "\n"
}

// engineName is the name of the pool in the device.
const engineName = "pread"

// device is the device of a case, for the simulator.
func (c *Case) device() *devicemodels.Device {
	return &devicemodels.Device{Version: devicemodels.FormatVersion, Name: "world", Flash: c.Flash,
		Host: c.Host}
}

// draw returns the case of a seed.
func draw(seed uint64) *Case {
	d := rng.Stream(seed, "world/case")
	c := &Case{Seed: seed, Model: d.IntN(len(shapes)), Threads: pick(d, 1, 1, 2, 4),
		Parallel: 1 + d.IntN(12)}
	s := shapes[c.Model]
	c.Script = Script{Masks: pick(d, True, Random, Random, Predicted), Share: pick(d, .02, .1, .3,
		.7), Sequences: 1, Batch: 1, Steps: 2 + d.IntN(7), Rounds: 1 + d.IntN(2),
		Rewinds: d.IntN(5) == 0}
	c.Layout = layout.Options{Align: pick[units.Bytes](d, 1, 1, 512, 4096),
		Coalesce: d.IntN(4) > 0}
	if c.Layout.Coalesce {
		c.Layout.Gap = pick(d, 0, 0, 1, 5)
	}
	c.Layout.MaxRequest = pick[units.Bytes](d, 0, 0, 1, 2, 16) * max(c.Layout.Align, 512)
	c.drawPolicy(d, s.DFFN)
	c.drawSchedule(d, s.Layers)
	c.drawFlash(d)
	switch {
	case d.IntN(5) == 0:
		c.Replay = true
		c.Script.Rewinds = false // a trace has none
		if c.Script.Masks == Predicted {
			c.Script.Masks = Random
		}
	case d.IntN(4) == 0:
		c.Script.Sequences, c.Script.Batch = 1+d.IntN(3), 1+d.IntN(4)
		c.Script.Batch = max(c.Script.Batch, c.Script.Sequences)
	}
	if !c.Replay && d.IntN(4) > 0 {
		odd := func(most int64) units.Nanos { return units.Nanos(1 + d.Int64N(most)) }
		c.Host = devicemodels.Host{LayerFixed: odd(300_000), RowFixed: odd(200_000),
			DecideFixed: odd(3000), DecideUnit: odd(50), TokenFixed: odd(100_000)}
	}
	c.Host.Cores = 1 + d.IntN(4)
	c.drawFaults(d)
	// With a depth of 16 and more, a ring looks for completions several at a time, which the
	// simulator does not know.
	c.Ring = d.IntN(3) == 0
	return c
}

func (c *Case) drawPolicy(d *rand.Rand, dffn int) {
	room := 1 + d.IntN(dffn)
	c.Policy = pick(d, policy.SlidingWindow(d.IntN(5)), policy.SlidingWindow(1+d.IntN(3)),
		policy.Spec{Kind: policy.KindWindow, Window: 1 + d.IntN(4), Capacity: room},
		policy.Spec{Kind: policy.KindDelta, Capacity: room},
		policy.Spec{Kind: policy.KindLRU, Capacity: room},
		policy.Spec{Kind: policy.KindLFU, Capacity: room},
		policy.Spec{Kind: policy.KindPages, Capacity: room, Ahead: 1 + d.IntN(4)},
		policy.Spec{Kind: policy.KindNone})
}

func (c *Case) drawSchedule(d *rand.Rand, layers int) {
	c.Schedule.Kind = pick(d, schedule.Demand, schedule.LookAhead, schedule.Token)
	if c.Schedule.Kind == schedule.Demand {
		return
	}
	if c.Schedule.Dense = d.IntN(2); d.IntN(8) == 0 {
		c.Schedule.Dense = d.IntN(layers + 1)
	}
	if c.Schedule.Kind == schedule.Token {
		c.Schedule.Dense = max(c.Schedule.Dense, 1)
	}
	c.Schedule.Staging = pick[units.Bytes](d, 0, 0, 8192, 12288, 16384, 24576, 65536, 1<<20)
}

// drawFlash draws a device. Every optional part of it appears; a time of 0 does not, since events
// of one instant would then depend on who is asked first.
func (c *Case) drawFlash(d *rand.Rand) {
	rate := func() units.Rate { return units.Rate(1_000_000 * (1 + d.Int64N(4000))) }
	f := flash.Spec{Servers: 1 + d.IntN(8), LTFB: units.Nanos(1 + d.Int64N(200_000)),
		ServerRate: rate(), LinkRate: rate(), Align: c.Layout.Align,
		Placement: pick(d, flash.PlaceAny, flash.PlaceByAddress, flash.PlaceInRounds)}
	cost := flash.EngineCost{}
	if c.Schedule.Kind == schedule.Demand { // beside compute they would slow it down
		cost.Submit, cost.Complete = units.Nanos(d.Int64N(3000)), units.Nanos(d.Int64N(3000))
	}
	f.Engines = map[string]flash.EngineCost{engineName: cost}
	if d.IntN(2) == 0 {
		for range 2 + d.IntN(6) {
			f.LTFBShape.Add(units.Nanos(1+d.Int64N(1_000_000)), 1+d.Int64N(9))
		}
	}
	if d.IntN(3) == 0 {
		f.MaxIOPS = 1000 * (1 + d.Int64N(200))
	}
	if d.IntN(3) == 0 {
		f.QueueDepth = 1 + d.IntN(8)
	}
	if d.IntN(3) == 0 {
		f.Page = pick[units.Bytes](d, 512, 4096, 16384)
	}
	if d.IntN(3) == 0 {
		f.MaxTransfer = pick[units.Bytes](d, 512, 2048, 8192)
	}
	if d.IntN(4) == 0 {
		f.Limit = &flash.Limit{Rate: rate(), IOPS: 1000 * (1 + d.Int64N(100)),
			Interval: units.Nanos(d.Int64N(3_000_000))}
	}
	if d.IntN(4) == 0 {
		f.Sustained = &flash.Sustained{Cliff: units.Nanos(1 + d.Int64N(5_000_000)),
			Factor: .1 + .9*d.Float64(), Cool: units.Nanos(1 + d.Int64N(5_000_000))}
	}
	if d.IntN(4) == 0 {
		f.Background = &flash.Background{Rate: rate() / 100, Chunk: 4096}
	}
	c.Flash = f
}

func (c *Case) drawFaults(d *rand.Rand) {
	f := &c.Faults
	kind := d.IntN(10)
	if kind < 5 {
		return
	}
	calls := 1 + d.IntN(300)
	if d.IntN(2) == 0 {
		calls = 1 + d.IntN(20)
	}
	switch kind {
	case 5, 6:
		f.Short, f.Interrupted, f.Again, f.Late = d.Float64()/3, d.Float64()/3, d.Float64()/3,
			d.Float64()/4
	case 7:
		f.Short, f.Late = pick(d, 0, .2), pick(d, 0, .2)
		switch d.IntN(4) {
		case 0:
			f.EIO = calls
		case 1:
			f.NoMemory = calls
		case 2:
			f.Truncated = calls
		default:
			f.Bad = 1 + d.Int64N(1<<18)
		}
	case 8:
		f.Late = pick(d, 0, .5)
		c.Cancel = units.Nanos(1 + d.Int64N(20_000_000))
	default:
		f.Late = .5
	}
}

// pick returns one of several values.
func pick[T any](d *rand.Rand, from ...T) T { return from[d.IntN(len(from))] }

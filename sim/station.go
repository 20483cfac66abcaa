package sim

import (
	"fmt"

	"github.com/windrow-sim/windrow/devicemodels"
	"github.com/windrow-sim/windrow/engine/layout"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/sim/des"
)

// Station is a flash device with the host threads that drive it, as discrete events. `parallel` slots (threads of a pread pool,
// or the depth of a ring) each take the next request of the batch and carry it through:
//
//	host (submit) ─▶ controller (IOPS) ─▶ server (LTFB + bytes/rate) ─▶ host (complete)
//	                                       link (bytes/rate) ─┘
//
// Every stage is first come, first served. Its counters are integers, so that conservation and Little's law hold exactly.
type Station struct {
	flash devicemodels.Flash
	cost  devicemodels.EngineCost
	slots int

	kernel     des.Kernel
	host       *des.Station
	controller *des.Station
	servers    *des.Station
	link       *des.Station

	requests []layout.Request
	nextReq  int
	current  []int32       // request that each slot carries
	picked   []units.Nanos // when each slot took it
	finished []units.Nanos // when its server was done with it
	done     int
	moved    units.Bytes
	sojourn  units.Nanos // sum over requests of completion − pick

	hook func(at units.Nanos, change int) // of the number in flight; nil outside tests
}

// The kinds of events of a Station; the argument is the slot.
const (
	kindPick    int32 = iota // the slot is free: take the next request
	kindAtFlash              // the request reaches the device
	kindLink                 // its first byte is there: the transfer begins
	kindDone                 // device done: the host completes it
)

// NewStation returns an idle Station. engine names an entry of flash.Engines; cores is the number of host cores.
func NewStation(flash devicemodels.Flash, engine string, parallel, cores int) (*Station, error) {
	cost, ok := flash.Engines[engine]
	if !ok {
		return nil, fmt.Errorf("sim: device model: no costs for I/O engine %q; it knows %v", engine, engineNames(flash))
	}
	if parallel < 1 {
		return nil, fmt.Errorf("sim: %d threads (or queue depth): at least 1 is needed", parallel)
	}
	if cost.Serial {
		cores = 1
	}
	return &Station{
		flash: flash, cost: cost, slots: parallel,
		host: des.NewStation(cores), controller: des.NewStation(1), servers: des.NewStation(flash.Servers), link: des.NewStation(1),
		current: make([]int32, parallel), picked: make([]units.Nanos, parallel), finished: make([]units.Nanos, parallel),
	}, nil
}

// BatchResult is what happened to one batch of requests.
type BatchResult struct {
	End     units.Nanos // when the last request was complete
	Sojourn units.Nanos // sum over requests of the time from being taken by a slot to completion
}

// Batch runs requests from time start until the last is complete. An empty batch takes no time.
func (s *Station) Batch(start units.Nanos, requests []layout.Request) (BatchResult, error) {
	if len(requests) == 0 {
		return BatchResult{End: start}, nil
	}
	if err := s.kernel.Advance(start); err != nil {
		return BatchResult{}, err
	}
	s.requests, s.nextReq, s.done, s.moved, s.sojourn = requests, 0, 0, 0, 0
	begin := start + s.cost.Batch
	for slot := range min(s.slots, len(requests)) {
		s.kernel.Schedule(begin, des.ClassPlan, kindPick, int32(slot))
	}
	if err := s.kernel.Run(s); err != nil {
		return BatchResult{}, err
	}
	return BatchResult{End: s.kernel.Now(), Sojourn: s.sojourn}, s.drained()
}

// drained checks conservation: all that was requested has completed and nothing is in flight (design invariant 2).
func (s *Station) drained() error {
	var asked units.Bytes
	for _, r := range s.requests {
		asked += units.Bytes(r.Length)
	}
	now := s.kernel.Now()
	if s.done != len(s.requests) || s.moved != asked || !s.servers.IdleAt(now) || !s.link.IdleAt(now) || !s.host.IdleAt(now) {
		return fmt.Errorf("sim: station: %d of %d requests and %d of %d bytes completed at %v: %w",
			s.done, len(s.requests), s.moved, asked, now, des.ErrInvariant)
	}
	return nil
}

// Handle implements des.Handler.
func (s *Station) Handle(k *des.Kernel, e des.Event) error {
	slot, now := e.Arg, k.Now()
	switch e.Kind {
	case kindPick:
		if s.nextReq == len(s.requests) {
			return nil
		}
		s.current[slot], s.picked[slot] = int32(s.nextReq), now
		s.nextReq++
		if s.hook != nil {
			s.hook(now, 1)
		}
		_, submitted := s.host.Serve(now, s.cost.Submit)
		k.Schedule(submitted, des.ClassArrive, kindAtFlash, slot)
	case kindAtFlash:
		accepted := now
		if s.flash.MaxIOPS > 0 {
			_, accepted = s.controller.Serve(now, units.Second/units.Nanos(s.flash.MaxIOPS))
		}
		size := s.size(slot)
		begin, end := s.servers.Serve(accepted, s.flash.LTFB+s.flash.ServerRate.Time(size))
		s.finished[slot] = end
		k.Schedule(begin+s.flash.LTFB, des.ClassArrive, kindLink, slot)
	case kindLink:
		_, over := s.link.Serve(now, s.flash.LinkRate.Time(s.size(slot)))
		k.Schedule(max(over, s.finished[slot]), des.ClassDone, kindDone, slot)
	case kindDone:
		_, complete := s.host.Serve(now, s.cost.Complete)
		s.done++
		s.moved += s.size(slot)
		s.sojourn += complete - s.picked[slot]
		if s.hook != nil {
			s.hook(complete, -1)
		}
		k.Schedule(complete, des.ClassPlan, kindPick, slot)
	default:
		return fmt.Errorf("sim: station: event of unknown kind %d: %w", e.Kind, des.ErrInvariant)
	}
	return nil
}

func (s *Station) size(slot int32) units.Bytes {
	return units.Bytes(s.requests[s.current[slot]].Length)
}

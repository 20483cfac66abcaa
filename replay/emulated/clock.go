package emulated

import (
	"runtime"
	"time"

	"github.com/windrow-sim/windrow/internal/units"
)

// Go's timers are late by up to a millisecond: the clock gets up that much earlier and takes the
// rest in short naps of the operating system, between which a request may have come that is due
// sooner.
const (
	early = 1200 * time.Microsecond
	nap   = 200 * time.Microsecond
)

// now is the time of the device.
func (d *Device) now() units.Nanos { return units.Nanos(time.Since(d.zero)) }

// proceed lets the device come up to the present and sees to it that someone wakes for what comes
// next. The caller holds d.mu.
func (d *Device) proceed() {
	d.drive.until(d.now())
	next, busy := d.drive.next()
	switch {
	case !busy:
	case !d.ticking:
		d.ticking = true
		go d.tick()
	case next < d.target:
		select {
		case d.sooner <- struct{}{}:
		default: // it has been told already
		}
	}
}

// tick is the clock: it runs while the device is busy, and ends with the last request.
func (d *Device) tick() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		d.mu.Lock()
		d.drive.until(d.now())
		next, busy := d.drive.next()
		d.ticking, d.target = busy, next
		d.mu.Unlock()
		if !busy {
			return
		}
		runtime.Gosched() // those who were woken go first: a nap holds a processor for a moment
		wait := time.Duration(next - d.now())
		if wait < early+nap {
			pause(min(wait, nap))
			continue
		}
		timer.Reset(wait - early)
		select {
		case <-timer.C:
		case <-d.sooner:
		}
	}
}

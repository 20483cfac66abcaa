package energy

import (
	"errors"
	"fmt"
	"math"

	"github.com/windrow-sim/windrow/internal/units"
)

// ErrInput marks an unusable use or constant.
var ErrInput = errors.New("not usable for an estimate of energy")

// Interval is a number between Low and High, with Mid as the estimate.
type Interval struct {
	Low  float64 `json:"low"`
	Mid  float64 `json:"mid"`
	High float64 `json:"high"`
}

// scale multiplies by a number of 0 or more.
func (i Interval) scale(f float64) Interval { return Interval{i.Low * f, i.Mid * f, i.High * f} }

func (i Interval) plus(j Interval) Interval {
	return Interval{i.Low + j.Low, i.Mid + j.Mid, i.High + j.High}
}

// valid reports whether i is an interval of finite numbers of 0 or more.
func (i Interval) valid() bool {
	return 0 <= i.Low && i.Low <= i.Mid && i.Mid <= i.High && !math.IsInf(i.High, 1)
}

// Use holds the times and bytes of a run, over all tokens.
type Use struct {
	Tokens      int
	Wall        units.Nanos  // from the start of the first token to the end of the last
	IOTime      units.Nanos  // of it, flash was read
	ComputeTime units.Nanos  // of it, the host computed or copied
	FlashBytes  units.Bytes  // read from flash
	DRAMBytes   *units.Bytes // read from and written to memory; nil = not known
}

// Model holds the constants of one machine. nil = not known.
type Model struct {
	Flash     *Constant `json:"flash_read"` // pJ/bit
	DRAM      *Constant `json:"dram"`       // pJ/bit
	DriveIdle *Constant `json:"drive_idle"` // W, while nothing is read
	Compute   *Constant `json:"compute"`    // W, while the host computes, without its memory
	HostIdle  *Constant `json:"host_idle"`  // W, while the host waits, without its memory
}

// PartJoules is one part of the energy of a token.
type PartJoules struct {
	Part   string    `json:"part"`
	Amount *float64  `json:"amount_per_token"` // nil = not known
	Unit   string    `json:"amount_unit"`      // "bytes" or "s"
	Joules *Interval `json:"joules_per_token"` // nil = not known
}

// Report is the energy of one token, the mean over all tokens of the run.
type Report struct {
	Tokens int          `json:"tokens"`
	Parts  []PartJoules `json:"parts"`
	// Total is the sum of the parts that are known: its ends are the sums of their ends.
	Total Interval `json:"total_joules_per_token"`
	// LowerBound says that a part is unknown, so that a token takes more than Total. NotKnown names
	// the unknown parts.
	LowerBound bool     `json:"total_is_lower_bound"`
	NotKnown   []string `json:"not_known"`
	Warnings   []string `json:"warnings"`
}

// PerToken computes the energy of a token. It returns an error of kind ErrInput for a run without
// tokens, for times beyond the wall time, for negative numbers and NaN, and for a result beyond the
// range of floats.
func PerToken(u Use, m Model) (*Report, error) {
	if err := u.check(); err != nil {
		return nil, err
	}
	if err := m.check(); err != nil {
		return nil, err
	}
	const bit = 8 * 1e-12 // joules per byte of one pJ/bit
	r := &Report{Tokens: u.Tokens, NotKnown: []string{}, Warnings: []string{}}
	r.bytes("flash read", &u.FlashBytes, m.Flash, bit)
	r.drawn(&u, m.Flash)
	r.bytes("DRAM", u.DRAMBytes, m.DRAM, bit)
	r.time("compute", u.ComputeTime, m.Compute)
	r.time("drive idle", u.Wall-u.IOTime, m.DriveIdle)
	r.time("host idle", u.Wall-u.ComputeTime, m.HostIdle)
	if !r.Total.valid() {
		return nil, fmt.Errorf("energy: total: %g J per token are beyond what can be computed; "+
			"check the constants: %w", r.Total.High, ErrInput)
	}
	if w := u.rateWarning(m.Flash); w != "" {
		r.Warnings = append(r.Warnings, w)
	}
	return r, nil
}

func (r *Report) bytes(part string, amount *units.Bytes, c *Constant, scale float64) {
	if amount == nil {
		r.add(PartJoules{Part: part, Unit: "bytes"}, c, scale)
		return
	}
	perToken := float64(*amount) / float64(r.Tokens)
	r.add(PartJoules{Part: part, Unit: "bytes", Amount: &perToken}, c, scale)
}

// drawn raises the upper end of the flash read, the last part, to the rated power over the whole
// I/O time. A drive that reads more slowly than at the rate of the constant does not draw less in
// proportion.
func (r *Report) drawn(u *Use, c *Constant) {
	if c == nil || u.FlashBytes == 0 {
		return
	}
	_, watts := c.rated()
	part := &r.Parts[len(r.Parts)-1]
	more := watts.High*u.IOTime.Seconds()/float64(u.Tokens) - part.Joules.High
	if more > 0 {
		part.Joules.High += more
		r.Total.High += more
	}
}

func (r *Report) time(part string, amount units.Nanos, c *Constant) {
	perToken := amount.Seconds() / float64(r.Tokens)
	r.add(PartJoules{Part: part, Unit: "s", Amount: &perToken}, c, 1)
}

// add charges a part; scale turns the unit of amount × constant into joules.
func (r *Report) add(p PartJoules, c *Constant, scale float64) {
	switch {
	case p.Amount != nil && *p.Amount == 0:
		p.Joules = &Interval{}
	case p.Amount != nil && c != nil:
		joules := c.Interval.scale(*p.Amount * scale)
		p.Joules = &joules
	}
	if p.Joules == nil {
		r.LowerBound = true
		r.NotKnown = append(r.NotKnown, p.Part)
	} else {
		r.Total = r.Total.plus(*p.Joules)
	}
	r.Parts = append(r.Parts, p)
}

func (u *Use) check() error {
	switch {
	case u.Tokens < 1:
		return fmt.Errorf("energy: tokens: a run of %d has no energy per token: %w", u.Tokens,
			ErrInput)
	case u.FlashBytes < 0:
		return fmt.Errorf("energy: flash bytes: %d is negative: %w", int64(u.FlashBytes), ErrInput)
	case u.DRAMBytes != nil && *u.DRAMBytes < 0:
		return fmt.Errorf("energy: DRAM bytes: %d is negative: %w", int64(*u.DRAMBytes), ErrInput)
	case u.IOTime < 0 || u.IOTime > u.Wall:
		return fmt.Errorf("energy: I/O time: %v does not fit into the run's %v: %w", u.IOTime,
			u.Wall, ErrInput)
	case u.ComputeTime < 0 || u.ComputeTime > u.Wall:
		return fmt.Errorf("energy: compute time: %v does not fit into the run's %v: %w",
			u.ComputeTime, u.Wall, ErrInput)
	}
	return nil
}

func (m *Model) check() error {
	for _, f := range []struct {
		path string
		c    *Constant
		unit string
	}{
		{"flash read", m.Flash, PicojoulePerBit}, {"DRAM", m.DRAM, PicojoulePerBit},
		{"drive idle", m.DriveIdle, Watt}, {"compute", m.Compute, Watt}, {"host idle", m.HostIdle,
			Watt},
	} {
		if f.c == nil {
			continue
		}
		if i := f.c.Interval; !i.valid() {
			return fmt.Errorf("energy: %s: %g to %g to %g is no interval of numbers of 0 or "+
				"more: %w", f.path, i.Low, i.Mid, i.High, ErrInput)
		}
		if f.c.Unit != f.unit {
			return fmt.Errorf("energy: %s: %s is in %q; give %s: %w", f.path, f.c.Name, f.c.Unit,
				f.unit, ErrInput)
		}
	}
	return nil
}

// rateWarning warns when flash was read at another rate than those of the whole-drive constant.
func (u *Use) rateWarning(c *Constant) string {
	if c == nil || u.IOTime == 0 || u.FlashBytes == 0 {
		return ""
	}
	rates, watts := c.rated()
	rate := u.FlashBytes.Over(u.IOTime)
	switch {
	case rates.High == 0 || float64(rate) >= rates.Low && float64(rate) <= rates.High:
		return ""
	case float64(rate) > rates.High:
		return fmt.Sprintf("extrapolated: flash is read at %v, the constants of %s are of %v to %v",
			rate, c.Name, units.Rate(rates.Low), units.Rate(rates.High))
	}
	return fmt.Sprintf("extrapolated: flash is read at %v, the constants of %s are of %v to %v; "+
		"the upper end is that of a drive that draws its rated %.3g W during the whole I/O time",
		rate, c.Name, units.Rate(rates.Low), units.Rate(rates.High), watts.High)
}

package wear

import (
	"errors"
	"fmt"
	"math"

	"github.com/windrow-sim/windrow/internal/units"
)

// ErrInput marks an unusable use or drive.
var ErrInput = errors.New("not usable for an estimate of wear")

// Explanation is a text for reports about the causes of wear.
const Explanation = "Reads do not wear flash by themselves: programming and erasing do. What " +
	"reading causes is read disturb: a page read shifts the\n" +
	"charge of the other pages of its erase block a little, so that the drive copies a block " +
	"elsewhere after some number of reads, which\n" +
	"costs a program/erase cycle. Downloads and updates of a model are writes, and wear flash " +
	"as any write does."

// daysPerYear is the length of a Julian year.
const daysPerYear = 365.25

// Interval is a number between Low and High, with Mid as the estimate.
type Interval struct {
	Low  float64 `json:"low"`
	Mid  float64 `json:"mid"`
	High float64 `json:"high"`
}

func (i Interval) scale(f float64) Interval { return Interval{i.Low * f, i.Mid * f, i.High * f} }

// under is f / i: the least of i gives the greatest result.
func (i Interval) under(f float64) Interval { return Interval{f / i.High, f / i.Mid, f / i.Low} }

func (i Interval) plus(f float64) Interval { return Interval{i.Low + f, i.Mid + f, i.High + f} }

// positive reports whether i is an interval of finite numbers above 0.
func (i Interval) positive() bool {
	return 0 < i.Low && i.Low <= i.Mid && i.Mid <= i.High && !math.IsInf(i.High, 1)
}

// Use is the daily use of a model.
type Use struct {
	TokensPerDay       float64
	BytesPerToken      units.Bytes // read from flash
	ReadsPerToken      float64     // requests
	BytesWrittenPerDay units.Bytes // by the host: downloads and updates
}

// Hot is the skew of reads over blocks: Share of the reads go to Fraction of the blocks. The zero
// value is no skew.
type Hot struct {
	Share    float64 `json:"share"`
	Fraction float64 `json:"fraction"`
}

// Drive describes the flash.
type Drive struct {
	Name      string      `json:"name"`
	Capacity  units.Bytes `json:"capacity"`             // 0 = not known
	Endurance units.Bytes `json:"rated_bytes_written"`  // 0 = not known
	Source    string      `json:"source,omitempty"`     // of the two above
	Quality   string      `json:"quality,omitempty"`    // of the two above
	Data      units.Bytes `json:"data"`                 // size of the region that is read
	Page      units.Bytes `json:"page"`                 // unit of a read inside the drive
	Block     units.Bytes `json:"block"`                // unit of an erase: a whole number of pages
	Disturb   *Constant   `json:"reads_before_refresh"` // per block
	// program/erase cycles of a block; nil = not known
	Cycles *Constant `json:"cycles"`
}

// Lifetime is the time to the end of an endurance.
type Lifetime struct {
	Known bool     `json:"known"` // false: the endurance is unknown
	Never bool     `json:"never"` // no wear: for ever
	Years Interval `json:"years"` // when Known and not Never
}

// Spread is the load of the most-read blocks in a day, under one assumption.
type Spread struct {
	Name      string   `json:"name"`   // "even", "hot" or "one block"
	Blocks    float64  `json:"blocks"` // number of blocks with this load
	Reads     float64  `json:"reads_per_block_per_day"`
	Refreshes Interval `json:"refreshes_per_block_per_day"`
	// to the block's program/erase cycles, without wear-levelling
	YearsInPlace Lifetime `json:"years_if_rewritten_in_place"`
}

// Report is the wear of one day of use and the years that follow from it.
type Report struct {
	BytesPerDay     float64  `json:"bytes_read_per_day"`
	ReadsPerDay     float64  `json:"reads_per_day"`
	PageReadsPerDay float64  `json:"page_reads_per_day"`
	Blocks          float64  `json:"blocks"` // of the region that is read
	Spreads         []Spread `json:"spreads"`
	RefreshesPerDay Interval `json:"refreshes_per_day"` // of all blocks together
	RefreshBytes    Interval `json:"refresh_bytes_per_day"`
	WrittenPerDay   Interval `json:"bytes_written_per_day"` // refreshes and the host's
	ToEndurance     Lifetime `json:"years_to_rated_bytes_written"`
	ToCycles        Lifetime `json:"years_to_cycles"` // with wear-levelling over the whole capacity
}

// Estimate computes the wear of u on d. It returns an error of kind ErrInput for negative numbers
// and NaN, for reads without a region, for a region larger than the drive, for a hot share that is
// not hotter than the rest, and for results beyond the range of floats.
func Estimate(u Use, d Drive, hot Hot) (*Report, error) {
	if err := u.check(); err != nil {
		return nil, err
	}
	if err := d.check(u.ReadsPerToken > 0); err != nil {
		return nil, err
	}
	if err := hot.check(); err != nil {
		return nil, err
	}
	r := &Report{
		BytesPerDay: u.TokensPerDay * float64(u.BytesPerToken),
		ReadsPerDay: u.TokensPerDay * u.ReadsPerToken,
		Blocks:      math.Ceil(float64(d.Data) / float64(d.Block)),
	}
	if u.ReadsPerToken > 0 {
		pages := math.Ceil(float64(u.BytesPerToken) / u.ReadsPerToken / float64(d.Page))
		r.PageReadsPerDay = r.ReadsPerDay * pages
	}
	r.RefreshesPerDay = d.Disturb.Interval.under(r.PageReadsPerDay)
	r.RefreshBytes = r.RefreshesPerDay.scale(float64(d.Block))
	r.WrittenPerDay = r.RefreshBytes.plus(float64(u.BytesWrittenPerDay))
	// All other results are less than the greatest of these.
	for _, v := range []float64{r.BytesPerDay, r.PageReadsPerDay, r.WrittenPerDay.High} {
		if math.IsInf(v, 0) || math.IsNaN(v) {
			return nil, fmt.Errorf("wear: use: %g tokens per day of %v in %g reads are beyond "+
				"what can be computed: %w", u.TokensPerDay, u.BytesPerToken, u.ReadsPerToken,
				ErrInput)
		}
	}
	r.spread(&d, hot)
	if d.Endurance > 0 {
		e := float64(d.Endurance)
		r.ToEndurance = lifetime(Interval{e, e, e}, r.WrittenPerDay)
	}
	if d.Cycles != nil && d.Capacity > 0 {
		r.ToCycles = lifetime(d.Cycles.Interval.scale(float64(d.Capacity)), r.WrittenPerDay)
	}
	return r, nil
}

// spread adds the load of the most-read blocks, from the mildest assumption to the worst case.
func (r *Report) spread(d *Drive, hot Hot) {
	add := func(name string, blocks, share float64) {
		s := Spread{Name: name, Blocks: blocks}
		if blocks > 0 {
			s.Reads = r.PageReadsPerDay * share / blocks
		}
		s.Refreshes = d.Disturb.Interval.under(s.Reads)
		if d.Cycles != nil {
			s.YearsInPlace = lifetime(d.Cycles.Interval, s.Refreshes)
		}
		r.Spreads = append(r.Spreads, s)
	}
	add("even", r.Blocks, 1)
	if hot != (Hot{}) {
		add("hot", math.Ceil(hot.Fraction*r.Blocks), hot.Share)
	}
	add("one block", min(r.Blocks, 1), 1)
}

// lifetime is the number of years that a budget lasts at a daily use.
func lifetime(budget, perDay Interval) Lifetime {
	if perDay.High == 0 {
		return Lifetime{Known: true, Never: true}
	}
	years := func(budget, perDay float64) float64 {
		// longer than a float can express
		return min(budget/perDay/daysPerYear, math.MaxFloat64)
	}
	return Lifetime{Known: true, Years: Interval{years(budget.Low, perDay.High), years(budget.Mid,
		perDay.Mid), years(budget.High, perDay.Low)}}
}

func (u *Use) check() error {
	for _, f := range []struct {
		name  string
		value float64
	}{{"tokens per day", u.TokensPerDay}, {"bytes per token", float64(u.BytesPerToken)},
		{"reads per token", u.ReadsPerToken}, {"bytes written per day",
			float64(u.BytesWrittenPerDay)}} {
		if !(f.value >= 0) || math.IsInf(f.value, 1) {
			return fmt.Errorf("wear: %s: %g is not a number of 0 or more: %w", f.name, f.value,
				ErrInput)
		}
	}
	if u.BytesPerToken > 0 && u.ReadsPerToken == 0 {
		return fmt.Errorf("wear: reads per token: none, but %v are read: %w", u.BytesPerToken,
			ErrInput)
	}
	return nil
}

func (d *Drive) check(read bool) error {
	switch {
	case d.Capacity < 0 || d.Endurance < 0 || d.Data < 0:
		return fmt.Errorf("wear: drive %s: a capacity of %d, an endurance of %d or a region of "+
			"%d bytes is negative; 0 is not known: %w", d.Name, int64(d.Capacity),
			int64(d.Endurance), int64(d.Data), ErrInput)
	case read && d.Data == 0:
		return fmt.Errorf("wear: drive %s: there are reads but no region that is read; give its "+
			"size: %w", d.Name, ErrInput)
	case d.Capacity > 0 && d.Data > d.Capacity:
		return fmt.Errorf("wear: drive %s: %v do not fit into %v: %w", d.Name, d.Data, d.Capacity,
			ErrInput)
	case d.Page < 1 || d.Block < d.Page || d.Block%d.Page != 0:
		return fmt.Errorf("wear: drive %s: a block of %v is not a whole number of pages of %v: %w",
			d.Name, d.Block, d.Page, ErrInput)
	case d.Disturb == nil || !d.Disturb.Interval.positive():
		return fmt.Errorf("wear: drive %s: the reads before a refresh are no interval of "+
			"numbers above 0: %w", d.Name, ErrInput)
	case d.Cycles != nil && !d.Cycles.Interval.positive():
		return fmt.Errorf("wear: drive %s: the program/erase cycles are no interval of numbers "+
			"above 0: %w", d.Name, ErrInput)
	}
	return nil
}

func (h Hot) check() error {
	if h == (Hot{}) {
		return nil
	}
	if !(h.Fraction > 0 && h.Fraction <= 1 && h.Share >= h.Fraction && h.Share <= 1) {
		return fmt.Errorf("wear: hot: %g of the reads on %g of the blocks; both are above 0 up "+
			"to 1, and the share is not the smaller: %w", h.Share, h.Fraction, ErrInput)
	}
	return nil
}

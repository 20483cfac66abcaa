package devicemodels

import (
	"fmt"
	"math"

	"github.com/windrow-sim/windrow/devicemodels/flash"
	"github.com/windrow-sim/windrow/internal/units"
)

// CheckLimitPct is the largest mean error that Check passes, over cells that are each predicted by
// a fit without it.
const CheckLimitPct = 4

// statedPct is the allowed difference between an error that a file states and the recomputed one.
// Files and their rates are rounded.
const statedPct = 0.05

// CheckVerdict is the outcome of Check.
type CheckVerdict string

// The verdicts.
const (
	CheckPass      CheckVerdict = "pass"
	CheckFail      CheckVerdict = "fail"
	CheckNotJudged CheckVerdict = "not judged"
)

// CheckResult compares a device model with the cells in its file. Errors are in percent of the
// measured throughput; nil = not known.
type CheckResult struct {
	Device  string       `json:"device"`
	Verdict CheckVerdict `json:"verdict"`
	Reason  string       `json:"reason"` // empty for a pass
	// Errors are over the clean cells; tainted ones are listed too.
	Clean   int `json:"clean"`
	Tainted int `json:"tainted"`
	// errors of the clean cells against the file's model, and against fits without the cell
	MeanAbsPct     *float64       `json:"mean_abs_percent"`
	WorstAbsPct    *float64       `json:"worst_abs_percent"`
	LeaveOneOutPct *float64       `json:"leave_one_out_percent"`
	IntervalPct    *float64       `json:"interval_percent"`
	LimitPct       float64        `json:"limit_percent"` // of LeaveOneOutPct
	Cells          []CellResidual `json:"cells"`
}

// CellResidual is a cell whose Model is recomputed from the file's flash.
type CellResidual struct {
	Cell
	// model against measurement, signed; nil without a rate
	ErrorPct *float64 `json:"error_percent"`
}

// Check recomputes every cell of the device. Where the file claims a fit of at least three clean
// cells, Check repeats the fit without each of them. A device fails when the mean error of these
// predictions is above CheckLimitPct, or when its file states other errors or other models than its
// flash gives. A device that claims no fit is not judged. An error means that d is not valid.
func Check(d *Device) (*CheckResult, error) {
	if err := d.Validate(); err != nil {
		return nil, fmt.Errorf("devicemodels: check: %w", err)
	}
	r := &CheckResult{Device: d.Name, Verdict: CheckNotJudged, LimitPct: CheckLimitPct,
		Cells: []CellResidual{}}
	if d.Fit == nil {
		r.Reason = "the device file holds no fit"
		return r, nil
	}
	stale := r.residuals(d)
	switch {
	case stale != "":
		r.Verdict, r.Reason = CheckFail, stale
		return r, nil
	case d.Fit.Unfitted != "":
		r.Reason = d.Fit.Unfitted
		return r, nil
	case r.Clean < minCells:
		r.Reason = fmt.Sprintf("%d clean cells, fewer than %d", r.Clean, minCells)
		return r, nil
	}
	_, fit, err := refit(d)
	if err != nil {
		r.Reason = err.Error()
		return r, nil
	}
	r.LeaveOneOutPct, r.IntervalPct = fit.LeaveOneOutPct, fit.IntervalPct
	r.Verdict = CheckPass
	if loo := *fit.LeaveOneOutPct; !(loo <= CheckLimitPct) {
		r.Verdict, r.Reason = CheckFail, fmt.Sprintf("cells are predicted by fits without them "+
			"to %.3g %% on average, more than %d %%", loo, CheckLimitPct)
	}
	return r, nil
}

// residuals fills in the cells and their errors. It returns the first statement of the file that
// the flash contradicts.
func (r *CheckResult) residuals(d *Device) (stale string) {
	var sum, worst float64
	for i, c := range d.Fit.Cells {
		model := d.Flash.Throughput(c.Engine, d.Host.Cores, c.Chunk, c.Depth)
		if stale == "" && !sameRate(model, c.Model) {
			stale = fmt.Sprintf("fit.cells[%d] states %v as its model, but the flash of this "+
				"file gives %v", i, c.Model, model)
		}
		c.Model = model
		cell := CellResidual{Cell: c}
		if c.Rate > 0 {
			off := round3(100 * (float64(model)/float64(c.Rate) - 1))
			cell.ErrorPct = &off
		}
		r.Cells = append(r.Cells, cell)
		if c.Tainted != "" {
			r.Tainted++
			continue
		}
		r.Clean++
		sum += math.Abs(*cell.ErrorPct)
		worst = max(worst, math.Abs(*cell.ErrorPct))
	}
	if r.Clean == 0 {
		return stale
	}
	mean := round3(sum / float64(r.Clean))
	r.MeanAbsPct, r.WorstAbsPct = &mean, &worst
	if stale == "" && (math.Abs(mean-d.Fit.MeanAbsPct) > statedPct ||
		math.Abs(worst-d.Fit.WorstAbsPct) > statedPct) {
		stale = fmt.Sprintf("the file states errors of %.3g %% on average and %.3g %% at worst, "+
			"but its flash gives %.3g %% and %.3g %%",
			d.Fit.MeanAbsPct, d.Fit.WorstAbsPct, mean, worst)
	}
	return stale
}

// sameRate compares rates that are written with four digits.
func sameRate(a, b units.Rate) bool {
	return math.Abs(float64(a)-float64(b)) <= 1e-3*float64(max(a, b))+1
}

// refit repeats the fit of a device, from the cells and the given fields of its file.
func refit(d *Device) (spec flash.Spec, fit Fit, err error) {
	opt := FitOptions{
		When: d.Fit.When, Mode: d.Fit.Mode, Align: d.Flash.Align, Known: &d.Flash,
		Fixed:  d.Fit.Fixed,
		Serial: []string{}, DriftPct: d.Fit.DriftPct, MaxDriftPct: max(d.Fit.DriftPct,
			defaultMaxDriftPct),
	}
	for name, cost := range d.Flash.Engines {
		if cost.Serial {
			opt.Serial = append(opt.Serial, name)
		}
	}
	return FitFlash(d.Fit.Cells, d.Host.Cores, opt)
}

package sweep

import (
	"github.com/windrow-sim/windrow/devicemodels/flash"
	"github.com/windrow-sim/windrow/internal/units"
)

// audit sums the times of audited batches by the table and as events.
type audit struct{ table, events units.Nanos }

// audit times the reads of a cell as events and adds them and the table's time to the sums.
func (r *simulation) audit(p *pass, cell int, reads []flash.Read) error {
	station, err := r.cfg.NewStation(uint64(p.first*p.head.Layers + cell))
	if err != nil {
		return err
	}
	batch, err := station.Batch(0, reads)
	a := &r.audits[cell/p.block]
	a.table += r.io[cell]
	a.events += batch.End
	return err
}

// off is the error of the table on the audited batches, in percent.
func (r *simulation) off() float64 {
	var sum audit
	for _, a := range r.audits {
		sum.table += a.table
		sum.events += a.events
	}
	if sum.events == 0 {
		return 0
	}
	return 100 * (float64(sum.table)/float64(sum.events) - 1)
}

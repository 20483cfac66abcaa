package report

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"

	"github.com/windrow-sim/windrow/traces"
)

// WriteCSV writes one line per run and token, in nanoseconds and bytes, for notebooks and
// spreadsheets.
func WriteCSV(w io.Writer, d *Data) error {
	runs, err := d.series()
	if err != nil {
		return err
	}
	if len(runs) == 0 {
		return errNoRuns
	}
	head := []string{"run", "kind", "token", "seq", "pos", "phase", "latency_ns"}
	for p := range traces.Part(traces.Parts) {
		head = append(head, p.String()+"_ns")
	}
	head = append(head, "flash_bytes", "requests", "hits", "misses", "evictions", "queue_depth")
	c := csv.NewWriter(w)
	if err := c.Write(head); err != nil {
		return fmt.Errorf("report: csv: %w", err)
	}
	for i := range runs {
		if err := runs[i].csv(c); err != nil {
			return fmt.Errorf("report: csv: %w", err)
		}
	}
	c.Flush()
	return c.Error()
}

func (s *series) csv(c *csv.Writer) error {
	for _, t := range s.tokens {
		rec := []string{s.label, s.kind, count(int64(t.Index)), count(int64(t.Seq)),
			count(int64(t.Pos)), phaseName(t.Phase), count(int64(t.Latency))}
		for _, p := range t.Parts {
			rec = append(rec, count(int64(p)))
		}
		rec = append(rec, count(int64(t.Bytes)), count(t.Requests), count(t.Hits), count(t.Misses),
			count(t.Evictions),
			strconv.FormatFloat(t.Depth, 'g', -1, 32))
		if err := c.Write(rec); err != nil {
			return err
		}
	}
	return nil
}

func phaseName(p traces.Phase) string {
	if p == traces.Decode {
		return "decode"
	}
	return "prefill"
}

package adaptive

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
)

// row is one line of JSON: a step and its strategy.
type row struct {
	Strategy string `json:"strategy"`
	Step
}

// WriteJSONLines writes every token of every strategy as one line.
func (r *Result) WriteJSONLines(w io.Writer) error {
	out := bufio.NewWriter(w)
	enc := json.NewEncoder(out)
	for _, o := range r.Outcomes {
		for _, s := range o.Steps {
			if err := enc.Encode(row{o.Name, s}); err != nil {
				return err
			}
		}
	}
	return out.Flush()
}

// WriteCSV writes the same lines as a table. Its columns are the keys of the JSON lines.
func (r *Result) WriteCSV(w io.Writer) error {
	out := bufio.NewWriter(w)
	fmt.Fprintln(out,
		"strategy,token,seq,pos,budget_bytes,memory_bytes,chosen_window_tokens,"+
			"window_tokens,needed_count,loads_count,shed_count,latency_ns")
	for _, o := range r.Outcomes {
		for _, s := range o.Steps {
			fmt.Fprintf(out, "%s,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d\n", o.Name, s.Token, s.Seq, s.Pos,
				int64(s.Budget), int64(s.Memory), s.Chosen, s.Window, s.Needed, s.Loads,
				s.EvictedEarly,
				int64(s.Latency))
		}
	}
	return out.Flush()
}

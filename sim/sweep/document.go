package sweep

import (
	"fmt"
	"io"
	"slices"

	"github.com/windrow-sim/windrow/internal/document"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/sim"
	"github.com/windrow-sim/windrow/traces"
)

// bestShown is the number of configurations per device in a Summary.
const bestShown = 3

// Summary is the short form of a file of results: the fastest configurations of every device.
type Summary struct {
	Results        string   `json:"results"` // name of the file
	Model          string   `json:"model"`
	Tokens         int      `json:"tokens"`
	Configurations int      `json:"configurations"` // in the file
	ByTable        int      `json:"timed_by_table"`
	Best           []Result `json:"best"` // of every device, the fastest first
}

// Summarize reads a file of results with this name.
func Summarize(name string, r io.Reader) (*Summary, error) {
	s := &Summary{Results: name, Best: []Result{}}
	best := map[string][]Result{}
	var machines []string
	head, err := Read(r, func(r *Result) error {
		s.Configurations++
		if r.Timing == ByTable {
			s.ByTable++
		}
		machine := r.machine()
		if best[machine] == nil {
			machines = append(machines, machine)
		}
		best[machine] = fastest(best[machine], r)
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, m := range machines {
		s.Best = append(s.Best, best[m]...)
	}
	s.Model, s.Tokens = head.Model, head.Tokens
	return s, nil
}

// machine is a device with a backend.
func (r *Result) machine() string {
	if r.Backend == sim.OnHost {
		return r.Device
	}
	return fmt.Sprintf("%s (%s)", r.Device, r.Backend)
}

// Rate is TokensPerS as it is printed.
func (r *Result) Rate() document.Estimate {
	p := traces.Prediction{Basis: r.Basis, TokensPerSLow: r.Low, TokensPerSHigh: r.High}
	return p.Estimate(r.TokensPerS, r.TokensPerS)
}

// fastest keeps the bestShown fastest of a list and one more, the first of equals.
func fastest(list []Result, r *Result) []Result {
	at := len(list)
	for at > 0 && list[at-1].TokensPerS < r.TokensPerS {
		at--
	}
	if at == bestShown {
		return list
	}
	list = slices.Insert(list, at, *r)
	return list[:min(len(list), bestShown)]
}

// Document describes the summary.
func (s *Summary) Document() *document.Document {
	d := &document.Document{Name: "sweep", Title: "windrow sweep", Headline: s.headline(),
		Result: s}
	d.Fact("model", "%s", s.Model)
	d.Fact("trace", "%d tokens", s.Tokens)
	d.Fact("results", "%s, %d configurations, %d of them timed by table, the others as events",
		s.Results, s.Configurations, s.ByTable)
	d.Add("The fastest configurations of every device", "Hits are of the needed units. The row "+
		"cache is that of all layers together at its largest. I/O is the share of the time that "+
		"reads take.", *s.table())
	for i := range s.Best {
		r := &s.Best[i]
		for _, w := range r.Warnings {
			d.Warn(r.machine() + ": " + w)
		}
	}
	return d
}

// headline is the fastest of all.
func (s *Summary) headline() string {
	if len(s.Best) == 0 {
		return "no configuration is in " + s.Results
	}
	best := &s.Best[0]
	for i := range s.Best {
		if s.Best[i].TokensPerS > best.TokensPerS {
			best = &s.Best[i]
		}
	}
	return fmt.Sprintf("%s: %s on %s, %s ×%d, the fastest of %d configurations",
		best.Rate().Text("tokens/s"), best.Policy, best.machine(), best.Engine, best.Parallel,
		s.Configurations)
}

func (s *Summary) table() *document.Table {
	batches := slices.ContainsFunc(s.Best, func(r Result) bool { return r.Batch > 0 })
	text, number := document.Text, document.Number
	t := document.NewTable(text("device"), text("policy"), number("tokens/s", ""),
		document.IntervalColumn, document.BasisColumn, text("masks"), text("engine"),
		number("depth", ""), number("chunk", ""), number("gap", ""), number("I/O", "%"),
		number("hits", "%"), number("row cache", "MiB"))
	if batches {
		t.Columns = append(t.Columns, number("batch", ""))
	}
	for i := range s.Best {
		r := &s.Best[i]
		masks, chunk, io := "true", "no limit", 0.0
		if r.Predicted {
			masks = "predicted"
		}
		if r.Chunk > 0 {
			chunk = document.IEC(r.Chunk)
		}
		if r.Wall > 0 {
			io = float64(r.Parts[traces.PartIO].Nanos) / float64(r.Wall)
		}
		cells := append([]string{r.machine(), r.Policy}, r.Rate().Cells()...)
		cells = append(cells, masks, r.Engine, document.Count(r.Parallel), chunk,
			document.Count(r.Gap), document.Percent(io), document.Percent(r.HitRatio),
			document.Sig3(float64(r.CachedBytes)/float64(units.MiB)))
		if batches {
			cells = append(cells, document.Count(r.Batch))
		}
		t.Add(cells...)
	}
	return t
}

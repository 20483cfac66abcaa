package reproduce

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/windrow-sim/windrow/devicemodels"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/sim/speculative"
	"github.com/windrow-sim/windrow/traces"
)

// ErrTable marks an unknown name of a table.
var ErrTable = errors.New("reproduce: no such table")

// Kind says what our number of a row is.
type Kind string

// The kinds; see the package documentation.
const (
	Simulated     Kind = "simulated"
	Arithmetic    Kind = "arithmetic"
	Calibrated    Kind = "calibrated"
	Identity      Kind = "identity"
	NotReproduced Kind = "not reproduced"
)

// Input is one of the values that our number is computed from.
type Input struct {
	Name  string `json:"name"`
	Value string `json:"value"` // with its unit
	// From is the id of the published number that it is, or is calibrated on. Otherwise it names
	// the source in words.
	From string `json:"from"`
	// Calibrated says that the value was chosen to give the number From.
	Calibrated bool `json:"calibrated"`
}

// Row is one published number beside ours.
type Row struct {
	ID        string    `json:"id"`
	Table     string    `json:"table"`
	What      string    `json:"what"`
	Kind      Kind      `json:"kind"`
	Published Published `json:"published"`
	// Ours is in the unit of Published; 0 for a row that is not reproduced.
	Ours float64 `json:"ours"`
	// ErrorPercent is (ours − published)/published. For an interval it is to the nearer end, and 0
	// inside.
	ErrorPercent     float64 `json:"error_percent"`
	TolerancePercent float64 `json:"tolerance_percent"`
	// Why justifies the tolerance.
	Why string `json:"why,omitempty"`
	// calibrated rows: the parameter that the number fixes
	Fixes string `json:"fixes,omitempty"`
	// Reason is what was tried to explain a known miss, or why a number is not reproduced.
	Reason string  `json:"reason,omitempty"`
	Inputs []Input `json:"inputs"`
	Note   string  `json:"note,omitempty"`
}

// Within reports whether the row is inside its tolerance.
func (r *Row) Within() bool {
	return r.Kind != NotReproduced && math.Abs(r.ErrorPercent) <= r.TolerancePercent
}

// Known reports whether the row has a reason to be outside.
func (r *Row) Known() bool { return r.Reason != "" }

// Table names one group of rows.
type Table struct {
	Name  string `json:"name"`
	Title string `json:"title"`
}

// tables are the groups in the order of the output, with the methods that add their rows.
func tables() []struct {
	Table
	make func(*study) error
} {
	return []struct {
		Table
		make func(*study) error
	}{
		{Table{"flash", "LLM in a flash, Figure 2b and appendix C: throughput"}, (*study).flash},
		{Table{"table2", "LLM in a flash, Table 2: I/O of OPT-6.7B, fp16, M1 Max"},
			(*study).table2},
		{Table{"table3", "LLM in a flash, Table 3: time per token"}, (*study).table3},
		{Table{"table5", "LLM in a flash, Table 5: time per token, with standard deviations"},
			(*study).table5},
		{Table{"windowing", "LLM in a flash, appendix C: what a window keeps and loads"},
			(*study).windowing},
		{Table{"dram", "LLM in a flash, appendix C: share of the model in DRAM"}, (*study).dram},
		{Table{"figures", "LLM in a flash, Figures 4a, 7, 8 and 12: shapes"}, (*study).figures},
		{Table{"claims", "LLM in a flash: speedups and break-even shares"}, (*study).claims},
		{Table{"neuro", "NeuroPrefetcher: Mistral-7B on a Jetson AGX Orin"}, (*study).neuro},
	}
}

// Tables lists the groups of rows in the order of the output.
func Tables() []Table {
	var list []Table
	for _, t := range tables() {
		list = append(list, t.Table)
	}
	return list
}

// Options choose the tables and what is shown of them.
type Options struct {
	Table  string // name of one table; empty = all
	Seed   uint64 // of the synthetic traces
	Inputs bool   // the document lists the inputs of each of our numbers
}

// Result has the rows of the tables.
type Result struct {
	Seed   uint64  `json:"seed"`
	Tokens int     `json:"tokens"` // of a synthetic trace
	Tables []Table `json:"tables"`
	Rows   []Row   `json:"rows"` // grouped by table

	inputs bool // Options.Inputs
}

// Outside lists the rows that are outside their tolerance without a reason.
func (r *Result) Outside() []Row {
	return slices.DeleteFunc(slices.Clone(r.Rows), func(row Row) bool {
		return row.Known() || row.Within()
	})
}

// Count is the number of rows of a kind, and how many of them are within their tolerance.
func (r *Result) Count(k Kind) (rows, within int) {
	for i := range r.Rows {
		if r.Rows[i].Kind == k {
			rows++
			if r.Rows[i].Within() {
				within++
			}
		}
	}
	return rows, within
}

// Run computes the tables. The same options give the same result. The error for an unknown table is
// of kind ErrTable.
func Run(ctx context.Context, opt Options) (*Result, error) {
	published, err := parsePublished(publishedTable)
	if err != nil {
		return nil, err
	}
	return run(ctx, opt, published)
}

func run(ctx context.Context, opt Options, published map[string]Published) (*Result, error) {
	return newStudy(ctx, opt.Seed, published).run(opt)
}

// run makes the rows of the tables of opt.
func (s *study) run(opt Options) (*Result, error) {
	result := &Result{Seed: opt.Seed, Tokens: traceTokens, inputs: opt.Inputs}
	for _, t := range tables() {
		if opt.Table != "" && opt.Table != t.Name {
			continue
		}
		if err := s.ctx.Err(); err != nil {
			return nil, fmt.Errorf("reproduce: %w", err)
		}
		s.table = t.Name
		if err := t.make(s); err != nil {
			return nil, fmt.Errorf("reproduce: %s: %w", t.Name, err)
		}
		result.Tables = append(result.Tables, t.Table)
	}
	if len(result.Tables) == 0 {
		var names []string
		for _, t := range Tables() {
			names = append(names, t.Name)
		}
		return nil, fmt.Errorf("%w as %q; known are %s", ErrTable, opt.Table, strings.Join(names,
			", "))
	}
	if s.err != nil {
		return nil, s.err
	}
	result.Rows = s.rows
	return result, nil
}

// study is the state of one Run.
type study struct {
	ctx       context.Context // of the Run
	published map[string]Published
	used      map[string]bool // ids of the published numbers used
	misses    map[string]string
	seed      uint64
	table     string
	rows      []Row
	err       error // the first unknown id

	devices  map[string]*devicemodels.Device
	measured map[scenario]*measured
	drafted  *speculative.Result
	traces   map[traceKey]*traces.Memory
}

func newStudy(ctx context.Context, seed uint64, published map[string]Published) *study {
	return &study{ctx: ctx, published: published, used: map[string]bool{}, misses: knownMisses(),
		seed: seed, devices: map[string]*devicemodels.Device{},
		measured: map[scenario]*measured{}, traces: map[traceKey]*traces.Memory{}}
}

// fail keeps the first error of a row.
func (s *study) fail(err error) {
	if s.err == nil {
		s.err = err
	}
}

// pub returns a published number. An unknown id is an error of the whole run.
func (s *study) pub(id string) Published {
	p, ok := s.published[id]
	if !ok && s.err == nil {
		s.err = fmt.Errorf("reproduce: published.csv has no %q", id)
	}
	s.used[id] = true
	return p
}

// val is the published number, or the middle of its interval.
func (s *study) val(id string) float64 { return s.pub(id).Mid() }

// ms is a published time.
func (s *study) ms(id string) units.Nanos { return units.FromSeconds(s.val(id) / 1e3) }

// given is a published number as an input.
func (s *study) given(name, id string) Input {
	p := s.pub(id)
	return Input{Name: name, Value: strings.TrimSpace(p.String() + " " + p.Unit), From: id}
}

// calibrated is an input that was chosen to give the published number id.
func calibrated(name, value, id string) Input {
	return Input{Name: name, Value: value, From: id, Calibrated: true}
}

// other is an input with its source in words.
func other(name, value, from string) Input { return Input{Name: name, Value: value, From: from} }

// tolerance of a row, in percent, with its justification.
type tolerance struct {
	percent float64
	why     string
}

// row adds a row for the published number id. It marks known misses.
func (s *study) row(kind Kind, id, what string, ours float64, t tolerance, inputs []Input) *Row {
	return s.against(kind, id, s.pub(id), what, ours, t, inputs)
}

// against adds a row whose published number is derived from others.
func (s *study) against(kind Kind, id string, p Published, what string, ours float64, t tolerance,
	inputs []Input) *Row {
	return s.add(Row{ID: id, Kind: kind, What: what, Published: p, Ours: ours,
		TolerancePercent: t.percent, Why: t.why, Inputs: inputs, Reason: s.misses[id]})
}

// calibrate adds a row whose published number fixes a parameter. Its tolerance is that of a rounded
// number: Table 3 rounds the numbers of Table 5.
func (s *study) calibrate(id, what string, ours float64, fixes string) *Row {
	return s.add(Row{ID: id, Kind: Calibrated, What: what, Published: s.pub(id), Ours: ours,
		TolerancePercent: 2, Why: "the number fixes the parameter; it is rounded", Fixes: fixes})
}

// without adds a row that is not reproduced.
func (s *study) without(id, what, reason string) {
	s.add(Row{ID: id, Kind: NotReproduced, What: what, Published: s.pub(id), Reason: reason})
}

func (s *study) add(row Row) *Row {
	row.Table = s.table
	if row.Kind != NotReproduced {
		row.ErrorPercent = row.Published.errorPercent(row.Ours)
	}
	if row.Inputs == nil {
		row.Inputs = []Input{}
	}
	s.rows = append(s.rows, row)
	return &s.rows[len(s.rows)-1]
}

// derived is a published number computed from others, with the weakest quality of them.
func derived(id string, low, high float64, unit string, from ...Published) Published {
	p := Published{ID: id, Low: low, High: high, Unit: unit, Quality: "derived"}
	for _, f := range from {
		if !strings.Contains(p.Source, f.Source) {
			p.Source = strings.TrimPrefix(p.Source+"; "+f.Source, "; ")
		}
		if f.Quality == "figure-read" || f.Quality == "secondary" {
			p.Quality = f.Quality
		}
	}
	return p
}

package shapes

import (
	_ "embed"
	"encoding/csv"
	"fmt"
	"strconv"
	"strings"

	"github.com/windrow-sim/windrow/internal/nearest"
	"github.com/windrow-sim/windrow/traces"
)

//go:embed models.csv
var table string

// halfBytes is the size of a weight in all shapes of the table: a 16-bit float.
const halfBytes = 2

// Info holds facts about a model beyond its traces.Shape.
type Info struct {
	Name string // as published
	// "relu", "silu", "relu2" or "drelu"; "relu" for models that the papers relufied, see Note
	Activation      string
	Gated           bool   // the FFN has gate, up and down projections; if false, up and down
	TiedEmbeddings  bool   // input embedding and output head share their weights
	Experts         int    // experts per layer, each with its own d_ffn units; 0 for a dense model
	ExpertsPerToken int    // experts that the router selects; 0 for a dense model
	Params          int64  // all parameters
	Source          string // source of the numbers
	// "text": read in the source; "derived": from another model of the same shape
	Quality string
	Note    string
}

// Lookup returns the shape of a model with 16-bit weights. Case does not matter. The error for an
// unknown name has the nearest known name and a list of all.
func Lookup(name string) (traces.Shape, Info, error) {
	rows, err := readTable()
	if err != nil {
		return traces.Shape{}, Info{}, err
	}
	for _, r := range rows {
		if strings.EqualFold(r["model"], strings.TrimSpace(name)) {
			return parseRow(r)
		}
	}
	known := namesOf(rows)
	guess, _ := nearest.Name(name, known)
	return traces.Shape{}, Info{}, fmt.Errorf("shapes: model %q: not in the table; did you mean "+
		"%q? Known are %s",
		name, guess, strings.Join(known, ", "))
}

// Names returns the names of all models in the order of the table.
func Names() []string {
	rows, err := readTable()
	if err != nil {
		return nil // cannot fail: a test reads the whole embedded table
	}
	return namesOf(rows)
}

func namesOf(rows []map[string]string) []string {
	names := make([]string, len(rows))
	for i, r := range rows {
		names[i] = r["model"]
	}
	return names
}

// readTable returns the rows of the embedded table, each as column name → value.
func readTable() ([]map[string]string, error) {
	lines, err := csv.NewReader(strings.NewReader(table)).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("shapes: models.csv: %w", err)
	}
	rows := make([]map[string]string, 0, len(lines))
	for _, line := range lines[1:] {
		row := make(map[string]string, len(line))
		for i, value := range line {
			row[lines[0][i]] = value
		}
		rows = append(rows, row)
	}
	return rows, nil
}

func parseRow(r map[string]string) (traces.Shape, Info, error) {
	p := rowParser{row: r}
	s := traces.Shape{
		DModel: p.int("hidden_size"), Layers: p.int("layers"), DFFN: p.int("ffn_size"),
		Heads: p.int("heads"), KVHeads: p.int("kv_heads"), HeadDim: p.int("head_dim"),
		Vocab: p.int("vocab_size"), MaxPos: p.int("max_positions"),
		Rows: 2, DTypeSize: halfBytes,
	}
	info := Info{
		Name: r["model"], Activation: r["activation"],
		Gated: p.int("gated") == 1, TiedEmbeddings: p.int("tied_embeddings") == 1,
		Experts: p.int("experts"), ExpertsPerToken: p.int("experts_per_token"),
		Params: int64(p.int("params_total")),
		Source: r["source"], Quality: r["quality"], Note: r["note"],
	}
	if info.Gated {
		s.Rows = 3
	}
	return s, info, p.err
}

// rowParser reads numbers from a row and keeps the first error. An empty cell is 0.
type rowParser struct {
	row map[string]string
	err error
}

func (p *rowParser) int(column string) int {
	text := p.row[column]
	if text == "" {
		return 0
	}
	v, err := strconv.Atoi(text)
	if err != nil && p.err == nil {
		p.err = fmt.Errorf("shapes: models.csv: %s of %s: %w", column, p.row["model"], err)
	}
	return v
}

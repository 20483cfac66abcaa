package sweep

import (
	"cmp"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/windrow-sim/windrow/internal/plain"
	"github.com/windrow-sim/windrow/traces"
	"github.com/windrow-sim/windrow/traces/parquet"
)

// field is one column of a table of results.
type field struct {
	parquet.Column
	of func(r *Result) any // returns nil if the value is not known
}

// fields are the columns, named as in the lines of JSON. The name of a bound says that it is one.
func fields() []field {
	list := []field{
		integer("configuration", func(r *Result) int64 { return int64(r.Index) }),
		integer("batch", func(r *Result) int64 { return int64(r.Batch) }),
		known("active_share", func(r *Result) *float64 { return r.Share }),
		known("false_negatives", func(r *Result) *float64 { return r.FalseNegatives }),
		known("false_positives", func(r *Result) *float64 { return r.FalsePositives }),
		text("device", func(r *Result) string { return r.Device }),
		text("backend", func(r *Result) string { return cmp.Or(string(r.Backend), "cpu") }),
		boolean("predicted", func(r *Result) bool { return r.Predicted }),
		integer("predictor_rank", func(r *Result) int64 { return int64(r.PredictorRank) }),
		text("policy", func(r *Result) string { return r.Policy }),
		integer("gap_records", func(r *Result) int64 { return int64(r.Gap) }),
		boolean("coalesce", func(r *Result) bool { return r.Coalesce }),
		integer("align_bytes", func(r *Result) int64 { return int64(r.Align) }),
		integer("chunk_bytes", func(r *Result) int64 { return int64(r.Chunk) }),
		text("engine", func(r *Result) string { return r.Engine }),
		integer("parallel", func(r *Result) int64 { return int64(r.Parallel) }),
		text("timing", func(r *Result) string { return string(r.Timing) }),
		known("audit_percent", func(r *Result) *float64 { return r.AuditPercent }),
		integer("tokens", func(r *Result) int64 { return int64(r.Tokens) }),
		decimal("tokens_per_s", func(r *Result) float64 { return r.TokensPerS }),
		known("tokens_per_s_low", func(r *Result) *float64 { return r.Low }),
		known("tokens_per_s_high", func(r *Result) *float64 { return r.High }),
		text("basis", func(r *Result) string { return string(r.Basis) }),
		known("tokens_per_s_prefetched_bound", func(r *Result) *float64 { return r.Prefetched }),
		integer("token_p50_ns", func(r *Result) int64 { return int64(r.TokenP50) }),
		integer("token_p99_ns", func(r *Result) int64 { return int64(r.TokenP99) }),
		integer("wall_ns", func(r *Result) int64 { return int64(r.Wall) }),
	}
	for p := range traces.Part(traces.Parts) {
		list = append(list, integer(p.String()+"_ns", func(r *Result) int64 {
			return int64(r.Parts[p].Nanos)
		}))
	}
	return append(list,
		integer("flash_bytes_read", func(r *Result) int64 { return int64(r.Bytes) }),
		integer("requests", func(r *Result) int64 { return r.Requests }),
		decimal("mean_depth", func(r *Result) float64 { return r.MeanDepth }),
		integer("hits", func(r *Result) int64 { return r.Hits }),
		integer("misses", func(r *Result) int64 { return r.Misses }),
		knownCount("least_misses", func(r *Result) *int64 { return r.Least }),
		integer("evictions", func(r *Result) int64 { return r.Evictions }),
		decimal("hit_ratio", func(r *Result) float64 { return r.HitRatio }),
		integer("cached_bytes_max", func(r *Result) int64 { return int64(r.CachedBytes) }),
		text("warnings", func(r *Result) string { return strings.Join(r.Warnings, "; ") }),
	)
}

func column(name string, kind parquet.Kind, of func(r *Result) any) field {
	return field{parquet.Column{Name: name, Kind: kind}, of}
}

func integer(name string, of func(r *Result) int64) field {
	return column(name, parquet.Int, func(r *Result) any { return of(r) })
}

func decimal(name string, of func(r *Result) float64) field {
	return column(name, parquet.Float, func(r *Result) any { return of(r) })
}

func text(name string, of func(r *Result) string) field {
	return column(name, parquet.Text, func(r *Result) any { return of(r) })
}

func boolean(name string, of func(r *Result) bool) field {
	return column(name, parquet.Bool, func(r *Result) any { return of(r) })
}

// known is a column of numbers that may be unknown, knownCount one of whole numbers.
func known(name string, of func(r *Result) *float64) field {
	return optional(name, parquet.Float, of)
}

func knownCount(name string, of func(r *Result) *int64) field {
	return optional(name, parquet.Int, of)
}

func optional[T any](name string, kind parquet.Kind, of func(r *Result) *T) field {
	f := column(name, kind, func(r *Result) any {
		if v := of(r); v != nil {
			return *v
		}
		return nil
	})
	f.Optional = true
	return f
}

// WriteCSV turns a file of results into a table: one line of names with units, then one line per
// configuration. Unknown values are empty.
func WriteCSV(w io.Writer, r io.Reader) error {
	list := fields()
	out := csv.NewWriter(w)
	line := make([]string, len(list))
	for i, f := range list {
		line[i] = f.Name
	}
	if err := out.Write(line); err != nil {
		return fmt.Errorf("sweep: %w", err)
	}
	_, err := Read(r, func(r *Result) error {
		for i, f := range list {
			line[i] = csvText(f.of(r))
		}
		return out.Write(line)
	})
	if err != nil {
		return err
	}
	out.Flush()
	if err := out.Error(); err != nil {
		return fmt.Errorf("sweep: %w", err)
	}
	return nil
}

func csvText(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	case string:
		return plain.Cell(v)
	}
	return fmt.Sprint(v)
}

// WriteParquet turns a file of results into a Parquet file with the columns of WriteCSV. Unknown
// values are null. The header, with the whole scenario, is the metadata "windrow_sweep".
func WriteParquet(w io.Writer, r io.Reader) error {
	list := fields()
	var columns []parquet.Column
	for _, f := range list {
		columns = append(columns, f.Column)
	}
	out, err := parquet.NewWriter(w, columns)
	if err != nil {
		return err
	}
	row := make([]any, len(list))
	head, err := Read(r, func(r *Result) error {
		for i, f := range list {
			row[i] = f.of(r)
		}
		return out.Row(row...)
	})
	if err != nil {
		return err
	}
	line, err := json.Marshal(head)
	if err != nil {
		return fmt.Errorf("sweep: header: %w", err)
	}
	return out.Close(parquet.Entry{Key: "windrow_sweep", Value: string(line)})
}

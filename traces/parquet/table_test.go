package parquet_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"testing"

	"github.com/windrow-sim/windrow/traces/parquet"
	"github.com/windrow-sim/windrow/traces/parquet/parquettest"
)

// groupRows is how many rows the writer collects.
const groupRows = 1 << 15

var testColumns = []parquet.Column{
	{Name: "flag", Kind: parquet.Bool}, {Name: "count", Kind: parquet.Int}, {Name: "rate",
		Kind: parquet.Float}, {Name: "name", Kind: parquet.Text},
	{Name: "flag?", Kind: parquet.Bool, Optional: true}, {Name: "count?", Kind: parquet.Int,
		Optional: true}, {Name: "rate?", Kind: parquet.Float, Optional: true}, {Name: "name?",
		Kind: parquet.Text, Optional: true},
}

// testRow is made so that optional values are missing in different rows, and texts repeat, are
// empty and are not ASCII.
func testRow(i int) []any {
	row := []any{i%3 == 0, int64(i) * -1_000_003, float64(i) / 7, []string{"", "a",
		"Mähdrescher"}[i%3], i%5 == 0, int64(i) << 33, -float64(i), fmt.Sprint(i)}
	for c := 4; c < len(row); c++ {
		if i%(c-2) == 0 {
			row[c] = nil
		}
	}
	return row
}

func write(t *testing.T, rows int, metadata ...parquet.Entry) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := parquet.NewWriter(&out, testColumns)
	if err != nil {
		t.Fatal(err)
	}
	for i := range rows {
		if err := w.Row(testRow(i)...); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(metadata...); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// What is written is read back, for no rows, parts of a byte of bits, and several groups.
func TestRoundTrip(t *testing.T) {
	for _, rows := range []int{0, 1, 7, 8, 9, 1000, groupRows, 2*groupRows + 17} {
		data := write(t, rows, parquet.Entry{Key: "what", Value: "a test"}, parquet.Entry{
			Key: "sweep", Value: "{}"})
		if again := write(t, rows, parquet.Entry{Key: "what", Value: "a test"}, parquet.Entry{
			Key: "sweep", Value: "{}"}); !bytes.Equal(data, again) {
			t.Errorf("%d rows: other bytes the second time", rows)
		}
		f := read(t, data)
		if len(f.Rows) != rows || !reflect.DeepEqual(f.Columns, testColumns) ||
			!reflect.DeepEqual(f.Metadata, []parquet.Entry{{Key: "what", Value: "a test"},
				{Key: "sweep", Value: "{}"}}) {
			t.Fatalf("%d rows of %v with %v, want %d of %v", len(f.Rows), f.Columns, f.Metadata,
				rows, testColumns)
		}
		for i, row := range f.Rows {
			if want := testRow(i); !reflect.DeepEqual(row, want) {
				t.Fatalf("row %d is %v, want %v", i, row, want)
			}
		}
	}
}

// testdata/rows.parquet is write(t, 40), and rows.json what pyarrow 26.0.1 reads from it: the
// reader of these tests and pyarrow agree.
func TestPyarrowAgrees(t *testing.T) {
	data, err := os.ReadFile("testdata/rows.parquet")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("testdata/rows.json")
	if err != nil {
		t.Fatal(err)
	}
	var oracle []map[string]any
	if err := json.Unmarshal(text, &oracle); err != nil {
		t.Fatal(err)
	}
	f := read(t, data)
	if len(oracle) != 40 || len(f.Rows) != len(oracle) {
		t.Fatalf("%d rows, pyarrow reads %d, want 40", len(f.Rows), len(oracle))
	}
	for i, want := range oracle {
		for c, column := range f.Columns {
			got := f.Rows[i][c]
			if n, ok := got.(int64); ok {
				got = float64(n) // as JSON has it
			}
			if got != want[column.Name] {
				t.Errorf("row %d: %s is %v, pyarrow reads %v", i, column.Name, got,
					want[column.Name])
			}
		}
	}
}

func TestRefuses(t *testing.T) {
	for _, columns := range [][]parquet.Column{nil, {{Name: "", Kind: parquet.Int}},
		{{Name: "a", Kind: parquet.Int}, {Name: "a", Kind: parquet.Text}},
		{{Name: "a", Kind: "date"}}} {
		if _, err := parquet.NewWriter(io.Discard, columns); !errors.Is(err, parquet.ErrTable) {
			t.Errorf("columns %v: error %v", columns, err)
		}
	}
	w, err := parquet.NewWriter(io.Discard, []parquet.Column{{Name: "a", Kind: parquet.Int},
		{Name: "b", Kind: parquet.Text, Optional: true}})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range [][]any{{}, {int64(1)}, {nil, "x"}, {1, "x"}, {int64(1), 2.0}, {"x", nil}} {
		if err := w.Row(row...); !errors.Is(err, parquet.ErrTable) {
			t.Errorf("row %v: error %v", row, err)
		}
	}
	full := errors.New("full")
	if w, err = parquet.NewWriter(&limited{4, full}, testColumns); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Row(testRow(1)...), w.Close()); !errors.Is(err, full) {
		t.Errorf("a full disk: error %v", err)
	}
}

// What is cut short is no table.
func TestFooterComesLast(t *testing.T) {
	data := write(t, 100)
	for _, n := range []int{0, 3, 4, 100, len(data) - 1} {
		if _, err := parquettest.Read(data[:n]); err == nil {
			t.Errorf("%d of %d bytes are read as a table", n, len(data))
		}
	}
}

func read(t *testing.T, data []byte) *parquettest.File {
	t.Helper()
	f, err := parquettest.Read(data)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// limited takes so many bytes.
type limited struct {
	left int
	err  error
}

func (l *limited) Write(data []byte) (int, error) {
	if len(data) > l.left {
		return 0, l.err
	}
	l.left -= len(data)
	return len(data), nil
}

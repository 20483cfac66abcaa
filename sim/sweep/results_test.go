package sweep

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/traces/parquet"
	"github.com/windrow-sim/windrow/traces/parquet/parquettest"
)

var errStop = errors.New("stop here")

// sweepTo writes a file of results, and stops after so many.
func sweepTo(t testing.TB, path string, h *Header, resume bool, most int) error {
	t.Helper()
	configs := smallSweep(t)
	h.Format, h.Configurations = FormatVersion, len(configs)
	f, err := Create(path, h, resume)
	if err != nil {
		return err
	}
	defer f.Abort()
	from, to := h.Shard.Range(len(configs))
	err = Run(context.Background(), FromSource(smallTrace(t), 0), List(configs[from:to]),
		Options{Base: from, First: f.Done()}, func(r *Result) error {
			if f.Done() == most {
				return errStop
			}
			return f.Write(r)
		})
	if err != nil {
		return err
	}
	return f.Finish()
}

// smallSweep is a few configurations, then batches.
func smallSweep(t testing.TB) []Config {
	t.Helper()
	list := mixed(testDevice("servers", nil))[40:]
	return append(list[3:], inBatches(list[:14], 1, 3)...)
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// body is the results of a file, without its header.
func body(text string) string {
	_, rest, _ := strings.Cut(text, "\n")
	return rest
}

func TestShardsMakeTheWhole(t *testing.T) {
	dir := t.TempDir()
	if err := sweepTo(t, filepath.Join(dir, "whole"), &Header{}, false, 1000); err != nil {
		t.Fatal(err)
	}
	union := ""
	for i := range 3 {
		path := filepath.Join(dir, "shard")
		if err := sweepTo(t, path, &Header{Shard: Shard{i + 1, 3}}, false, 1000); err != nil {
			t.Fatal(err)
		}
		part := body(read(t, path))
		if part == "" {
			t.Errorf("shard %d is empty", i+1)
		}
		union += part
	}
	if union != body(read(t, filepath.Join(dir, "whole"))) {
		t.Error("three shards hold other results than the whole")
	}
	for _, text := range []string{"", "1", "0/2", "3/2", "a/b", "1/2/3", "-1/2"} {
		if s, err := ParseShard(text); err == nil {
			t.Errorf("shard %q is %v", text, s)
		}
	}
}

// An interrupted file holds whole results; going on with it makes the file that an uninterrupted
// sweep makes.
func TestResume(t *testing.T) {
	dir := t.TempDir()
	whole, path := filepath.Join(dir, "whole"), filepath.Join(dir, "results")
	if err := sweepTo(t, whole, &Header{}, false, 1000); err != nil {
		t.Fatal(err)
	}
	want := read(t, whole)
	if err := sweepTo(t, path, &Header{}, false, 7); !errors.Is(err, errStop) {
		t.Fatal(err)
	}
	partial := read(t, Partial(path))
	if !strings.HasPrefix(want, partial) || strings.Count(partial, "\n") != 8 {
		t.Fatalf("an interrupted file of %d lines, not the start of the whole",
			strings.Count(partial, "\n"))
	}
	if err := sweepTo(t, path, &Header{}, false, 1000); !errors.Is(err, ErrResults) {
		t.Errorf("an unfinished file is overwritten: %v", err)
	}
	if err := sweepTo(t, path, &Header{Tool: "another"}, true, 1000); !errors.Is(err, ErrResults) {
		t.Errorf("results of another sweep are continued: %v", err)
	}
	for name, left := range map[string]string{
		"whole lines":  partial,
		"half a line":  partial[:len(partial)-40],
		"half a head":  partial[:20],
		"nothing":      "",
		"noise behind": partial + "\x00\x00\x00\n",
		"all of it":    want,
	} {
		if err := os.WriteFile(Partial(path), []byte(left), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := sweepTo(t, path, &Header{}, true, 1000); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if read(t, path) != want {
			t.Errorf("%s: the resumed file differs", name)
		}
		if _, err := os.Stat(Partial(path)); err == nil {
			t.Errorf("%s: the unfinished file is still there", name)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	lines := strings.SplitAfter(partial, "\n")
	swapped := slices.Clone(lines)
	swapped[2], swapped[3] = swapped[3], swapped[2]
	for name, c := range map[string]struct{ left, want string }{
		"a digit": {strings.Replace(partial, `"configuration":3`, `"configuration":4`, 1),
			"line 5: it was changed"},
		"the last": {strings.TrimSuffix(partial, "\"}\n") + "0\"}\n",
			"line 8: it was changed"},
		"a line twice":   {partial + lines[7], "line 9: it is result 6 where 7 is next"},
		"two lines":      {strings.Join(swapped, ""), "line 3: it is result 2 where 1 is next"},
		"noise within":   {lines[0] + lines[1] + "\x00\n" + lines[2], "line 3: it is cut off"},
		"a line is gone": {lines[0] + lines[2], "line 2: it is result 1 where 0 is next"},
		"without a hash": {lines[0] + `{"configuration":0}` + "\n", "line 2: it is cut off"},
	} {
		if err := os.WriteFile(Partial(path), []byte(c.left), 0o644); err != nil {
			t.Fatal(err)
		}
		err := sweepTo(t, path, &Header{}, true, 1000)
		if !errors.Is(err, ErrResults) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if got := read(t, Partial(path)); got != c.left {
			t.Errorf("%s: the file was changed", name)
		}
	}
	if err := os.Remove(Partial(path)); err != nil {
		t.Fatal(err)
	}
	// What is whole is not made again: none may be written.
	if err := sweepTo(t, whole, &Header{}, true, 0); err != nil {
		t.Errorf("resuming a whole file: %v", err)
	}
	if err := sweepTo(t, filepath.Join(dir, "none"), &Header{}, false, 0); !errors.Is(err,
		errStop) {
		t.Fatal(err)
	}
	if _, err := os.Stat(Partial(filepath.Join(dir, "none"))); err == nil {
		t.Error("a file without results stays")
	}
}

// An interruption in the second pass keeps the results of the first, and going on makes the same
// file.
func TestInterruptedSecondPass(t *testing.T) {
	dir := t.TempDir()
	whole, path := filepath.Join(dir, "whole"), filepath.Join(dir, "results")
	if err := sweepTo(t, whole, &Header{}, false, 1000); err != nil {
		t.Fatal(err)
	}
	configs := smallSweep(t)
	first := slices.IndexFunc(configs, func(c Config) bool { return c.Batch > 0 })
	f, err := Create(path, &Header{Format: FormatVersion, Configurations: len(configs)}, false)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	opt := Options{Progress: func(done, total int, pass float64) {
		if done != f.Done() || total != len(configs) {
			t.Errorf("%d of %d told, %d of %d in the file", done, total, f.Done(), len(configs))
		}
		if done == first && pass > 0 {
			cancel()
		}
	}}
	err = Run(ctx, FromSource(smallTrace(t), 0), List(configs), opt, f.Write)
	f.Abort()
	if !errors.Is(err, context.Canceled) || f.Done() != first {
		t.Fatalf("%d results after an interruption behind %d: %v", f.Done(), first, err)
	}
	if err := sweepTo(t, path, &Header{}, true, 1000); err != nil {
		t.Fatal(err)
	}
	if read(t, path) != read(t, whole) {
		t.Error("the resumed file differs")
	}
}

func TestTablesHoldEveryResult(t *testing.T) {
	path := filepath.Join(t.TempDir(), "results")
	if err := sweepTo(t, path, &Header{}, false, 1000); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	text := read(t, path)
	if err := WriteCSV(&out, strings.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(&out).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if want := len(smallSweep(t)) + 1; len(rows) != want {
		t.Fatalf("%d lines, want %d", len(rows), want)
	}
	column := func(name string) int { return slices.Index(rows[0], name) }
	n := 1
	_, err = Read(strings.NewReader(text), func(r *Result) error {
		row := rows[n]
		if row[column("policy")] != r.Policy ||
			row[column("io_ns")] != strconv.FormatInt(int64(r.Parts[2].Nanos), 10) ||
			row[column("evictions")] != strconv.FormatInt(r.Evictions, 10) ||
			row[column("basis")] != string(r.Basis) {
			t.Errorf("line %d is %v, want %+v", n, row, r)
		}
		n++
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	// The same values in Parquet, where what is not known is null.
	var file, again bytes.Buffer
	if err := errors.Join(WriteParquet(&file, strings.NewReader(text)), WriteParquet(&again,
		strings.NewReader(text))); err != nil || !bytes.Equal(file.Bytes(), again.Bytes()) {
		t.Fatalf("other bytes the second time, or %v", err)
	}
	back, err := parquettest.Read(file.Bytes())
	if err != nil || len(back.Rows) != len(rows)-1 || len(back.Columns) != len(rows[0]) {
		t.Fatalf("%v, %d lines of CSV: %v", back, len(rows), err)
	}
	for i, row := range back.Rows {
		for c, v := range row {
			if got := csvText(v); got != rows[i+1][c] || back.Columns[c].Name != rows[0][c] ||
				v == nil && !back.Columns[c].Optional {
				t.Errorf("row %d, column %s: %v in Parquet, %s in CSV", i, back.Columns[c].Name, v,
					rows[i+1][c])
			}
		}
	}
	head, _, _ := strings.Cut(text, "\n")
	if want := []parquet.Entry{{Key: "windrow_sweep", Value: head}}; !slices.Equal(back.Metadata,
		want) {
		t.Errorf("metadata %v, want %v", back.Metadata, want)
	}
	for _, bad := range []string{"", "{}\n", text[:len(text)-5], text + "x\n"} {
		for _, write := range []func(io.Writer, io.Reader) error{WriteCSV, WriteParquet} {
			if err := write(io.Discard, strings.NewReader(bad)); !errors.Is(err, ErrResults) {
				t.Errorf("a broken file of %d bytes: error %v", len(bad), err)
			}
		}
	}
}

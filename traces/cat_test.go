package traces

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/internal/mask"
)

// twoTokens is small enough to write its rows by hand.
func twoTokens() *Memory {
	m := &Memory{Head: testHeader(true)}
	m.Head.Layers, m.Head.Units = 2, 70
	m.List = []Token{
		{Seq: 0, Pos: 4, Phase: Prefill, ID: 11,
			Active: []mask.Mask{{1<<0 | 1<<63, 1 << 5}, {0, 0}}, Predicted: []mask.Mask{{1, 0},
				{2, 1}}},
		{Seq: 2, Pos: 0, Phase: Decode, ID: 12,
			Active: []mask.Mask{{4, 0}, {8, 0}}, Predicted: []mask.Mask{{0, 0}, {8, 0}}},
	}
	return m
}

func TestWriteCSV(t *testing.T) {
	var b bytes.Buffer
	if err := WriteCSV(&b, twoTokens(), CatOptions{Units: true}); err != nil {
		t.Fatal(err)
	}
	equal(t, "csv", `seq,pos,phase,token,layer,active_count,predicted_count,active,predicted
0,4,prefill,11,0,3,1,0 63 69,0
0,4,prefill,11,1,0,2,,1 64
2,0,decode,12,0,1,0,2,
2,0,decode,12,1,1,1,3,3
`, b.String())
	b.Reset()
	m := twoTokens()
	m.Head.HasPredicted = false
	if err := WriteCSV(&b, m, CatOptions{From: 1, Count: 9}); err != nil {
		t.Fatal(err)
	}
	equal(t, "csv", "seq,pos,phase,token,layer,active_count\n2,0,decode,12,0,1\n"+
		"2,0,decode,12,1,1\n", b.String())
}

func TestWriteJSONL(t *testing.T) {
	var b bytes.Buffer
	if err := WriteJSONL(&b, twoTokens(), CatOptions{Units: true, Count: 1}); err != nil {
		t.Fatal(err)
	}
	type row struct {
		Seq, Pos, Token, Layer, Active_Count, Predicted_Count int
		Phase                                                 string
		Active, Predicted                                     []int
	}
	var rows []row
	for d := json.NewDecoder(&b); ; {
		var r row
		if err := d.Decode(&r); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, r)
	}
	equal(t, "rows", []row{
		{Pos: 4, Token: 11, Phase: "prefill", Active_Count: 3, Predicted_Count: 1, Active: []int{
			0, 63, 69}, Predicted: []int{0}},
		{Pos: 4, Token: 11, Layer: 1, Phase: "prefill", Predicted_Count: 2, Active: []int{},
			Predicted: []int{1, 64}},
	}, rows)
}

// The rows of a source do not depend on where it is.
func TestCatIsTheSameFromFileAndMemory(t *testing.T) {
	src := testTrace(9, true)
	var want bytes.Buffer
	if err := WriteCSV(&want, src, CatOptions{Units: true}); err != nil {
		t.Fatal(err)
	}
	for _, compress := range []string{"none", "zstd"} {
		var got bytes.Buffer
		if err := WriteCSV(&got, open(t, save(t, src, WriteOptions{Compress: compress})),
			CatOptions{Units: true}); err != nil {
			t.Fatal(err)
		}
		equal(t, compress, want.String(), got.String())
	}
}

type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

func TestCatReportsErrors(t *testing.T) {
	if err := WriteCSV(failingWriter{}, twoTokens(), CatOptions{}); !errors.Is(err,
		io.ErrShortWrite) {
		t.Errorf("want ErrShortWrite, got %v", err)
	}
	for _, o := range []CatOptions{{From: 3}, {From: -1}, {Count: -1}} {
		if err := WriteJSONL(io.Discard, twoTokens(), o); err == nil {
			t.Errorf("%+v: no error", o)
		}
	}
}

func TestMerge(t *testing.T) {
	a, b := testTrace(12, true), testTrace(7, true)
	b.Head.Seed = 7
	for i := range b.List {
		b.List[i].Seq += 100
	}
	dst := filepath.Join(t.TempDir(), "all.trace.arrow")
	pa, pb := save(t, a, WriteOptions{}), save(t, b, WriteOptions{Compress: "zstd"})
	if err := Merge(t.Context(), dst, pa, pb); err != nil {
		t.Fatal(err)
	}
	var want []Token
	want = append(want, a.List...) // sequences 0, 1, 2
	for _, tok := range b.List {
		tok.Seq -= 97 // 100 and 101 become 3 and 4
		want = append(want, tok)
	}
	r := open(t, dst)
	equal(t, "tokens", want, collect(t, r))
	if h := r.Header(); h.Seed != a.Head.Seed || len(strings.Fields(h.Host["merged"])) != 2 ||
		h.Host["os"] != "test" || !r.Complete() {
		t.Errorf("header %+v, complete %t", h, r.Complete())
	}
}

func TestMergeKeepsTheMarkOfAnInterruption(t *testing.T) {
	src := testTrace(4, false)
	dir := t.TempDir()
	w, err := Create(filepath.Join(dir, "x.trace.arrow"), src.Head, WriteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Append(&src.List[0]); err != nil {
		t.Fatal(err)
	}
	part, err := w.Interrupt()
	if err != nil {
		t.Fatal(err)
	}
	dst := filepath.Join(dir, "all.trace.arrow")
	if err := Merge(t.Context(), dst, save(t, src, WriteOptions{}), part); err != nil {
		t.Fatal(err)
	}
	if open(t, dst).Complete() {
		t.Error("a merge with an interrupted trace counts as complete")
	}
}

func TestMergeRefuses(t *testing.T) {
	src := testTrace(4, false)
	base := save(t, src, WriteOptions{})
	dir := t.TempDir()
	dst := filepath.Join(dir, "all.trace.arrow")
	edits := map[string]func(*Header){
		"units":            func(h *Header) { h.Units = 151 },
		"model":            func(h *Header) { h.Model = "other" },
		"model_sha256":     func(h *Header) { h.ModelSHA256 = "cd" },
		"shape":            func(h *Header) { h.Shape.DModel = 9 },
		"bytes_per_unit":   func(h *Header) { h.UnitBytes++ },
		"unit_kind":        func(h *Header) { h.UnitKind = Expert },
		"threshold":        func(h *Header) { h.Threshold = 0.5 },
		"synthetic":        func(h *Header) { h.Synthetic = true },
		"tokenizer_sha256": func(h *Header) { h.Tokenizer = "t" },
	}
	for name, edit := range edits {
		other := testTrace(4, false)
		edit(&other.Head)
		err := Merge(t.Context(), dst, base, save(t, other, WriteOptions{}))
		if !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), "differ in "+name+" ") {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if err := Merge(t.Context(), dst); err == nil {
		t.Error("no sources: no error")
	}
	if err := Merge(t.Context(), base, base, base); err == nil {
		t.Error("merge onto a source: no error")
	}
	if err := Merge(t.Context(), dst, writeForeign(t, foreign{edit: func(v map[string][]any) {
		v["layer"][2] = 7
	}})); !errors.Is(err, ErrFormat) {
		t.Errorf("a source with a bad row: %v", err)
	}
	if left := names(t, dir); len(left) != 0 {
		t.Errorf("refused merges left %q", left)
	}
	if _, err := os.Stat(base); err != nil {
		t.Error(err)
	}
}

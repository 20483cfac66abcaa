package traces

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/windrow-sim/windrow/internal/mask"
	"github.com/windrow-sim/windrow/internal/units"
)

// testHeader is a small model whose last mask word is partly used.
func testHeader(predicted bool) Header {
	return Header{
		SchemaVersion: SchemaVersion, Tool: "windrow test", UnitKind: Neuron, Layers: 3, Units: 150,
		UnitBytes: 16 * units.KiB,
		Model:     "tiny", ModelSHA256: "ab", Shape: Shape{DModel: 8, Layers: 3, DFFN: 150, Rows: 2,
			DTypeSize: 2},
		Activation: "relu", Threshold: 0.25, DType: "f16", Seed: 1<<63 + 1, Sampling: "greedy",
		HasPredicted: predicted,
		Host:         map[string]string{"os": "test", "cpu": "x"},
	}
}

// mix is a fixed integer hash (splitmix64), so that fixtures need no seed and no state.
func mix(x uint64) uint64 {
	x += 0x9E3779B97F4A7C15
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	return x ^ x>>31
}

func testMasks(h *Header, salt uint64) []mask.Mask {
	masks := make([]mask.Mask, h.Layers)
	all := mask.New(h.Units)
	all.Fill(h.Units)
	for l := range masks {
		masks[l] = mask.New(h.Units)
		for k := range masks[l] {
			masks[l][k] = mix(salt + uint64(l*1000+k))
		}
		masks[l].And(all)
	}
	return masks
}

// testTrace has n tokens in sequences of five, two of them prefill.
func testTrace(n int, predicted bool) *Memory {
	m := &Memory{Head: testHeader(predicted)}
	for i := range n {
		t := Token{Seq: uint32(i / 5), Pos: uint32(i % 5), ID: uint32(mix(uint64(i)) % 32000)}
		if i%5 >= 2 {
			t.Phase = Decode
		}
		t.Active = testMasks(&m.Head, uint64(i)<<20)
		if predicted {
			t.Predicted = testMasks(&m.Head, uint64(i)<<20+500)
		}
		m.List = append(m.List, t)
	}
	return m
}

// save writes a trace to a new folder and returns its path.
func save(tb testing.TB, src *Memory, opt WriteOptions) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "x.trace.arrow")
	saveAs(tb, path, src, opt)
	return path
}

func saveAs(tb testing.TB, path string, src *Memory, opt WriteOptions) {
	tb.Helper()
	w, err := Create(path, src.Head, opt)
	if err != nil {
		tb.Fatal(err)
	}
	for i := range src.List {
		if err := w.Append(&src.List[i]); err != nil {
			tb.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
}

func open(tb testing.TB, path string) *Reader {
	tb.Helper()
	r, err := Open(tb.Context(), path)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := r.Close(); err != nil {
			tb.Error(err)
		}
	})
	return r
}

// collect copies all tokens of a source.
func collect(tb testing.TB, src Source) []Token {
	tb.Helper()
	var out []Token
	for i := range src.Tokens() {
		var t Token
		if err := src.Token(i, &t); err != nil {
			tb.Fatal(err)
		}
		out = append(out, t)
	}
	return out
}

func equal(tb testing.TB, what string, want, got any) {
	tb.Helper()
	if d := cmp.Diff(want, got); d != "" {
		tb.Errorf("%s (-want +got):\n%s", what, d)
	}
}

// names lists a folder.
func names(tb testing.TB, dir string) []string {
	tb.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		tb.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

package traces

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func TestRoundTrip(t *testing.T) {
	for _, predicted := range []bool{false, true} {
		src := testTrace(23, predicted)
		want := collect(t, src)
		for _, opt := range []WriteOptions{{}, {Compress: "none", BatchBytes: 1}, {BatchBytes: 700},
			{Compress: "zstd", BatchBytes: 700}} {
			r := open(t, save(t, src, opt))
			equal(t, "header", src.Head, *r.Header())
			equal(t, "tokens", want, collect(t, r))
			if !r.Verified() || !r.Complete() || len(r.Warnings()) != 0 {
				t.Errorf("%+v: verified %t, complete %t, warnings %q", opt, r.Verified(),
					r.Complete(), r.Warnings())
			}
			if wantZ := opt.Compress == "zstd"; (r.Compress() == "zstd") != wantZ {
				t.Errorf("%+v: compress %s", opt, r.Compress())
			}
			if opt.BatchBytes == 1 && r.Batches() != 23 {
				t.Errorf("%d batches, want one per token", r.Batches())
			}
		}
	}
}

func TestRandomAccessReusesToken(t *testing.T) {
	src := testTrace(40, true)
	r := open(t, save(t, src, WriteOptions{Compress: "zstd", BatchBytes: 900}))
	var tok Token
	for k := range 200 {
		i := int(mix(uint64(k)) % 40)
		if err := r.Token(i, &tok); err != nil {
			t.Fatal(err)
		}
		equal(t, "token", src.List[i], tok)
	}
	for _, i := range []int{-1, 40} {
		if err := r.Token(i, &tok); err == nil {
			t.Errorf("token %d: no error", i)
		}
	}
}

// TestTokensOutliveTheFile: what Token returns is no part of the mapped file. It costs an
// allocation for the masks and one for magnitudes and features, or none with a Buffer.
func TestTokensOutliveTheFile(t *testing.T) {
	src := every(12)
	r := open(t, save(t, src, WriteOptions{BatchBytes: 500}))
	list := make([]Token, r.Tokens())
	for i := range list {
		if err := r.Token(i, &list[i]); err != nil {
			t.Fatal(err)
		}
	}
	for most, tok := range map[float64]*Token{2: {}, 0: {Reuse: &Buffer{}}} {
		i := 0
		n := testing.AllocsPerRun(100, func() {
			if err := r.Token(i%r.Tokens(), tok); err != nil {
				t.Fatal(err)
			}
			i++
		})
		if n > most {
			t.Errorf("%v allocations per Token with a buffer (%t), want at most %v", n,
				tok.Reuse != nil, most)
		}
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	for i := range list {
		equal(t, "a token after Close", src.List[i], list[i])
	}
}

func TestSameInputSameBytes(t *testing.T) {
	for _, compress := range []string{"none", "zstd"} {
		opt := WriteOptions{Compress: compress, BatchBytes: 2000}
		a, err := os.ReadFile(save(t, testTrace(50, true), opt))
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(save(t, testTrace(50, true), opt))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(a, b) {
			t.Errorf("%s: two writes of the same trace differ", compress)
		}
	}
}

func TestConcurrentTokens(t *testing.T) {
	src := testTrace(60, false)
	for _, compress := range []string{"none", "zstd"} {
		r := open(t, save(t, src, WriteOptions{Compress: compress, BatchBytes: 400}))
		var wg sync.WaitGroup
		for g := range 4 {
			wg.Add(1)
			go func() {
				defer wg.Done()
				var tok Token
				for k := range 60 {
					i := (k*7 + g*13) % 60
					if err := r.Token(i, &tok); err != nil || tok.ID != src.List[i].ID ||
						tok.Active[2][0] != src.List[i].Active[2][0] {
						t.Errorf("token %d: %v, id %d", i, err, tok.ID)
					}
				}
			}()
		}
		wg.Wait()
	}
}

func TestAppendRefusesAndStaysUsable(t *testing.T) {
	src := testTrace(4, true)
	path := filepath.Join(t.TempDir(), "x.trace.arrow")
	w, err := Create(path, src.Head, WriteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Append(&src.List[0]); err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		want string
		edit func(*Token)
	}{
		{"must ascend", func(k *Token) { k.Pos = 0 }},
		{"phase 2", func(k *Token) { k.Phase = 2 }},
		{"active masks of 2 layers: the header says 3", func(k *Token) { k.Active = k.Active[:2] }},
		{"predicted masks of 0 layers: the header says 3", func(k *Token) { k.Predicted = nil }},
		{"active mask of layer 1: 2 words for 150 units: must be 3", func(k *Token) {
			k.Active[1] = k.Active[1][:2]
		}},
		{"predicted mask of layer 2: a bit beyond unit 149 is set", func(k *Token) {
			k.Predicted[2][2] |= 1 << 22
		}},
	}
	for _, c := range cases {
		bad := testTrace(2, true).List[1]
		c.edit(&bad)
		if err := w.Append(&bad); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("want an error with %q, got %v", c.want, err)
		}
	}
	for i := 1; i < 4; i++ {
		if err := w.Append(&src.List[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	equal(t, "tokens", src.List, collect(t, open(t, path)))
	if err := w.Append(&src.List[0]); err == nil {
		t.Error("append after Close: no error")
	}
	if err := errors.Join(w.Abort(), w.Abort()); err != nil {
		t.Errorf("Abort after Close: %v", err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Errorf("Abort after Close removed the trace: %v", err)
	}
}

func TestCreateRefuses(t *testing.T) {
	dir := t.TempDir()
	good := testHeader(false)
	cases := []struct {
		name, want string
		edit       func(*Header, *WriteOptions)
	}{
		{"x.arrow", "NAME.trace.arrow", func(*Header, *WriteOptions) {}},
		{".trace.arrow", "NAME.trace.arrow", func(*Header, *WriteOptions) {}},
		{"x.trace.arrow", "layers: 0 ", func(h *Header, _ *WriteOptions) { h.Layers = 0 }},
		{"x.trace.arrow", "units: -1 ", func(h *Header, _ *WriteOptions) { h.Units = -1 }},
		{"x.trace.arrow", `unit kind "row"`, func(h *Header, _ *WriteOptions) {
			h.UnitKind = "row"
		}},
		{"x.trace.arrow", "schema 2", func(h *Header, _ *WriteOptions) { h.SchemaVersion = "2.0" }},
		{"x.trace.arrow", `"lz4"`, func(_ *Header, o *WriteOptions) { o.Compress = "lz4" }},
		{"x.trace.arrow", "batches of -1 bytes", func(_ *Header, o *WriteOptions) {
			o.BatchBytes = -1
		}},
		{"no/such/folder/x.trace.arrow", "no such file", func(*Header, *WriteOptions) {}},
	}
	for _, c := range cases {
		h, opt := good, WriteOptions{}
		c.edit(&h, &opt)
		if _, err := Create(filepath.Join(dir, c.name), h, opt); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: want an error with %q, got %v", c.name, c.want, err)
		}
	}
	if left := names(t, dir); len(left) != 0 {
		t.Errorf("refused traces left %q", left)
	}
}

func TestManifestSaysWhatTheFileIs(t *testing.T) {
	path := save(t, testTrace(12, false), WriteOptions{})
	text, err := os.ReadFile(ManifestPath(path))
	if err != nil {
		t.Fatal(err)
	}
	var m Manifest
	if err := json.Unmarshal(text, &m); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "manifest", Manifest{
		SchemaVersion: "1.1", Tool: "windrow test", File: "x.trace.arrow", Bytes: info.Size(),
		SHA256:   open(t, path).SHA256(),
		Complete: true, Tokens: 12, Sequences: 3, Layers: 3, Units: 150, Compress: "none",
		Model: "tiny",
	}, m)
	equal(t, "files", []string{"x.trace.arrow", "x.trace.json"}, names(t, filepath.Dir(path)))
}

func TestInterruptedTraceIsMarked(t *testing.T) {
	src := testTrace(7, false)
	dir := t.TempDir()
	w, err := Create(filepath.Join(dir, "x.trace.arrow"), src.Head, WriteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range src.List {
		if err := w.Append(&src.List[i]); err != nil {
			t.Fatal(err)
		}
	}
	path, err := w.Interrupt()
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "files", []string{"x.partial.trace.arrow", "x.partial.trace.json"}, names(t, dir))
	r := open(t, path)
	equal(t, "tokens", src.List, collect(t, r))
	again, err := Create(filepath.Join(dir, "x.trace.arrow"), src.Head, WriteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Append(&src.List[0]); err != nil {
		t.Fatal(err)
	}
	if second, err := again.Interrupt(); err != nil ||
		filepath.Base(second) != "x.2.partial.trace.arrow" || open(t, second).Complete() {
		t.Errorf("a second interruption: %s, %v", second, err)
	}
	if r.Complete() || !r.Verified() || len(r.Warnings()) != 1 || !strings.Contains(r.Warnings()[0],
		"after 7 tokens") {
		t.Errorf("complete %t, verified %t, warnings %q", r.Complete(), r.Verified(), r.Warnings())
	}
	if err := os.Remove(ManifestPath(path)); err != nil {
		t.Fatal(err)
	}
	if r := open(t, path); r.Complete() || r.Verified() || len(r.Warnings()) != 2 {
		t.Errorf("without manifest: complete %t, verified %t, warnings %q", r.Complete(),
			r.Verified(), r.Warnings())
	}
}

func TestNoTokensIsNoTrace(t *testing.T) {
	dir := t.TempDir()
	create := func() *Writer {
		w, err := Create(filepath.Join(dir, "x.trace.arrow"), testHeader(false), WriteOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	if err := create().Close(); err == nil {
		t.Error("a trace without tokens was written")
	}
	if path, err := create().Interrupt(); path != "" || err != nil {
		t.Errorf("interrupted before the first token: %q, %v", path, err)
	}
	if left := names(t, dir); len(left) != 0 {
		t.Errorf("left %q", left)
	}
}

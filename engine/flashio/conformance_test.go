package flashio

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/internal/ioengine"
	"github.com/windrow-sim/windrow/internal/rng"
)

// imageSize is no multiple of any alignment, so that the end of the file is a case of its own.
const imageSize = 2<<20 + 1000

func randomBytes(n int) []byte {
	b := make([]byte, n)
	dice := rng.Stream(rng.DefaultSeed, "flashio/test/image")
	for i := range b {
		b[i] = byte(dice.Uint32())
	}
	return b
}

func writeImage(t testing.TB, dir string, size int) string {
	t.Helper()
	path := filepath.Join(dir, "image")
	if err := os.WriteFile(path, randomBytes(size), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// subject is one way to read that must behave as all others.
type subject struct {
	name string
	opt  Options
	wrap func(Reader) (Reader, error)
}

func subjects() []subject {
	var s []subject
	for _, e := range ioengine.Engines() {
		if e.Cached {
			s = append(s, subject{name: e.Name, opt: Options{Engine: Engine(e.Name)}})
			continue
		}
		for _, direct := range []Direct{DirectAuto, DirectOff} {
			for _, n := range []int{1, 8, e.Parallel} {
				s = append(s, subject{name: fmt.Sprintf("%s/%d/direct=%s", e.Name, n, direct),
					opt: Options{Engine(e.Name), direct, n}})
			}
		}
	}
	return append(s,
		subject{name: "auto", opt: Options{}},
		subject{name: "counter", opt: Options{Engine: EnginePread},
			wrap: func(r Reader) (Reader, error) { return WithCounter(r), nil }},
		subject{name: "faults", opt: Options{Engine: EnginePread},
			wrap: func(r Reader) (Reader, error) { return WithFaults(r, "spike 1ns p=0.01") }})
}

// openSubject opens path, or skips the test where the host or the build lacks the engine.
func openSubject(t testing.TB, s subject, path string) Reader {
	t.Helper()
	r, err := Open(path, s.opt)
	if errors.Is(err, ErrEnvironment) {
		t.Skip(err)
	}
	if err == nil && s.wrap != nil {
		r, err = s.wrap(r)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return r
}

func alignedBuffer(t testing.TB, n int) []byte {
	t.Helper()
	b := AlignedBuffer(n, minAlign)
	if b == nil {
		t.Fatal("no memory")
	}
	t.Cleanup(func() {
		if err := FreeBuffer(b); err != nil {
			t.Error(err)
		}
	})
	return b
}

// randomBatch makes n reads inside a file of the given size, as r's alignment demands. The longest
// has about limit bytes.
func randomBatch(dice *rand.Rand, r Reader, arena []byte, n, limit int, size int64) []Request {
	align := int(r.Mode().Align)
	slot := len(arena) / n / align * align
	reqs := make([]Request, n)
	for i := range reqs {
		length := dice.IntN(min(slot, limit)/align+1) * align
		room := (int(size) - length) / align
		reqs[i] = Request{Offset: int64(dice.IntN(room+1) * align),
			Buf: arena[i*slot : i*slot+length]}
	}
	return reqs
}

func checkBytes(t *testing.T, reqs []Request, want []byte) {
	t.Helper()
	for i, q := range reqs {
		if !bytes.Equal(q.Buf, want[q.Offset:][:len(q.Buf)]) {
			t.Fatalf("request %d: %d bytes at %d differ from the file's", i, len(q.Buf), q.Offset)
		}
	}
}

func TestConformance(t *testing.T) {
	path := writeImage(t, t.TempDir(), imageSize)
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range subjects() {
		t.Run(s.name, func(t *testing.T) {
			t.Run("mode", func(t *testing.T) { conformMode(t, s, openSubject(t, s, path)) })
			t.Run("random", func(t *testing.T) { conformRandom(t, openSubject(t, s, path), want) })
			t.Run("many", func(t *testing.T) { conformMany(t, openSubject(t, s, path), want) })
			t.Run("edges", func(t *testing.T) { conformEdges(t, openSubject(t, s, path), want) })
			t.Run("refused", func(t *testing.T) { conformRefused(t, openSubject(t, s, path)) })
			t.Run("full", func(t *testing.T) { conformReadFull(t, openSubject(t, s, path), want) })
			t.Run("closed", func(t *testing.T) { conformClosed(t, openSubject(t, s, path)) })
			t.Run("cut", func(t *testing.T) { conformCut(t, s) })
			t.Run("allocs", func(t *testing.T) { conformAllocs(t, openSubject(t, s, path)) })
			t.Run("timed", func(t *testing.T) { conformTimed(t, openSubject(t, s, path)) })
			t.Run("timed allocs", func(t *testing.T) {
				conformTimedAllocs(t, openSubject(t, s,
					path))
			})
		})
	}
}

func conformMode(t *testing.T, s subject, r Reader) {
	m := r.Mode()
	if s.opt.Engine != "" && m.Engine != s.opt.Engine {
		t.Errorf("engine %s, asked for %s", m.Engine, s.opt.Engine)
	}
	if s.opt.Engine == "" && m.Requested != EngineAuto {
		t.Errorf("requested %q, want auto", m.Requested)
	}
	if m.Direct && (!m.WantDirect || m.Align <= 1) || !m.Direct && m.Align != 1 {
		t.Errorf("mode contradicts itself: %+v", m)
	}
	if s.opt.Parallel != 0 && m.Parallel != s.opt.Parallel {
		t.Errorf("parallel %d, asked for %d", m.Parallel, s.opt.Parallel)
	}
	if m.FileSystem == "" || m.Parallel < 1 {
		t.Errorf("mode is not complete: %+v", m)
	}
	for _, note := range m.Notes {
		if !strings.HasSuffix(note, ".") {
			t.Errorf("note is not a sentence: %q", note)
		}
	}
}

func conformRandom(t *testing.T, r Reader, want []byte) {
	dice := rng.Stream(rng.DefaultSeed, "flashio/test/random")
	arena := alignedBuffer(t, 4<<20)
	for range 5 {
		reqs := randomBatch(dice, r, arena, 1+dice.IntN(50), 64<<10, int64(len(want)))
		clear(arena)
		if err := r.ReadBatch(reqs); err != nil {
			t.Fatal(err)
		}
		checkBytes(t, reqs, want)
	}
}

// conformMany reads one batch far larger than any depth, and checks every byte.
func conformMany(t *testing.T, r Reader, want []byte) {
	n := 10_000
	if m := r.Mode(); m.Direct && m.Parallel < 256 {
		n = 300 // with few reads in flight a drive is too slow for a test
	}
	dice := rng.Stream(rng.DefaultSeed, "flashio/test/many")
	arena := alignedBuffer(t, n*4096)
	reqs := randomBatch(dice, r, arena, n, 4096, int64(len(want)))
	var bytes int64
	for _, q := range reqs {
		bytes += int64(len(q.Buf))
	}
	c := WithCounter(r)
	if err := c.ReadBatch(reqs); err != nil {
		t.Fatal(err)
	}
	checkBytes(t, reqs, want)
	if got := c.Completed(); got != c.Asked() || got.Requests != int64(n) ||
		int64(got.Bytes) != bytes || got.Batches != 1 {
		t.Errorf("asked %+v, completed %+v, want %d requests of %d bytes", c.Asked(), got, n, bytes)
	}
}

func conformEdges(t *testing.T, r Reader, want []byte) {
	if err := r.ReadBatch(nil); err != nil {
		t.Errorf("empty batch: %v", err)
	}
	align := int64(r.Mode().Align)
	end := int64(len(want)) / align * align
	buf := alignedBuffer(t, 64<<10)
	for _, q := range []Request{
		{0, nil}, {end, nil}, {0, buf[:0]}, // nothing to read
		{0, buf[:align]}, {end - align, buf[:align]}, {end - int64(len(buf))/align*align,
			buf[:int64(len(buf))/align*align]},
	} {
		if err := r.ReadBatch([]Request{q, q}); err != nil {
			t.Errorf("%d bytes at %d: %v", len(q.Buf), q.Offset, err)
		}
		checkBytes(t, []Request{q}, want)
	}
}

func conformRefused(t *testing.T, r Reader) {
	align := int64(r.Mode().Align)
	buf := alignedBuffer(t, 64<<10)
	good := Request{0, buf[:4096]}
	past := int64(imageSize)/align*align + align
	for _, c := range []struct {
		what string
		bad  Request
		want []string
	}{
		{"negative offset", Request{-align, buf[:align]}, []string{"negative"}},
		{"over the end", Request{past - align, buf[:4*align]}, []string{fmt.Sprint(imageSize),
			"pack it again"}},
		{"past the end", Request{past, buf[:align]}, []string{fmt.Sprint(imageSize),
			"pack it again"}},
		{"far past the end", Request{1 << 62, buf[:align]}, []string{fmt.Sprint(imageSize)}},
	} {
		err := r.ReadBatch([]Request{good, c.bad, {-1, nil}})
		if err == nil {
			t.Errorf("%s was accepted", c.what)
			continue
		}
		for _, part := range append(c.want, fmt.Sprintf("offset %d", c.bad.Offset),
			string(r.Mode().Engine)) {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %q does not say %q", c.what, err, part)
			}
		}
	}
	for _, odd := range []Request{{1, buf[:align]}, {0, buf[:align-1]}, {0, buf[1 : 1+align]}} {
		err := r.ReadBatch([]Request{good, odd})
		if r.Mode().Direct != errors.Is(err, ErrMisaligned) {
			t.Errorf("direct %v: misaligned request at %d of %d bytes: %v", r.Mode().Direct,
				odd.Offset, len(odd.Buf), err)
		}
	}
	if err := r.ReadBatch([]Request{good}); err != nil {
		t.Errorf("after refused batches: %v", err)
	}
}

func conformReadFull(t *testing.T, r Reader, want []byte) {
	for _, c := range []struct{ off, n int }{{0, 10}, {5, 4096}, {1000, 1<<20 + 77}, {4096, 8192},
		{511, 0}} {
		buf := make([]byte, c.n)
		if err := ReadFull(r, int64(c.off), buf); err != nil {
			t.Errorf("%d bytes at %d: %v", c.n, c.off, err)
		} else if !bytes.Equal(buf, want[c.off:][:c.n]) {
			t.Errorf("%d bytes at %d differ from the file's", c.n, c.off)
		}
	}
	if err := ReadFull(r, imageSize-5, make([]byte, 10)); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("past the end: %v", err)
	}
}

func conformClosed(t *testing.T, r Reader) {
	for range 2 {
		if err := r.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
	for _, reqs := range [][]Request{nil, {{0, make([]byte, 1)}}} {
		if err := r.ReadBatch(reqs); !errors.Is(err, os.ErrClosed) {
			t.Errorf("read after close: %v", err)
		}
	}
}

// conformCut shortens the file while it is open: an error, and no SIGBUS.
func conformCut(t *testing.T, s subject) {
	path := writeImage(t, t.TempDir(), 1<<20)
	r := openSubject(t, s, path)
	if err := os.Truncate(path, 64<<10); err != nil {
		t.Fatal(err)
	}
	buf := alignedBuffer(t, 128<<10)
	err := r.ReadBatch([]Request{{0, buf[:64<<10]}, {512 << 10, buf[64<<10:]}})
	if r.Mode().Engine == EngineMem {
		if err != nil {
			t.Errorf("memory does not shrink: %v", err)
		}
		return
	}
	if !errors.Is(err, io.ErrUnexpectedEOF) || !strings.Contains(err.Error(), "offset 524288") {
		t.Errorf("cut file: %v", err)
	}
	if err := r.ReadBatch([]Request{{0, buf[:64<<10]}}); err != nil {
		t.Errorf("what is left of the file: %v", err)
	}
}

func conformAllocs(t *testing.T, r Reader) {
	if testing.CoverMode() != "" || raceEnabled {
		t.Skip("instrumented")
	}
	arena := alignedBuffer(t, 64*4096)
	reqs := make([]Request, 64)
	for i := range reqs {
		reqs[i] = Request{int64(i * 8192), arena[i*4096:][:4096]}
	}
	// The runtime makes its threads during the first batches, so several tries: an allocation of
	// ours would show in all.
	allocs := 1.0
	for range 20 {
		var err error
		allocs = testing.AllocsPerRun(2, func() { err = errors.Join(err, r.ReadBatch(reqs)) })
		if err != nil {
			t.Fatal(err)
		}
		if allocs == 0 {
			return
		}
	}
	t.Errorf("%v allocations per batch", allocs)
}

func TestConservationUnderErrors(t *testing.T) {
	c := WithCounter(NewMem(make([]byte, 100)))
	ok := []Request{{0, make([]byte, 60)}, {60, make([]byte, 40)}}
	for range 3 {
		if err := c.ReadBatch(ok); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.ReadBatch([]Request{{90, make([]byte, 20)}}); err == nil {
		t.Fatal("read past the end")
	}
	if got, want := c.Asked(), (Counts{4, 7, 320}); got != want {
		t.Errorf("asked %+v, want %+v", got, want)
	}
	if got, want := c.Completed(), (Counts{3, 6, 300}); got != want {
		t.Errorf("completed %+v, want %+v", got, want)
	}
}

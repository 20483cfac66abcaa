package arrivals

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
)

// rows is a file of the layout azure-2024 that is never whole anywhere: n rows, 36 ms apart, so
// that 16.8 million of them are a week. Some are on a whole second, and every eighth has one output
// token.
type rows struct {
	n, at int64
	buf   []byte // of the row that is being read, from 0
	read  int
}

func newRows(n int64) *rows {
	return &rows{n: n, buf: []byte("TIMESTAMP,ContextTokens,GeneratedTokens\n")}
}

func (r *rows) Read(p []byte) (n int, err error) {
	for n < len(p) {
		if r.read == len(r.buf) {
			if r.at == r.n {
				break
			}
			r.row()
		}
		c := copy(p[n:], r.buf[r.read:])
		r.read += c
		n += c
	}
	if n == 0 && len(p) > 0 {
		return 0, io.EOF
	}
	return n, nil
}

// row writes the next row into buf.
func (r *rows) row() {
	micros := r.at * 36_000
	second, micro := micros/1e6, micros%1e6
	day := second / 86400
	b := append(r.buf[:0], "2024-05-"...)
	b = two(b, 1+day)
	b = append(b, ' ')
	b = two(b, second/3600%24)
	b = append(b, ':')
	b = two(b, second/60%60)
	b = append(b, ':')
	b = two(b, second%60)
	if micro != 0 {
		b = append(b, '.')
		b = two(b, micro/10_000)
		b = two(b, micro/100%100)
		b = two(b, micro%100)
	}
	b = append(b, "+00:00,"...)
	b = strconv.AppendInt(b, 1+r.at*7919%7500, 10)
	b = append(b, ',')
	b = strconv.AppendInt(b, 1+r.at*31%8*97, 10)
	r.buf = append(b, '\n')
	r.read = 0
	r.at++
}

func two(b []byte, v int64) []byte { return append(b, byte('0'+v/10%10), byte('0'+v%10)) }

// TestMemoryIsConstant: reading a hundred times as many rows allocates nothing more, and neither
// does summing them up.
func TestMemoryIsConstant(t *testing.T) {
	const few, many = 2_000, 200_000
	allocated := func(n int64) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r, err := New(newRows(n), "x", Options{})
		if err != nil {
			t.Fatal(err)
		}
		s, err := Summarize(context.Background(), r)
		if err != nil || s.Requests != n || s.Format != Azure2024 {
			t.Fatalf("%+v, %v", s, err)
		}
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	small, large := allocated(few), allocated(many)
	if large > small+64<<10 || large > 2<<20 {
		t.Errorf("%d rows allocate %d bytes, %d rows %d", few, small, many, large)
	}
}

// TestConversationsAreReadOneByOne: the heap does not grow with their number.
func TestConversationsAreReadOneByOne(t *testing.T) {
	const n = 20_000
	r, err := New(&talks{left: n}, "x", Options{Count: words})
	if err != nil {
		t.Fatal(err)
	}
	var req Request
	var first, last runtime.MemStats
	for i := 0; ; i++ {
		if err := r.Next(&req); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		switch i {
		case n / 10:
			runtime.GC()
			runtime.ReadMemStats(&first)
		case n - 1:
			runtime.GC()
			runtime.ReadMemStats(&last)
		}
	}
	if got := r.Stats().Requests; got != n {
		t.Errorf("%d requests", got)
	}
	if last.HeapAlloc > first.HeapAlloc+1<<20 {
		t.Errorf("the heap grew from %d to %d bytes", first.HeapAlloc, last.HeapAlloc)
	}
}

// talks is a list of equal conversations.
type talks struct {
	left int
	buf  []byte
	open bool
}

func (s *talks) Read(p []byte) (int, error) {
	if len(s.buf) == 0 {
		switch {
		case s.left == 0:
			return 0, io.EOF
		case !s.open:
			s.buf, s.open = append(s.buf, '['), true
		default:
			s.buf = append(s.buf, ',')
		}
		s.buf = append(s.buf,
			`{"id": "a", "conversations": [{"from": "human", "value": "how far is the moon"}, {"from": "gpt", "value": "a light second"}]}`...)
		if s.left--; s.left == 0 {
			s.buf = append(s.buf, ']')
		}
	}
	n := copy(p, s.buf)
	s.buf = s.buf[n:]
	return n, nil
}

// BenchmarkNext reads 200,000 rows of azure-2024 from memory.
func BenchmarkNext(b *testing.B) {
	const n = 200_000
	data, err := io.ReadAll(newRows(n))
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		r, err := New(bytes.NewReader(data), "x", Options{})
		if err != nil {
			b.Fatal(err)
		}
		var req Request
		for err == nil {
			err = r.Next(&req)
		}
		if err != io.EOF || r.Stats().Requests != n {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)*n/b.Elapsed().Seconds()/1e6, "Mrows/s")
}

// BenchmarkStream summarises b.N rows that are made while they are read; -benchtime 16800000x is
// the week of 2024 in size.
func BenchmarkStream(b *testing.B) {
	r, err := New(newRows(int64(b.N)), "x", Options{})
	if err != nil {
		b.Fatal(err)
	}
	summarize(b, r)
}

// BenchmarkFile summarises a file of b.N rows: 700 MB for -benchtime 16800000x.
func BenchmarkFile(b *testing.B) {
	path := filepath.Join(b.TempDir(), "rows.csv")
	f, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := io.Copy(f, newRows(int64(b.N))); err != nil {
		b.Fatal(err)
	}
	if err := f.Close(); err != nil {
		b.Fatal(err)
	}
	r, err := Open(b.Context(), path, Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	b.ResetTimer()
	summarize(b, r)
}

func summarize(b *testing.B, r *Reader) {
	s, err := Summarize(context.Background(), r)
	if err != nil {
		b.Fatal(err)
	}
	if s.Requests != int64(b.N) {
		b.Fatalf("%d requests", s.Requests)
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	b.ReportMetric(float64(m.Sys)/(1<<20), "MiB-from-system")
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds()/1e6, "Mrows/s")
}

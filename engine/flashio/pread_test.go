package flashio

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/windrow-sim/windrow/internal/rng"
	"github.com/windrow-sim/windrow/internal/units"
)

// unwellFile fails at some offsets, and alternates with other readers to mix up the order of
// events.
type unwellFile struct {
	fail  map[int64]error
	reads atomic.Int64
}

func (u *unwellFile) Close() error { return nil }

func (u *unwellFile) Pread(p []byte, off int64) (int, error) {
	u.reads.Add(1)
	for range off % 7 {
		runtime.Gosched()
	}
	if err := u.fail[off]; err != nil {
		return 0, err
	}
	for i := range p {
		p[i] = byte(off)
	}
	return len(p), nil
}

func TestPreadReturnsTheFirstErrorInRequestOrder(t *testing.T) {
	dice := rng.Stream(rng.DefaultSeed, "flashio/test/errors")
	const n = 200
	for _, threads := range []int{1, 2, 8, 32} {
		src := &unwellFile{}
		p := openPread(file{size: n, path: "unwell", mode: Mode{Align: 1}}, src, threads)
		for round := range 100 {
			first := dice.IntN(n - 10)
			src.fail = map[int64]error{int64(first): syscall.EIO}
			for range dice.IntN(5) {
				src.fail[int64(first+1+dice.IntN(9))] = errors.New("a later one")
			}
			reqs := make([]Request, n)
			for i := range reqs {
				reqs[i] = Request{int64(i), make([]byte, 1)}
			}
			err := p.ReadBatch(reqs)
			if !errors.Is(err, syscall.EIO) || !strings.Contains(err.Error(),
				fmt.Sprintf("1 bytes at offset %d:", first)) {
				t.Fatalf("%d threads, round %d: %v, want EIO at %d", threads, round, err, first)
			}
			for i := range first {
				if reqs[i].Buf[0] != byte(i) {
					t.Fatalf("%d threads: request %d before the failed one was not read", threads,
						i)
				}
			}
			before := src.reads.Load()
			runtime.Gosched()
			if after := src.reads.Load(); after != before {
				t.Fatalf("%d threads: %d reads after ReadBatch returned", threads, after-before)
			}
			src.fail = nil
			if err := p.ReadBatch(reqs[:1+dice.IntN(n-1)]); err != nil {
				t.Fatalf("the batch after a failed one: %v", err)
			}
		}
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestErrorsCarryTheRemedy(t *testing.T) {
	src := &unwellFile{fail: map[int64]error{0: syscall.EIO}}
	p := openPread(file{size: 10, path: "some.img", mode: Mode{Align: 1}}, src, 1)
	err := p.ReadBatch([]Request{{0, make([]byte, 4)}})
	mustContain(t, err.Error(), "flashio: pread: some.img: read of 4 bytes at offset 0",
		"kernel log")
}

// brokenFile returns what the script says, call by call, and then reads whole.
type brokenFile struct {
	data   []byte
	script []outcome
	calls  []int64 // offsets
}

type outcome struct {
	n   int // most bytes that are read
	err error
}

func (b *brokenFile) Close() error { return nil }

func (b *brokenFile) Pread(p []byte, off int64) (int, error) {
	b.calls = append(b.calls, off)
	if len(b.script) > 0 {
		o := b.script[0]
		b.script = b.script[1:]
		if o.err != nil {
			return 0, o.err
		}
		p = p[:min(o.n, len(p))]
	}
	return copy(p, b.data[min(off, int64(len(b.data))):]), nil
}

// TestPreadGoesOn: reads that end early or fail for a moment are completed, direct ones from the
// start of a block, and those that never end are errors.
func TestPreadGoesOn(t *testing.T) {
	data := make([]byte, 64)
	for i := range data {
		data[i] = byte(i + 1)
	}
	again := func(n int, o outcome) []outcome { return slices.Repeat([]outcome{o}, n) }
	for name, c := range map[string]struct {
		align  int
		script []outcome
		calls  []int64 // nil: not looked at
		err    error
	}{
		"whole":             {1, nil, []int64{8}, nil},
		"short":             {1, []outcome{{n: 5}, {n: 1}}, []int64{8, 13, 14}, nil},
		"short, direct":     {8, []outcome{{n: 13}, {n: 8}}, []int64{8, 16, 24}, nil},
		"less than a block": {8, []outcome{{n: 3}, {n: 7}}, []int64{8, 8, 8}, nil},
		"EINTR":             {1, []outcome{{err: syscall.EINTR}}, []int64{8, 8}, nil},
		"EAGAIN, short": {8, []outcome{{err: syscall.EAGAIN}, {n: 9}, {err: syscall.EAGAIN}},
			[]int64{8, 8, 16, 16}, nil},
		"EAGAIN for ever": {1, again(2000, outcome{err: syscall.EAGAIN}), nil, syscall.EAGAIN},
		"no block ever":   {8, again(2000, outcome{n: 7}), nil, io.ErrUnexpectedEOF},
		"end of file":     {1, []outcome{{n: 2}, {n: 0}}, []int64{8, 10}, io.ErrUnexpectedEOF},
		"ENOMEM":          {1, []outcome{{err: syscall.ENOMEM}}, []int64{8, 8}, nil},
	} {
		src := &brokenFile{data: data, script: c.script}
		r, err := NewPool(src, SourceOptions{Path: "broken", Size: 64, Threads: 1,
			Align: units.Bytes(c.align)})
		if err != nil {
			t.Fatal(err)
		}
		buf := AlignedBuffer(24, minAlign)
		err = r.ReadBatch([]Request{{8, buf}})
		if !errors.Is(err, c.err) || c.err == nil && !bytes.Equal(buf, data[8:32]) {
			t.Errorf("%s: %v, want %v, bytes %v", name, err, c.err, buf)
		}
		if c.calls != nil && !slices.Equal(src.calls, c.calls) {
			t.Errorf("%s: reads at %v, want %v", name, src.calls, c.calls)
		}
		if err := errors.Join(r.Close(), FreeBuffer(buf)); err != nil {
			t.Error(err)
		}
	}
	if _, err := NewPool(nil, SourceOptions{Path: "x", Align: 1}); err == nil {
		t.Error("a pool of no threads gave no error")
	}
}

package flashio

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/windrow-sim/windrow/internal/rng"
)

// unwellFile fails at some offsets, and alternates with other readers to mix up the order of
// events.
type unwellFile struct {
	fail  map[int64]error
	reads atomic.Int64
}

func (u *unwellFile) ReadAt(p []byte, off int64) (int, error) {
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
		if err := p.Close(); !errors.Is(err, os.ErrInvalid) { // there is no file to close
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

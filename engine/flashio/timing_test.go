package flashio

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/windrow-sim/windrow/internal/units"
)

// conformTimed reads timed batches: the first reads have a time, which the batch's own bounds, and
// reads beyond the end of the list are not timed.
func conformTimed(t *testing.T, r Reader) {
	const n, timed, untouched = 48, 40, -7
	arena := alignedBuffer(t, n*4096)
	reqs := make([]Request, n)
	for i := range reqs {
		reqs[i] = Request{int64(i * 8192), arena[i*4096:][:4096]}
	}
	reqs[3].Buf = reqs[3].Buf[:0]
	times := make([]units.Nanos, n)
	for _, list := range [][]units.Nanos{times[:timed], times, nil, times[:0]} {
		for i := range times {
			times[i] = untouched
		}
		if !TimeReads(r, list) {
			t.Fatal("the engine cannot tell")
		}
		start := time.Now()
		if err := r.ReadBatch(reqs); err != nil {
			t.Fatal(err)
		}
		took := units.Nanos(time.Since(start))
		for i, at := range times {
			switch {
			case i >= len(list):
				if at != untouched {
					t.Errorf("%d timed: read %d has time %v", len(list), i, at)
				}
			case at < 0 || at > took:
				t.Errorf("%d timed: read %d took %v, its batch %v", len(list), i, at, took)
			}
		}
	}
	// More room than requests is no harm.
	TimeReads(r, times)
	if err := r.ReadBatch(reqs[:2]); err != nil {
		t.Fatal(err)
	}
}

// conformTimedAllocs demands of timed batches what conformAllocs demands of plain ones.
func conformTimedAllocs(t *testing.T, r Reader) {
	TimeReads(r, make([]units.Nanos, 64))
	conformAllocs(t, r)
}

// slowFile takes as many milliseconds of a clock of its own as the offset says.
type slowFile struct {
	mu sync.Mutex
	at time.Time
}

func (s *slowFile) Close() error { return nil }

func (s *slowFile) Pread(p []byte, off int64) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at = s.at.Add(time.Duration(off) * time.Millisecond)
	return len(p), nil
}

func (s *slowFile) now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.at
}

func TestPreadTimesEveryReadByItself(t *testing.T) {
	src := &slowFile{}
	p := openPread(file{size: 100, path: "slow", mode: Mode{Align: 1}}, src, 1)
	defer p.Close()
	p.stopwatch.now = src.now
	reqs := []Request{{7, make([]byte, 1)}, {3, make([]byte, 1)}, {20, make([]byte, 1)}}
	times := make([]units.Nanos, 3)
	TimeReads(WithCounter(p), times) // through a wrapper
	if err := p.ReadBatch(reqs); err != nil {
		t.Fatal(err)
	}
	for i, want := range []units.Nanos{7, 3, 20} {
		if times[i] != want*units.Millisecond {
			t.Errorf("read %d took %v, want %v ms", i, times[i], want)
		}
	}
}

// mute is a Reader that cannot tell times.
type mute struct{}

func (mute) ReadBatch([]Request) error { return errors.ErrUnsupported }
func (mute) Mode() Mode                { return Mode{} }
func (mute) Close() error              { return nil }

func TestTimeReadsSaysWhenAnEngineCannotTell(t *testing.T) {
	times := []units.Nanos{5}
	if TimeReads(WithCounter(mute{}), times) || times[0] != 5 {
		t.Errorf("a reader without times claims to have them: %v", times)
	}
}

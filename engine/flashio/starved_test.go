package flashio

import (
	"errors"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/windrow-sim/windrow/engine/flashio/uring"
)

// starvedKernel fails the first reads, and the first waits, for want of memory.
type starvedKernel struct {
	reads, waits int
	queued       []int32
	tags         []int
}

func (k *starvedKernel) Push(tag int, _ int64, buf []byte) error {
	result := int32(len(buf))
	if k.reads > 0 {
		k.reads--
		result = -int32(syscall.ENOMEM)
	}
	k.queued, k.tags = append(k.queued, result), append(k.tags, tag)
	return nil
}

func (k *starvedKernel) Wait(int) error {
	if k.waits > 0 {
		k.waits--
		return syscall.ENOMEM
	}
	return nil
}

func (k *starvedKernel) Pop() (int, int32, bool) {
	if len(k.queued) == 0 || k.waits > 0 {
		return 0, 0, false
	}
	tag, result := k.tags[0], k.queued[0]
	k.tags, k.queued = k.tags[1:], k.queued[1:]
	return tag, result, true
}

func (k *starvedKernel) Register([][]byte) error { return nil }
func (k *starvedKernel) Close() error            { return nil }

// O11: a kernel that is short of memory for a moment is asked again, later and later, and counted.
// One that stays so is an error within seconds, with the remedy.
func TestField_O11_SpuriousENOMEM(t *testing.T) {
	opt := SourceOptions{Path: "file", Size: 64, Align: 1, Threads: 1}
	pool := func(fails int) (Reader, error) {
		return NewPool(&brokenFile{data: make([]byte, 64),
			script: slices.Repeat([]outcome{{err: syscall.ENOMEM}}, fails)}, opt)
	}
	for name, open := range map[string]func(fails int) (Reader, error){
		"pread": pool,
		"uring": func(fails int) (Reader, error) {
			return NewRing(&starvedKernel{reads: fails}, opt)
		},
		"uring, waits": func(fails int) (Reader, error) {
			return NewRing(&starvedKernel{waits: fails}, opt)
		},
	} {
		for _, c := range []struct {
			fails  int
			waited time.Duration // at least
			err    error
		}{{0, 0, nil}, {1, 10 * time.Microsecond, nil}, {20, 100 * time.Millisecond, nil},
			{1 << 20, time.Second, syscall.ENOMEM}} {
			synctest.Test(t, func(t *testing.T) {
				r, err := open(c.fails)
				if err != nil {
					t.Fatal(err)
				}
				started := time.Now()
				err = r.ReadBatch([]Request{{0, make([]byte, 16)}})
				took := time.Since(started)
				if !errors.Is(err, c.err) || took < c.waited || took > 3*time.Second {
					t.Errorf("%s, %d fail: %v after %v", name, c.fails, err, took)
				}
				if err != nil && !strings.Contains(err.Error(), "ENOMEM") &&
					!strings.Contains(err.Error(), "memory") {
					t.Errorf("%s: %v", name, err)
				}
				if n := Starved(r); c.err == nil && n != int64(c.fails) || c.err != nil &&
					n <= uring.MaxStarved/2 {
					t.Errorf("%s, %d fail: %d counted", name, c.fails, n)
				}
				if err := r.Close(); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

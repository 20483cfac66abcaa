package cuda_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/windrow-sim/windrow/kernels/cuda"
)

// bytesOf are n random bytes.
func (b *bench) bytesOf(n int) []byte {
	list := make([]byte, n)
	for i := range list {
		list[i] = byte(b.random.Uint32())
	}
	return list
}

// buffers are row buffers filled with random rows, which are also returned, by kind.
func (b *bench) buffers(places, size int, gated bool) (*cuda.RowBuffers, [3][]byte) {
	b.Helper()
	var rows [3][]byte
	var mem [3]cuda.Mem
	for kind := range rows {
		if kind == 0 && !gated {
			continue
		}
		rows[kind] = b.bytesOf(places * size)
		mem[kind] = b.room(int64(places * size))
		b.must(b.d.ToDevice(mem[kind].Ptr, rows[kind], b.stream))
	}
	return &cuda.RowBuffers{Gate: mem[0], Up: mem[1], Down: mem[2], Places: places, Size: size}, rows
}

func (b *bench) same(what string, a *cuda.RowBuffers, want [3][]byte) {
	b.Helper()
	for kind, m := range []cuda.Mem{a.Gate, a.Up, a.Down} {
		got := make([]byte, len(want[kind]))
		b.must(b.d.ToHost(got, m.Ptr, b.stream))
		b.must(b.d.SyncStream(b.stream))
		if !bytes.Equal(got, want[kind]) {
			b.Fatalf("%s: buffer %d is not what it should be", what, kind)
		}
	}
}

// TestScatter takes records out of mapped pinned memory, from aligned offsets and others.
func TestScatter(t *testing.T) {
	b := newBench(t, 30)
	for _, size := range []int{2, 64, 66, 8192} {
		for _, gated := range []bool{false, true} {
			for _, n := range []int{0, 1, 7} {
				const places, skip = 9, 6
				a, want := b.buffers(places, size, gated)
				first, kinds := 1, 2
				if gated {
					first, kinds = 0, 3
				}
				staging, err := b.d.HostAlloc(int64(8*(kinds*size+skip)), false)
				b.must(err)
				copy(staging, b.bytesOf(len(staging)))
				mapped, err := b.d.Mapped(staging)
				b.must(err)
				slots, offsets := b.ints(n, places), make([]uint64, n)
				for i := range offsets {
					offsets[i] = uint64(i * (kinds*size + i%2*skip))
					for kind := first; kind < 3; kind++ {
						from := int(offsets[i]) + (kind-first)*size
						copy(want[kind][int(slots[i])*size:], staging[from:from+size])
					}
				}
				b.must(b.Scatter(b.stream, a, mapped, put(b, offsets), put(b, slots), n))
				b.same(fmt.Sprintf("size %d gated %v n %d", size, gated, n), a, want)
				b.must(b.d.HostFree(staging))
			}
		}
	}
}

func TestMove(t *testing.T) {
	b := newBench(t, 31)
	for _, size := range []int{2, 48, 4096} {
		for _, gated := range []bool{false, true} {
			const places = 20
			a, want := b.buffers(places, size, gated)
			order := b.ints(places, places)
			from, to := order[:6], order[6:12]
			for kind := range want {
				for i := range from {
					if want[kind] != nil {
						copy(want[kind][int(to[i])*size:(int(to[i])+1)*size], want[kind][int(from[i])*size:])
					}
				}
			}
			b.must(b.Move(b.stream, a, put(b, from), put(b, to), len(from)))
			b.must(b.Move(b.stream, a, cuda.Mem{}, cuda.Mem{}, 0))
			b.same(fmt.Sprintf("size %d gated %v", size, gated), a, want)
		}
	}
}

package suite

import (
	"bytes"
	"fmt"

	"github.com/windrow-sim/windrow/kernels/cuda"
)

// buffers are row buffers filled with random rows, which are also returned, by kind.
func (b *Bench) buffers(places, size int, gated bool) (*cuda.RowBuffers, [3][]byte) {
	b.Helper()
	var rows [3][]byte
	var mem [3]cuda.Mem
	for kind := range rows {
		if kind == 0 && !gated {
			continue
		}
		rows[kind] = b.Bytes(places * size)
		mem[kind] = b.Room(int64(places * size))
		b.Must(b.Device.ToDevice(mem[kind].Ptr, rows[kind], b.Stream))
	}
	return &cuda.RowBuffers{Gate: mem[0], Up: mem[1], Down: mem[2], Places: places, Size: size},
		rows
}

func (b *Bench) same(what string, a *cuda.RowBuffers, want [3][]byte) {
	b.Helper()
	for kind, m := range []cuda.Mem{a.Gate, a.Up, a.Down} {
		got := make([]byte, len(want[kind]))
		b.Must(b.Device.ToHost(got, m.Ptr, b.Stream))
		b.Must(b.Device.SyncStream(b.Stream))
		if !bytes.Equal(got, want[kind]) {
			b.Fatalf("%s: buffer %d is not what it should be", what, kind)
		}
	}
}

// scatters takes records out of mapped pinned memory, from aligned offsets and others.
func (b *Bench) scatters() {
	for _, size := range []int{2, 64, 66, 8192} {
		for _, gated := range []bool{false, true} {
			for _, n := range []int{0, 1, 7} {
				const places, skip = 9, 6
				a, want := b.buffers(places, size, gated)
				first, kinds := 1, 2
				if gated {
					first, kinds = 0, 3
				}
				staging, err := b.Device.HostAlloc(int64(8*(kinds*size+skip)), false)
				b.Must(err)
				copy(staging, b.Bytes(len(staging)))
				mapped, err := b.Device.Mapped(staging)
				b.Must(err)
				slots, offsets := b.Ints(n, places), make([]uint64, n)
				for i := range offsets {
					offsets[i] = uint64(i * (kinds*size + i%2*skip))
					for kind := first; kind < 3; kind++ {
						from := int(offsets[i]) + (kind-first)*size
						copy(want[kind][int(slots[i])*size:], staging[from:from+size])
					}
				}
				b.Must(b.Scatter(b.Stream, a, mapped, Put(b, offsets), Put(b, slots), n))
				b.same(fmt.Sprintf("size %d gated %v n %d", size, gated, n), a, want)
				b.Must(b.Device.HostFree(staging))
			}
		}
	}
}

func (b *Bench) moves() {
	for _, size := range []int{2, 48, 4096} {
		for _, gated := range []bool{false, true} {
			const places = 20
			a, want := b.buffers(places, size, gated)
			order := b.Ints(places, places)
			from, to := order[:6], order[6:12]
			for kind := range want {
				for i := range from {
					if want[kind] != nil {
						copy(want[kind][int(to[i])*size:(int(to[i])+1)*size],
							want[kind][int(from[i])*size:])
					}
				}
			}
			b.Must(b.Move(b.Stream, a, Put(b, from), Put(b, to), len(from)))
			b.Must(b.Move(b.Stream, a, cuda.Mem{}, cuda.Mem{}, 0))
			b.same(fmt.Sprintf("size %d gated %v", size, gated), a, want)
		}
	}
}

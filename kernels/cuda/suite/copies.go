package suite

import (
	"bytes"

	"github.com/windrow-sim/windrow/kernels/cuda"
)

// copies copies bytes to the device, across it and back, also with sizes and offsets that are not
// whole words.
func (b *Bench) copies() {
	for _, size := range []int{1, 4, 4096, 4999} {
		for _, at := range []int64{0, 3} {
			content := b.Bytes(size)
			pinned, err := b.Device.HostAlloc(int64(size), true)
			b.Must(err)
			copy(pinned, content)
			one, two, got := b.Room(int64(size)+at), b.Room(int64(size)+at), make([]byte, size)
			b.Must(b.Device.ToDevice(one.Ptr+cuda.Ptr(at), pinned, b.Stream))
			b.Must(b.Device.OnDevice(two.Ptr, one.Ptr+cuda.Ptr(at), int64(size), b.Stream))
			b.Must(b.Device.ToHost(got, two.Ptr, b.Stream))
			b.Must(b.Device.SyncStream(b.Stream))
			if !bytes.Equal(got, content) {
				b.Fatalf("%d bytes at %d changed on their way", size, at)
			}
			b.Must(b.Device.Fill(two.Ptr, 7, int64(size), b.Stream))
			b.Must(b.Device.ToHost(pinned, two.Ptr, b.Stream))
			b.Must(b.Device.SyncStream(b.Stream))
			if !bytes.Equal(pinned, bytes.Repeat([]byte{7}, size)) {
				b.Fatalf("Fill of %d bytes was not read back", size)
			}
			b.Must(b.Device.HostFree(pinned))
		}
	}
}

// streams: a stream that waits for another's event sees the other's work.
func (b *Bench) streams() {
	const n = 1000
	other, err := b.Device.NewStream()
	b.Must(err)
	event, err := b.Device.NewEvent(true)
	b.Must(err)
	b.Must(b.Device.Wait(other, event)) // of an event that was never recorded: nothing to wait for
	one, total := b.Floats(n), Put(b, make([]float32, n))
	x := Put(b, one)
	for i := range 10 {
		from, to := b.Stream, other
		if i%2 == 1 {
			from, to = other, b.Stream
		}
		b.Must(b.Add(from, total, x, n))
		b.Must(b.Device.Record(event, from))
		b.Must(b.Device.Wait(to, event))
	}
	b.Must(b.Device.SyncEvent(event))
	for i, got := range Get[float32](b, total, n) {
		want := float32(0)
		for range 10 {
			want += one[i]
		}
		if got != want {
			b.Fatalf("element %d is %g, want %g", i, got, want)
		}
	}
	b.Must(b.Device.DestroyEvent(event))
	b.Must(b.Device.DestroyStream(other))
}

package cuda

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/windrow-sim/windrow/engine/model"
	kernels "github.com/windrow-sim/windrow/kernels/cuda"
)

// onDevice puts a tiny model on a device.
func onDevice(t *testing.T, on *TestDriver) *Backend {
	t.Helper()
	w, _, _, err := model.LoadFolder(t.Context(), "../testdata/families/llama-relu")
	if err != nil {
		t.Fatal(err)
	}
	b, err := New(on.Device(t), w, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// TestCacheAgainstMap inserts and deletes many units at once, at random, and finds every row as a
// map would have it.
func TestCacheAgainstMap(t *testing.T) { EachDriver(t, testCacheAgainstMap) }

func testCacheAgainstMap(t *testing.T, on *TestDriver) {
	b := onDevice(t, on)
	const capacity = 24
	made, err := b.Cache(1, capacity)
	if err != nil {
		t.Fatal(err)
	}
	defer made.Close()
	c := made.(*cache)
	size := b.w.Bundles.Size(b.w.Shape.DModel)
	record := b.w.RecordBytes()
	staging, err := b.Staging(int64(capacity * record))
	if err != nil {
		t.Fatal(err)
	}
	defer b.FreeStaging(staging)
	random := rand.New(rand.NewPCG(7, 7))
	there := map[uint32]byte{} // the byte that fills its record
	got := make([]byte, capacity*size)
	for step := range 60 {
		var out, in []uint32
		for u := range there {
			if random.IntN(3) == 0 {
				out = append(out, u)
			}
		}
		for _, u := range out {
			delete(there, u)
		}
		c.Delete(out)
		var at []int64
		for _, u := range random.Perm(b.w.Shape.DFFN)[:capacity] {
			if _, ok := there[uint32(u)]; ok || len(there) == capacity || random.IntN(2) == 0 {
				continue
			}
			fill := byte(step*31 + u)
			there[uint32(u)] = fill
			offset := int64(len(in) * record)
			in, at = append(in, uint32(u)), append(at, offset)
			for i := range record {
				staging[int(offset)+i] = fill + byte(i/size) // gate, up and down differ
			}
		}
		if err := c.Insert(in, staging, at); err != nil {
			t.Fatal(err)
		}
		if err := b.Synchronise(); err != nil {
			t.Fatal(err)
		}
		for kind, rows := range []kernels.Mem{c.rows.Gate, c.rows.Up, c.rows.Down} {
			if err := b.device.ToHost(got, rows.Ptr, b.moves); err != nil {
				t.Fatal(err)
			}
			if err := b.Synchronise(); err != nil {
				t.Fatal(err)
			}
			for u, fill := range there {
				slot := c.slots.Row(u)
				if slot < 0 || !bytes.Equal(got[slot*size:(slot+1)*size],
					bytes.Repeat([]byte{fill + byte(kind)}, size)) {
					t.Fatalf("step %d: unit %d in place %d of row buffer %d is not what was "+
						"inserted", step, u, slot, kind)
				}
			}
		}
	}
	if err := c.Insert(make([]uint32, capacity+1), staging, make([]int64, capacity+1)); err == nil {
		t.Error("more rows than there is room for were taken")
	}
	c.Reset()
	if err := c.Insert([]uint32{3}, make([]byte, record), []int64{0}); err == nil {
		t.Error("a record from memory that the device cannot see was taken")
	}
	if err := c.Insert([]uint32{4}, staging, []int64{int64(len(staging)) - 1}); err == nil {
		t.Error("a record beyond the end of the staging buffer was taken")
	}
}

// TestListsWrap puts more into a list's memory than it has: a list stays until it is used.
func TestListsWrap(t *testing.T) { EachDriver(t, testListsWrap) }

func testListsWrap(t *testing.T, on *TestDriver) {
	b := onDevice(t, on)
	l := b.lasting.lists(b.compute, 64)
	if b.lasting.err != nil {
		t.Fatal(b.lasting.err)
	}
	got := make([]byte, 40)
	for round := range 5 {
		want := bytes.Repeat([]byte{byte(round + 1)}, 40)
		m, err := l.put(want)
		if err != nil {
			t.Fatal(err)
		}
		if err := b.device.ToHost(got, m.Ptr, b.compute); err != nil {
			t.Fatal(err)
		}
		if err := b.device.SyncStream(b.compute); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("round %d: %v, %v", round, got, err)
		}
	}
	if _, err := l.put(make([]byte, 65)); err == nil {
		t.Error("a list that does not fit was taken")
	}
}

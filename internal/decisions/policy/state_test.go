package policy

import (
	"runtime"
	"testing"

	"github.com/windrow-sim/windrow/internal/units"
)

// StateBytes is what the policies of many layers really keep, within the rounding of small
// allocations.
func TestStateBytes(t *testing.T) {
	masks := benchMasks(40, true)
	for _, text := range []string{"none", "window:5", "window:20", "window:5,capacity:2500",
		"delta:900", "pages:2500,ahead:8", "lru:2500", "lfu:2500", "hot:1000+1500"} {
		const layers = 24
		list := make([]Policy, layers)
		d := Decision{Load: make([]uint32, 0, benchUnits), Evict: make([]uint32, 0, benchUnits)}
		before := liveHeap()
		for l := range list {
			list[l] = benchPolicy(t, text, masks, 1)
			for _, mask := range masks {
				list[l].Step(mask, &d)
			}
		}
		kept := liveHeap() - before
		runtime.KeepAlive(list)
		runtime.KeepAlive(d)
		spec, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		want := int64(layers * spec.StateBytes(benchUnits))
		if kept < want*85/100 || kept > want*115/100 {
			t.Errorf("%s: %d layers keep %d B, StateBytes says %v", text, layers, kept,
				units.Bytes(want))
		}
	}
}

// liveHeap is the size of what is reachable.
func liveHeap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

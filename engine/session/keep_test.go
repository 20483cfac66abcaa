package session

import (
	"context"
	"path/filepath"
	"runtime/metrics"
	"testing"

	"github.com/windrow-sim/windrow/engine/model"
	"github.com/windrow-sim/windrow/internal/units"
)

// metric is a number of the runtime.
func metric(t *testing.T, name string) int64 {
	t.Helper()
	list := []metrics.Sample{{Name: name}}
	metrics.Read(list)
	if list[0].Value.Kind() != metrics.KindUint64 {
		t.Fatalf("the runtime has no %s", name)
	}
	return int64(list[0].Value.Uint64())
}

// TestKeepWithin: garbage adds little to what a run keeps, and a closed session leaves the
// collector as it was.
func TestKeepWithin(t *testing.T) {
	path := filepath.Join(t.TempDir(), "small.flash.safetensors")
	if err := model.Synth(context.Background(), model.Shape{DModel: 64, Layers: 1, DFFN: 64,
		Heads: 1, KVHeads: 1, HeadDim: 64, Vocab: 96, MaxPos: 64, Rows: 2, DTypeSize: 2}, "small",
		1, path, model.SynthOptions{}); err != nil {
		t.Fatal(err)
	}
	const percent = "/gc/gogc:percent"
	before := metric(t, percent)
	s, err := Open(t.Context(), Config{Model: path})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for account, want := range map[units.Bytes]int64{units.GiB: 3, 40 * units.MiB: 10,
		units.MiB: 100, 0: 100} {
		s.KeepWithin(account)
		if got := metric(t, percent); got != want {
			t.Errorf("%v: the heap may grow by %d %%, want %d", account, got, want)
		}
	}
	s.Close()
	if got := metric(t, percent); got != before {
		t.Errorf("after Close the heap may grow by %d %%, before Open by %d", got, before)
	}
}

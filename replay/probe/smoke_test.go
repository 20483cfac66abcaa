package probe

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/windrow-sim/windrow/devicemodels"
	"github.com/windrow-sim/windrow/engine/flashio"
	"github.com/windrow-sim/windrow/internal/units"
)

// TestRealMachine runs a short probe of the file system that temporary files are on.
func TestRealMachine(t *testing.T) {
	if testing.Short() {
		t.Skip("writes and reads a file for about a second")
	}
	dir := t.TempDir()
	cfg := DefaultConfig(dir)
	cfg.Budget = time.Second
	cfg.FileSize = 32 * units.MiB
	cfg.MaxDriftPct = 1e9 // other tests run at the same time
	d, err := Run(context.Background(), cfg)
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("the probe left %v behind", left)
	}
	if errors.Is(err, flashio.ErrEnvironment) || errors.Is(err, devicemodels.ErrFit) {
		t.Skipf("this file system or this busy machine cannot be measured: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	// How fast a busy machine is, no test can say; that every part was measured, it can.
	h := d.Host
	for name, rate := range map[string]units.Rate{
		"memory": h.MemoryRate, "dense": h.DenseRate, "row": h.RowRate, "copy": h.CopyRate,
		"kv": h.KVRate,
	} {
		if rate <= 0 {
			t.Errorf("no %s rate was measured", name)
		}
	}
	if len(d.Fit.Cells) == 0 || d.Fit.Mode == "" || len(d.Flash.Engines) == 0 {
		t.Errorf("%d cells, mode %q, engines %v", len(d.Fit.Cells), d.Fit.Mode, d.Flash.Engines)
	}
	text, err := devicemodels.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("\n%s", text)
}

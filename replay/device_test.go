package replay

import (
	"os"
	"testing"

	"github.com/windrow-sim/windrow/engine/cuda"
	"github.com/windrow-sim/windrow/engine/flashio"
	"github.com/windrow-sim/windrow/internal/decisions/layout"
	"github.com/windrow-sim/windrow/internal/decisions/policy"
	"github.com/windrow-sim/windrow/internal/units"
	kernels "github.com/windrow-sim/windrow/kernels/cuda"
	"github.com/windrow-sim/windrow/kernels/cuda/standin"
	"github.com/windrow-sim/windrow/traces"
)

// clocked is a driver whose device says that everything took a microsecond: a stand-in has no
// clock.
type clocked struct{ kernels.Driver }

func (clocked) Elapsed(kernels.Event, kernels.Event) (units.Nanos, error) {
	return units.Microsecond, nil
}

// TestPhasesComeFromTheDevice: a device with a clock gives a run its phases, one without gives
// none.
func TestPhasesComeFromTheDevice(t *testing.T) {
	if os.Getenv("WINDROW_CUDA_LIBRARY") != "" {
		t.Skip("this is about the stand-in")
	}
	src, image, w := talesTrace(t, 3)
	for _, clock := range []bool{false, true} {
		driver, err := kernels.OpenLibrary(standin.Open(t).Path())
		if err != nil {
			t.Fatal(err)
		}
		if clock {
			driver = clocked{driver}
		}
		d, err := kernels.Open(driver, 0)
		if err != nil {
			t.Fatal(err)
		}
		b, err := cuda.New(d, w, cuda.Options{})
		if err != nil {
			t.Fatal(err)
		}
		reader, err := flashio.Open(image.Path, flashio.Options{Engine: flashio.EnginePread})
		if err != nil {
			t.Fatal(err)
		}
		result, err := Run(t.Context(), src, w, image.Geometry(), reader,
			Config{Policy: policy.SlidingWindow(1),
				Layout: layout.Options{Coalesce: true}, Backend: b, Store: b})
		if err != nil {
			t.Fatal(err)
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		p := result.Run.Meta.Phases
		if !clock {
			if p != nil {
				t.Errorf("phases of a device without a clock: %+v", p)
			}
			continue
		}
		loads := 0
		for _, r := range result.Run.Rows {
			if r.Misses > 0 {
				loads++
			}
		}
		tokens, layers := units.Nanos(src.Tokens()), units.Nanos(w.Shape.Layers)
		if p == nil || p.Clock != traces.ClockEvents ||
			p.Compute != tokens*(2*layers+1)*units.Microsecond ||
			p.Scatter != units.Nanos(loads)*units.Microsecond || p.Read == 0 {
			t.Errorf("phases %+v of %d tokens in %d layers, %d of them with reads", p, tokens,
				layers, loads)
		}
	}
}

package cuda_test

import (
	"path/filepath"
	"testing"

	"github.com/windrow-sim/windrow/engine"
	"github.com/windrow-sim/windrow/engine/cuda"
	"github.com/windrow-sim/windrow/internal/decisions/launch"
	"github.com/windrow-sim/windrow/internal/decisions/policy"
)

// counts is an observer that sums counters.
type counts struct {
	record       int
	moves, loads int // layers with some
	layers       int
}

func (c *counts) Layer(ev *engine.LayerEvent) error {
	c.layers++
	if ev.Misses > 0 {
		c.loads++
	}
	if int(ev.Copied)/c.record > ev.Misses {
		c.moves++
	}
	return nil
}

func (c *counts) Token(*engine.TokenEvent) error { return nil }

// asking looks at counters only, watching at times too.
type (
	asking   struct{ counts }
	watching struct{ counts }
)

func (*asking) CountsOnly()  {}
func (*watching) TimesOnly() {}

// TestLaunches: the driver calls of a token are those that package launch computes and the
// simulator charges, and the waits are those of package sim.
func TestLaunches(t *testing.T) { cuda.EachDriver(t, testLaunches) }

func testLaunches(t *testing.T, on *cuda.TestDriver) {
	if on.Launch.Call != "cuLaunchKernel" {
		t.Skip("the count is of CUDA's calls, which a stand-in counts")
	}
	for _, name := range []string{"opt", "mistral-window"} {
		t.Run(name, func(t *testing.T) {
			m := pack(t, on, filepath.Join(familiesDir, name), nil)
			d, library := on.Device(t), on.StandIn
			b, err := cuda.New(d, m.w, cuda.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := b.Close(); err != nil {
					t.Error(err)
				}
			}()
			const positions = 8
			e := made(t, m, m.resident(t), engine.Config{Context: positions, Backend: b})
			want := run(t, e, []uint32{5, 40, 17}, positions, nil)
			e.Close()
			rows := m.flash(t, engine.FlashConfig{Policy: policy.SlidingWindow(1), Store: b})
			defer rows.Close()
			e = made(t, m, rows, engine.Config{Context: positions, Backend: b})
			defer e.Close()
			record := int(m.w.RecordBytes())
			asks, watches := &asking{counts{record: record}}, &watching{counts{record: record}}
			for _, c := range []struct {
				observer engine.Observer
				seen     *counts
				waits    int // of a layer
			}{{asks, &asks.counts, 1}, {watches, &watches.counts, 4}} {
				e.Observe(c.observer)
				e.Reset()
				calls := func() (n [2]int) {
					for _, name := range []string{"cuLaunchKernel", "cuMemcpyHtoDAsync_v2",
						"cuMemcpyDtoHAsync_v2"} {
						n[0] += library.Calls(name)
					}
					n[1] = library.Calls("cuStreamSynchronize")
					return n
				}
				before := calls()
				for pos := range positions {
					if _, err := e.Forward(engine.Token{Pos: pos, ID: want.ids[pos],
						Masks: want.masks[pos]}); err != nil {
						t.Fatal(err)
					}
				}
				after := calls()
				family, layers := launch.Of(m.w.Shape.Rows), positions*m.w.Shape.Layers
				all := positions*(family.Begin().All()+launch.Head().All()) +
					layers*(family.Attention().All()+launch.FFN(true).All()) +
					c.seen.moves*launch.Arrive(true, false).All() +
					c.seen.loads*launch.Arrive(false, true).All()
				if got := after[0] - before[0]; got != all || c.seen.layers != layers ||
					c.seen.loads == 0 {
					t.Errorf("%d calls, the count is %d; %d layers, rows moved in %d", got, all,
						c.seen.layers, c.seen.moves)
				}
				// Room for lists that is full costs a wait more, here with nearly every token, else
				// with every tenth or so.
				if got, all := after[1]-before[1], positions+layers*c.waits; got < all ||
					got > all+positions {
					t.Errorf("%d waits, the count is %d", got, all)
				}
			}
		})
	}
}

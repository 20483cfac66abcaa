package cuda_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/engine"
	"github.com/windrow-sim/windrow/engine/cuda"
	"github.com/windrow-sim/windrow/engine/flashio"
	"github.com/windrow-sim/windrow/internal/decisions/policy"
	"github.com/windrow-sim/windrow/internal/decisions/schedule"
	"github.com/windrow-sim/windrow/internal/mask"
)

// session runs two tokens dense and two from flash, and closes everything; all errors come back.
func session(t *testing.T, m *loaded, masks [][]mask.Mask) (err error) {
	d, err := m.on.Open()
	if err != nil {
		return err
	}
	b, err := cuda.New(d, m.w, cuda.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	if err := tokens(m, m.resident(t), b, nil); err != nil {
		return err
	}
	rows, err := m.openFlash(t, engine.FlashConfig{Store: b})
	if err != nil {
		return err
	}
	return errors.Join(tokens(m, rows, b, masks), rows.Close())
}

func tokens(m *loaded, rows engine.Rows, b *cuda.Backend, masks [][]mask.Mask) error {
	e, err := engine.New(m.w, rows, engine.Config{Threads: 1, Context: 3, Backend: b,
		Observer: &seen{}})
	if err != nil {
		return err
	}
	defer e.Close()
	for pos := range 3 {
		token := engine.Token{Pos: pos, ID: uint32(5 + 9*pos)}
		if masks != nil {
			token.Masks = masks[pos]
		}
		if _, err := e.Forward(token); err != nil {
			return err
		}
	}
	return nil
}

// TestEveryCallFails: whichever call fails, early or late, the error names it and its code, and
// nothing is left on the device.
func TestEveryCallFails(t *testing.T) { cuda.EachDriver(t, testEveryCallFails) }

func testEveryCallFails(t *testing.T, on *cuda.TestDriver) {
	if on.StandIn == nil {
		t.Skip("this is about stand-ins")
	}
	gated, projected := pack(t, on, filepath.Join(familiesDir, "llama-relu"), nil),
		pack(t, on, filepath.Join(familiesDir, "opt-350m"), nil)
	for _, c := range on.Faults {
		t.Run(c.Call, func(t *testing.T) {
			on.StandIn.Forget()
			m := gated
			if c.Call == "cuMemcpyDtoDAsync_v2" { // which only a model without a last norm calls
				m = projected
			}
			e := made(t, m, m.resident(t), engine.Config{Context: 3})
			masks := run(t, e, []uint32{5, 14, 23}, 3, nil).masks
			e.Close()
			if err := session(t, m, masks); err != nil {
				t.Fatal(err)
			}
			calls := on.StandIn.Calls(c.Call)
			if calls == 0 {
				t.Fatalf("%s is not called at all", c.Call)
			}
			for _, nth := range []int{1, calls / 2, calls * 4 / 5, calls} {
				if nth < 1 {
					continue
				}
				for _, lose := range []bool{false, true} {
					on.StandIn.Forget()
					c.Fail(nth, lose)
					err := session(t, m, masks)
					if err == nil || !strings.Contains(err.Error(), c.Text) || c.Kind != nil &&
						!errors.Is(err, c.Kind) {
						t.Errorf("call %d of %d, lost %v: %v", nth, calls, lose, err)
					}
					if left := on.StandIn.Left(); left != "" {
						t.Errorf("call %d of %d, lost %v: left on the device: %s", nth, calls, lose,
							left)
					}
				}
			}
			on.StandIn.Forget()
		})
	}
}

// failing is a reader whose n-th batch fails.
type failing struct {
	flashio.Reader
	left int
}

var errBroken = errors.New("broken")

func (f *failing) ReadBatch(reqs []flashio.Request) error {
	if f.left--; f.left < 0 {
		return errBroken
	}
	return f.Reader.ReadBatch(reqs)
}

// TestReadsThatFail end the token with the reader's error, on demand and in the background, and
// leave nothing on the device.
func TestReadsThatFail(t *testing.T) { cuda.EachDriver(t, testReadsThatFail) }

func testReadsThatFail(t *testing.T, on *cuda.TestDriver) {
	m := pack(t, on, filepath.Join(familiesDir, "opt"), nil)
	e := made(t, m, m.resident(t), engine.Config{Context: 4})
	want := run(t, e, []uint32{5, 6, 7}, 4, nil)
	e.Close()
	for _, when := range []schedule.Kind{schedule.Demand, schedule.LookAhead} {
		t.Run(fmt.Sprint(when), func(t *testing.T) {
			b := m.backend(t)
			for n := range 5 {
				reader, err := flashio.Open(m.path, flashio.Options{Engine: flashio.EngineMem})
				if err != nil {
					t.Fatal(err)
				}
				rows, err := engine.NewFlash(m.w, m.geo, &failing{reader, n}, engine.FlashConfig{
					Policy: policy.SlidingWindow(1), Store: b})
				if err != nil {
					t.Fatal(err)
				}
				before := b.Bytes()
				e := made(t, m, rows, engine.Config{Context: 4, Backend: b, Schedule: when})
				var failed error
				for pos := 0; pos < 4 && failed == nil; pos++ {
					_, failed = e.Forward(engine.Token{Pos: pos, ID: want.ids[pos],
						Masks: want.masks[pos]})
				}
				if !errors.Is(failed, errBroken) {
					t.Errorf("batch %d fails: %v", n, failed)
				}
				if e.Close(); b.Bytes() != before {
					t.Errorf("the engine left %v on the device", b.Bytes()-before)
				}
				if err := rows.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// TestGoesOnAfterAnError: a launch that failed once is over with Reset.
func TestGoesOnAfterAnError(t *testing.T) { cuda.EachDriver(t, testGoesOnAfterAnError) }

func testGoesOnAfterAnError(t *testing.T, on *cuda.TestDriver) {
	if on.StandIn == nil {
		t.Skip("this is about stand-ins")
	}
	m := pack(t, on, filepath.Join(familiesDir, "opt"), nil)
	b, err := cuda.New(on.Device(t), m.w, cuda.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	e := made(t, m, m.resident(t), engine.Config{Context: 4, Backend: b})
	defer e.Close()
	want := run(t, e, []uint32{5, 6, 7}, 4, nil)
	on.Launch.Fail(2, false)
	e.Reset()
	if _, err := e.Forward(engine.Token{ID: 5}); err == nil || !strings.Contains(err.Error(),
		"position 0") {
		t.Fatalf("%v: want an error that says where", err)
	}
	if _, err := e.Forward(engine.Token{ID: 5}); err == nil {
		t.Error("it went on without Reset")
	}
	near(t, "after Reset", run(t, e, []uint32{5, 6, 7}, 4, nil), want, true)
}

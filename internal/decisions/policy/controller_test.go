package policy

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/internal/mask"
	"github.com/windrow-sim/windrow/internal/rng"
)

// TestControllerText runs testdata/controller/controller.txt, which says how to read it.
func TestControllerText(t *testing.T) {
	const file = "testdata/controller/controller.txt"
	var c *Controller
	steps, last := 0, 0
	for i, line := range readLines(t, file) {
		fail := func(format string, args ...any) {
			t.Errorf("%s:%d: %s: %s", file, i+1, line, fmt.Sprintf(format, args...))
		}
		text, why, explained := strings.Cut(line, "because")
		field := fields(strings.Fields(text))
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case line == "reset":
			c.Reset()
		case strings.HasPrefix(line, "bounds"):
			b, calm := field["bounds"], field["calm"]
			var err error
			if c, err = NewController(Bounds{Min: int(b[0]), Max: int(b[1]),
				Calm: int(calm[0])}); err != nil {
				t.Fatal(err)
			}
			last = int(b[1])
		case len(field["room"]) != 1 || len(field["window"]) != 1 || !explained || why == "":
			t.Fatalf("%s:%d: %q is not a line of the script", file, i+1, line)
		default:
			var use []int
			for _, n := range field["use"] {
				use = append(use, int(n))
			}
			held := last
			if h := field["held"]; len(h) == 1 {
				held = int(h[0])
			}
			steps, last = steps+1, int(field["window"][0])
			if got := c.Next(int(field["room"][0]), held, use); got != last {
				fail("the controller chooses %d", got)
			}
		}
	}
	if steps < 20 {
		t.Errorf("only %d steps", steps)
	}
}

func TestControllerRefusals(t *testing.T) {
	for _, b := range []Bounds{{-1, 4, 1}, {5, 4, 1}, {0, 4, 0}} {
		if _, err := NewController(b); !errors.Is(err, ErrController) {
			t.Errorf("%+v: %v", b, err)
		}
	}
}

// workload is a random trace: what every token needs of every layer. Units that were active lately
// are likelier to be.
func workload(seed uint64, layers, units, tokens int) (need [][]mask.Mask) {
	r := rng.Stream(seed, "policy/controller")
	warm := make([][]float64, layers)
	for l := range warm {
		warm[l] = make([]float64, units)
	}
	for range tokens {
		var token []mask.Mask
		busy := 0.02 + 0.1*r.Float64()
		for l := range layers {
			mask := mask.New(units)
			for u := range units {
				warm[l][u] *= 0.7
				if r.Float64() < busy+0.6*warm[l][u] {
					mask.Set(uint32(u))
					warm[l][u] = 1
				}
			}
			token = append(token, mask)
		}
		need = append(need, token)
	}
	return need
}

// TestElasticOfOneLengthIsAWindow: with room for everything and a constant length, every decision
// is that of Window.
func TestElasticOfOneLengthIsAWindow(t *testing.T) {
	const layers, units = 3, 150
	need := workload(1, layers, units, 40)
	for _, k := range []int{0, 1, 2, 7, 60} {
		e := NewElastic(layers, units, 60)
		var plain [layers]*Window
		for l := range plain {
			plain[l] = NewWindow(units, k)
		}
		var got, want Decision
		for sequence := range 2 {
			for i, token := range need {
				for l, early := range e.Begin(k) {
					if len(early) > 0 {
						t.Fatalf("window %d, token %d: %v leave layer %d early", k, i, early, l)
					}
				}
				for l := range layers {
					plain[l].Step(token[l], &want)
					if early := e.Step(l, token[l], layers*units, &got); early != nil {
						t.Fatalf("window %d, token %d, layer %d shrinks for %v", k, i, l, early)
					}
					if got, want := show(&got), show(&want); got != want {
						t.Fatalf("sequence %d, window %d, token %d, layer %d: %s, a window "+
							"decides %s", sequence, k, i, l, got, want)
					}
				}
			}
			e.Reset()
			for l := range plain {
				plain[l].Reset()
			}
		}
	}
}

// memory is a plain copy of what is in memory, which follows what an Elastic says.
type memory struct {
	units   []map[uint32]bool
	pending [][]uint32
}

func (m *memory) leave(layer int, list []uint32) error {
	for _, u := range list {
		if !m.units[layer][u] {
			return fmt.Errorf("unit %d leaves layer %d, where it is not", u, layer)
		}
		delete(m.units[layer], u)
	}
	return nil
}

// evictFirst carries out the evictions before a read: those of the last token, then early.
func (m *memory) evictFirst(early [][]uint32) error {
	for l := range m.units {
		if err := errors.Join(m.leave(l, m.pending[l]), m.leave(l, early[l])); err != nil {
			return err
		}
		m.pending[l] = nil
	}
	return nil
}

func (m *memory) inUse() (n int) {
	for _, layer := range m.units {
		n += len(layer)
	}
	return n
}

// follow runs a controlled window over a workload and returns loads by token and its windows. It
// checks after every layer that memory is what the window says, and within the room.
func follow(t *testing.T, need [][]mask.Mask, b Bounds, room []int) (loads, windows []int) {
	t.Helper()
	layers, units := len(need[0]), 64*len(need[0][0])
	e := NewElastic(layers, units, b.Max)
	c, err := NewController(b)
	if err != nil {
		t.Fatal(err)
	}
	m := &memory{pending: make([][]uint32, layers)}
	for range layers {
		m.units = append(m.units, map[uint32]bool{})
	}
	var d Decision
	for i, token := range need {
		if err := m.evictFirst(e.Begin(c.Next(room[i], e.Window(), e.Use(nil)))); err != nil {
			t.Fatalf("token %d: %v", i, err)
		}
		sum := 0
		for l := range layers {
			before := e.Window()
			if early := e.Step(l, token[l], room[i], &d); early != nil {
				if err := m.evictFirst(early); err != nil || e.Window() >= before {
					t.Fatalf("token %d, layer %d: %v; the window was %d and is %d", i, l, err,
						before, e.Window())
				}
			}
			for _, u := range d.Load {
				if m.units[l][u] {
					t.Fatalf("token %d, layer %d: unit %d is loaded and was there", i, l, u)
				}
				m.units[l][u] = true
			}
			for u := range token[l].Each {
				if !m.units[l][u] {
					t.Fatalf("token %d, layer %d: unit %d is needed and not there", i, l, u)
				}
			}
			m.pending[l] = slices.Clone(d.Evict)
			if m.inUse() > room[i] || m.inUse() != e.InUse() {
				t.Fatalf("token %d, layer %d: %d rows are in use, said to be %d, with room for %d",
					i, l, m.inUse(), e.InUse(), room[i])
			}
			sum += len(d.Load)
		}
		loads, windows = append(loads, sum), append(windows, e.Window())
	}
	return loads, windows
}

// floor is the room that a window of k tokens needs at most: the fullest moment of each layer.
func floor(need [][]mask.Mask, k int) (rows int) {
	for l := range need[0] {
		most := 0
		for i := range need {
			union := make(mask.Mask, len(need[i][l]))
			for j := max(i-k, 0); j <= i; j++ {
				union.Or(need[j][l])
			}
			most = max(most, union.Count())
		}
		rows += most
	}
	return rows
}

// randomRoom changes now and then, and never falls below a floor.
func randomRoom(seed uint64, tokens, low, high int) []int {
	r := rng.Stream(seed, "policy/room")
	room, now := make([]int, tokens), high
	for i := range room {
		if r.Float64() < 0.15 {
			now = low + r.IntN(high-low+1)
		}
		room[i] = now
	}
	return room
}

// Never above the budget, never shorter than the least window, whatever the budget does.
func TestControlledWindowStaysWithinRandomBudgets(t *testing.T) {
	for seed := range uint64(12) {
		need := workload(seed, 3, 128, 60)
		b := Bounds{Min: int(seed % 3), Max: 10, Calm: 1 + int(seed%4)}
		_, windows := follow(t, need, b, randomRoom(seed, 60, floor(need, b.Min), floor(need, 12)))
		if k := slices.Min(windows); k < b.Min || slices.Max(windows) > b.Max {
			t.Errorf("seed %d: windows %v of %+v", seed, windows, b)
		}
	}
}

// A budget that is never smaller never loads more, token by token, and never has a shorter window.
func TestLargerBudgetNeverLoadsMore(t *testing.T) {
	for seed := range uint64(12) {
		need := workload(seed, 2, 128, 60)
		b := Bounds{Max: 10, Calm: 1 + int(seed%5)}
		small := randomRoom(seed, 60, floor(need, 0), floor(need, 8))
		more := randomRoom(seed+100, 60, 0, 40)
		large := make([]int, len(small))
		for i := range large {
			large[i] = small[i] + more[i]
		}
		a, short := follow(t, need, b, small)
		c, long := follow(t, need, b, large)
		for i := range a {
			if c[i] > a[i] || long[i] < short[i] {
				t.Errorf("seed %d, token %d: %d loads and a window of %d with the larger "+
					"budget, %d and %d with the smaller", seed, i, c[i], long[i], a[i], short[i])
			}
		}
	}
}

// Growing takes Calm tokens, so that over T tokens there are at most T/Calm growths, and no more
// shrinking than they and the start allow. Without hysteresis the same budget makes the window
// flap.
func TestHysteresisPreventsFlapping(t *testing.T) {
	const tokens = 120
	need := workload(5, 2, 128, tokens)
	low, high := floor(need, 2), floor(need, 3)
	room := make([]int, tokens)
	for i := range room {
		room[i] = low
		if i%3 > 0 {
			room[i] = high
		}
	}
	changes := func(calm int) (n, grown int) {
		_, windows := follow(t, need, Bounds{Max: 10, Calm: calm}, room)
		for i := 1; i < len(windows); i++ {
			if windows[i] != windows[i-1] {
				n++
			}
			grown += max(windows[i]-windows[i-1], 0)
		}
		return n, grown
	}
	flapping, _ := changes(1)
	for _, calm := range []int{4, 8, 16} {
		n, grown := changes(calm)
		if grown > tokens/calm || n > 2*grown+10 {
			t.Errorf("calm %d: the window changed %d times and grew by %d", calm, n, grown)
		}
		if n >= flapping/2 {
			t.Errorf("calm %d: %d changes, %d without hysteresis", calm, n, flapping)
		}
	}
}

// With nothing left to shrink the decision stands and the excess can be seen.
func TestElasticBelowTheFloor(t *testing.T) {
	e := NewElastic(1, 64, 4)
	var d Decision
	e.Begin(4)
	e.Step(0, maskOf(64, []uint32{1, 2, 3}), 2, &d)
	if e.InUse() != 3 || len(d.Load) != 3 || e.Window() != 0 {
		t.Errorf("%d rows in use, %d loaded, window %d", e.InUse(), len(d.Load), e.Window())
	}
}

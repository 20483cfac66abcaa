package policy

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestWindowText(t *testing.T) {
	f, err := os.Open("testdata/window.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var w *Window
	var units, checked int
	scan := bufio.NewScanner(f)
	for line := 1; scan.Scan(); line++ {
		text := scan.Text()
		switch {
		case text == "" || strings.HasPrefix(text, "#"):
		case strings.HasPrefix(text, "window"):
			var k int
			if _, err := fmt.Sscanf(text, "window k=%d units=%d", &k, &units); err != nil {
				t.Fatalf("line %d: %v", line, err)
			}
			w = NewWindow(units, k)
		case text == "reset":
			w.Reset()
		default:
			checkLine(t, w, units, line, text)
			checked++
		}
	}
	if checked == 0 {
		t.Fatal("no lines were checked")
	}
}

func checkLine(t *testing.T, w *Window, units, line int, text string) {
	t.Helper()
	field := map[string][]uint32{}
	key := ""
	for _, word := range strings.Fields(text) {
		if n, err := strconv.Atoi(word); err == nil {
			field[key] = append(field[key], uint32(n))
		} else if word != "-" {
			key = word
			field[key] = nil
		}
	}
	var d Decision
	w.Step(mask(units, field["need"]), &d)
	got := fmt.Sprintf("hits %d load %v evict %v", d.Hits, d.Load, d.Evict)
	want := fmt.Sprintf("hits %d load %v evict %v", field["hits"][0], field["load"], field["evict"])
	if got != want {
		t.Errorf("testdata/window.txt:%d: got %s, want %s", line, got, want)
	}
}

func mask(units int, set []uint32) []uint64 {
	m := make([]uint64, (units+63)/64)
	for _, u := range set {
		m[u/64] |= 1 << (u % 64)
	}
	return m
}

// plainWindow is the definition of the design, word for word, with sets.
type plainWindow struct {
	k      int
	past   []map[uint32]bool // need of every token so far
	memory map[uint32]bool
}

func (p *plainWindow) step(need map[uint32]bool) (hits int, load, evict []uint32) {
	for u := range need {
		if p.memory[u] {
			hits++
		} else {
			load = append(load, u)
			p.memory[u] = true
		}
	}
	p.past = append(p.past, need)
	keep := map[uint32]bool{}
	for i := max(0, len(p.past)-p.k); i < len(p.past); i++ {
		for u := range p.past[i] {
			keep[u] = true
		}
	}
	for u := range p.memory {
		if !keep[u] {
			evict = append(evict, u)
			delete(p.memory, u)
		}
	}
	slices.Sort(load)
	slices.Sort(evict)
	return hits, load, evict
}

func TestWindowAgainstPlain(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, k := range []int{0, 1, 2, 3, 5, 17, 64} {
		for _, units := range []int{1, 63, 64, 65, 200} {
			w, p := NewWindow(units, k), &plainWindow{k: k, memory: map[uint32]bool{}}
			slots := NewSlots(units)
			var d Decision
			for token := range 150 {
				need := map[uint32]bool{}
				for u := range uint32(units) {
					if random.Float64() < 0.1 {
						need[u] = true
					}
				}
				var list []uint32
				for u := range need {
					list = append(list, u)
				}
				w.Step(mask(units, list), &d)
				hits, load, evict := p.step(need)
				if d.Hits != hits || !slices.Equal(d.Load, load) || !slices.Equal(d.Evict, evict) {
					t.Fatalf("k=%d units=%d token %d: got %+v, want hits %d load %v evict %v", k, units, token, d, hits, load, evict)
				}
				applyToSlots(t, slots, &d, need, p.memory)
			}
		}
	}
}

// applyToSlots checks that the rows of the cache are always 0…Len−1 and hold exactly what the policy says.
func applyToSlots(t *testing.T, s *Slots, d *Decision, need, after map[uint32]bool) {
	t.Helper()
	for _, u := range d.Load {
		if s.Row(u) != -1 {
			t.Fatalf("unit %d is loaded but present in row %d", u, s.Row(u))
		}
		s.Insert(u)
	}
	for u := range need {
		if s.Row(u) < 0 {
			t.Fatalf("unit %d is needed but not in memory", u)
		}
	}
	for _, u := range d.Evict {
		s.Delete(u)
	}
	if s.Len() != len(after) {
		t.Fatalf("%d rows in use, want %d", s.Len(), len(after))
	}
	for row := range s.Len() {
		if u := s.Unit(row); s.Row(u) != row || !after[u] {
			t.Fatalf("row %d holds unit %d, whose row is %d and which should be in memory: %v", row, u, s.Row(u), after[u])
		}
	}
}

// A window longer than any trace keeps everything and costs no more memory than the trace.
func TestEndlessWindow(t *testing.T) {
	w := NewWindow(128, 1<<40)
	var d Decision
	for range 3 {
		for token := range uint32(100) {
			if w.Step(mask(128, []uint32{token}), &d); len(d.Evict) != 0 || len(d.Load) != 1 {
				t.Fatalf("token %d: %+v", token, d)
			}
		}
		w.Reset()
	}
}

func TestSlotsDeleteMovesTheLastRow(t *testing.T) {
	s := NewSlots(10)
	for _, u := range []uint32{7, 2, 9} {
		s.Insert(u)
	}
	if from, to := s.Delete(7); from != 2 || to != 0 || s.Unit(0) != 9 || s.Row(9) != 0 || s.Row(7) != -1 {
		t.Fatalf("Delete(7) moved row %d to %d, units %v", from, to, s.unit)
	}
	if from, to := s.Delete(2); from != to {
		t.Fatalf("deleting the last row moved %d to %d", from, to)
	}
}

func BenchmarkWindowStep(b *testing.B) {
	const units, k = 16384, 5
	random := rand.New(rand.NewPCG(3, 4))
	masks := make([][]uint64, 64)
	for i := range masks {
		masks[i] = make([]uint64, units/64)
		for u := range units {
			if random.Float64() < 0.05 {
				masks[i][u/64] |= 1 << (u % 64)
			}
		}
	}
	w := NewWindow(units, k)
	var d Decision
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		w.Step(masks[i%len(masks)], &d)
	}
}

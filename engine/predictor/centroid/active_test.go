package centroid

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/internal/mask"
)

// TestActiveTexts runs the script in testdata, which says how to read it.
func TestActiveTexts(t *testing.T) {
	text, err := os.ReadFile("testdata/active.txt")
	if err != nil {
		t.Fatal(err)
	}
	var order []uint32
	explained, steps := false, 0
	for i, line := range strings.Split(string(text), "\n") {
		word, _, _ := strings.Cut(line, " ")
		switch {
		case word == "hottest":
			order = fields(t, line)["hottest"]
		case word == "gate":
			if !explained {
				t.Fatalf("line %d: the step has no explanation above it", i+1)
			}
			steps++
			if err := step(order, fields(t, line)); err != nil {
				t.Errorf("line %d: %s: %v", i+1, line, err)
			}
		case line != "" && word != "#":
			t.Fatalf("line %d: %q is not a line of a script", i+1, line)
		}
		explained = word == "#"
	}
	if steps < 10 {
		t.Fatalf("only %d steps", steps)
	}
}

// fields reads "name 1 2 other 3": every word that is not a number starts a list.
func fields(t *testing.T, line string) map[string][]uint32 {
	t.Helper()
	all := map[string][]uint32{}
	name := ""
	for _, word := range strings.Fields(line) {
		n, err := strconv.ParseUint(word, 10, 32)
		switch {
		case word == "-":
		case err != nil:
			name = word
			all[name] = nil
		default:
			all[name] = append(all[name], uint32(n))
		}
	}
	return all
}

func step(order []uint32, field map[string][]uint32) error {
	n := len(order)
	gate := bitset(n, field["gate"]...)
	up := gate
	if units, gated := field["up"]; gated {
		up = bitset(n, units...)
	}
	number := func(name string) int {
		if len(field[name]) == 0 {
			return 0
		}
		return int(field[name][0])
	}
	dst := mask.New(n)
	got := fill(gate, up, order, number("kmax"), dst)
	if want := (Filled{number("agreed"), number("padded"), number("truncated")}); got != want {
		return fmt.Errorf("got %+v", got)
	}
	if units := dst.AppendUnits(nil); !slices.Equal(units, field["active"]) {
		return fmt.Errorf("got %v", units)
	}
	return nil
}

func bitset(units int, set ...uint32) mask.Mask {
	m := mask.New(units)
	m.SetList(set)
	return m
}

// plainFill is fill in plain words: sort all units by (in both, in one, in none), then by rank, and
// take the first.
func plainFill(gate, up mask.Mask, order []uint32, kMax int) (units []uint32, f Filled) {
	var both, either, rest []uint32
	for _, u := range order {
		switch g, p := gate.Has(u), up.Has(u); {
		case g && p:
			both = append(both, u)
		case g || p:
			either = append(either, u)
		default:
			rest = append(rest, u)
		}
	}
	f.Agreed = len(both)
	units = slices.Concat(both, either, rest)
	if kMax == 0 {
		kMax = len(both)
	}
	f.Padded, f.Truncated = max(0, kMax-len(both)), max(0, len(both)-kMax)
	units = units[:kMax]
	slices.Sort(units)
	return units, f
}

// FuzzActive compares the K_max rule with its plain twin, and the places of the evaluation with
// both.
func FuzzActive(f *testing.F) {
	f.Add([]byte{1, 2, 3, 4, 5, 6, 7, 8}, uint8(8), uint8(3), uint8(1))
	f.Add([]byte{0xff, 0, 0xff, 0, 0x0f, 0xf0, 1}, uint8(130), uint8(64), uint8(7))
	f.Add([]byte{}, uint8(1), uint8(0), uint8(0))
	f.Fuzz(func(t *testing.T, raw []byte, size, k, turn uint8) {
		units := int(size) + 1
		kMax := int(k) % (units + 1)
		gate, up := mask.New(units), mask.New(units)
		for i := range 2 * units {
			if i/8 < len(raw) && raw[i/8]>>(i%8)&1 != 0 {
				to := []mask.Mask{gate, up}[i%2]
				to.Set(uint32(i / 2))
			}
		}
		order := make([]uint32, units) // some order of all units
		for i := range order {
			order[i] = uint32((units - 1 - i + int(turn)) % units)
		}
		want, counts := plainFill(gate, up, order, kMax)
		dst := mask.New(units)
		if got := fill(gate, up, order, kMax, dst); got != counts {
			t.Fatalf("counts %+v, want %+v", got, counts)
		}
		if got := dst.AppendUnits(nil); !slices.Equal(got, want) {
			t.Fatalf("units %v, want %v", got, want)
		}
		if kMax == 0 {
			return
		}
		var first []uint32
		seen := make([]bool, units)
		places(gate, up, order, func(u uint32, place int) {
			if seen[place] {
				t.Fatalf("place %d is taken twice", place)
			}
			seen[place] = true
			if place < kMax {
				first = append(first, u)
			}
		})
		if slices.Sort(first); !slices.Equal(first, want) {
			t.Fatalf("the first places are %v, the active set %v", first, want)
		}
	})
}

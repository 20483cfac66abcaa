package sim

import (
	"encoding"
	"errors"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/windrow-sim/windrow/devicemodels"
	"github.com/windrow-sim/windrow/devicemodels/flash"
	"github.com/windrow-sim/windrow/internal/refusal"
	"github.com/windrow-sim/windrow/traces"
)

// absurd are numbers that no device has in all of its fields, and values that are no numbers.
var absurd = []string{"0", "-1", "1", "1.5", "1e308", "NaN", ".nan", ".inf", "65537", "10000000",
	"18446744073709551616"}

// impossible are those that no field of any device has.
var impossible = []string{"-1", "1e308", "NaN", ".nan", ".inf", largest,
	"18446744073709551616"}

// quantity is the number of a value, and the text around it. A histogram has several.
var quantity = regexp.MustCompile(`[0-9]+(\.[0-9]+)?`)

// numbered is the text of a field with a number: with a unit, without, or a histogram.
var numbered = regexp.MustCompile(`^[0-9]+(\.[0-9]+)?([a-zA-Zµ/]*$|[a-z]+:[0-9]+ )`)

// numericFields lists the paths of the fields of a device that hold numbers, with their kinds.
func numericFields(t reflect.Type, path string, list map[string]reflect.Kind) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	text := reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
	switch {
	case text:
		list[path] = reflect.String
	case t.Kind() == reflect.Int, t.Kind() == reflect.Int64, t.Kind() == reflect.Float64:
		list[path] = t.Kind()
	case t.Kind() == reflect.Slice, t.Kind() == reflect.Map:
		numericFields(t.Elem(), path+".*", list)
	case t.Kind() == reflect.Struct:
		for f := range t.Fields() {
			if key, _, _ := strings.Cut(f.Tag.Get("yaml"), ","); key != "-" {
				numericFields(f.Type, strings.TrimPrefix(path+"."+key, "."), list)
			}
		}
	}
}

// place is a number in a device file.
type place struct {
	node  *yaml.Node
	path  string // as errors name it
	field string // as numericFields does
	whole bool   // an integer without a unit
}

// placesOf lists the numbers of a document.
func placesOf(n *yaml.Node, path, field string, fields map[string]reflect.Kind) (list []place) {
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i].Value
			inner := strings.TrimPrefix(field+"."+key, ".")
			if strings.HasSuffix(field, ".engines") || strings.HasSuffix(field, ".precisions") {
				inner = field + ".*"
			}
			list = append(list, placesOf(n.Content[i+1], strings.TrimPrefix(path+"."+key, "."),
				inner, fields)...)
		}
	case yaml.SequenceNode:
		for i, item := range n.Content {
			list = append(list, placesOf(item, fmt.Sprintf("%s[%d]", path, i), field+".*",
				fields)...)
		}
	case yaml.ScalarNode:
		if fields[field] != reflect.Invalid && numbered.MatchString(n.Value) {
			kind := fields[field]
			list = append(list, place{n, path, field, kind == reflect.Int || kind == reflect.Int64})
		}
	}
	return list
}

// TestAbsurdNumbersOfDevices replaces each number of a device file by absurd ones. The file is then
// refused with its line and the field's name, or a simulation of it ends.
func TestAbsurdNumbersOfDevices(t *testing.T) {
	text, err := os.ReadFile("testdata/full.device.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	fields := map[string]reflect.Kind{}
	numericFields(reflect.TypeFor[devicemodels.Device](), "", fields)
	places := placesOf(doc.Content[0], "", "", fields)
	for _, p := range places {
		delete(fields, p.field)
	}
	for field := range fields {
		t.Errorf("testdata/full.device.yaml has no %s", field)
	}
	refused, simulated := 0, 0
	for _, p := range places {
		for at, number := range quantity.FindAllStringIndex(p.node.Value, 2) {
			for _, other := range append(slices.Clone(absurd), largest, largestPower) {
				value := p.node.Value[:number[0]] + other + p.node.Value[number[1]:]
				if other == largest || other == largestPower {
					value = other + smallestUnit(p.node.Value)
				}
				name := fmt.Sprintf("%s (number %d): %s", p.path, at, value)
				d, err := devicemodels.Parse("x.yaml", replaced(string(text), p.node, value))
				if err == nil {
					if slices.Contains(impossible, other) ||
						other == largestPower {
						t.Errorf("%s: is accepted", name)
						continue
					}
					if p.whole && other == "1.5" {
						t.Errorf("%s: a fraction is read as a whole number", name)
					}
					ends(t, name, func() { simulateAll(t, name, d) })
					simulated++
					continue
				}
				refused++
				where := fmt.Sprintf("x.yaml:%d: %s", p.node.Line, p.path)
				related := strings.Contains(err.Error(), p.path[strings.LastIndex(p.path, ".")+1:])
				if !errors.Is(err, devicemodels.ErrFormat) || !strings.Contains(err.Error(),
					where) && !related {
					t.Errorf("%s: refused without %q: %v", name, where, err)
				}
			}
		}
	}
	if refused < simulated || simulated < len(places) {
		t.Errorf("%d values of %d fields are refused and %d simulated", refused, len(places),
			simulated)
	}
}

// The largest number and the largest power of two that fit into an integer in the smallest unit. In
// a larger unit they do not fit, and are refused without a range.
const (
	largest      = "9223372036854775807"
	largestPower = "4611686018427387904"
)

// smallestUnit is that of the kind of a text's unit.
func smallestUnit(text string) string {
	unit := strings.TrimLeft(text, "0123456789.")
	switch {
	case strings.Contains(text, ":"):
		return "ns:" + largest
	case strings.HasSuffix(unit, "B/s"):
		return "B/s"
	case strings.HasSuffix(unit, "B"):
		return "B"
	case strings.HasSuffix(unit, "s"):
		return "ns"
	}
	return unit
}

// replaced is a document with another text of a scalar.
func replaced(text string, n *yaml.Node, value string) []byte {
	lines := strings.Split(text, "\n")
	line := lines[n.Line-1]
	lines[n.Line-1] = line[:n.Column-1] + value + line[n.Column-1+len(n.Value):]
	return []byte(strings.Join(lines, "\n"))
}

// hung is far longer than anything here takes on a machine that is as busy as it gets.
const hung = 2 * time.Minute

// ends fails the test if do does not end.
func ends(t *testing.T, name string, do func()) {
	t.Helper()
	done := make(chan any, 1)
	go func() {
		defer func() { done <- recover() }()
		do()
	}()
	select {
	case fault := <-done:
		if fault != nil {
			t.Fatalf("%s: panic: %v", name, fault)
		}
	case <-time.After(hung):
		t.Fatalf("%s: does not end", name)
	}
}

// simulateAll simulates a few tokens on a device in every way that looks at other fields.
func simulateAll(t *testing.T, name string, d *devicemodels.Device) {
	src := testTrace(2, 256, 4, 0.2)
	src.Head.Shape.DTypeSize, src.Head.DType = 2, "F16"
	run := func(engine string, backend Backend, placement flash.Placement) {
		own := *d
		own.Flash.Placement = placement
		_, err := Run(t.Context(), src, Config{Policy: testConfig().Policy, Engine: engine,
			Parallel: 4, Device: &own, Backend: backend, Layout: testConfig().Layout})
		if err != nil && !errors.Is(err, refusal.ErrConfig) {
			t.Errorf("%s: %s, %s, %q: %v", name, engine, placement, backend, err)
		}
	}
	for _, placement := range []flash.Placement{flash.PlaceAny, flash.PlaceByAddress,
		flash.PlaceInRounds} {
		run("uring", OnHost, placement)
	}
	run("pread", OnHost, d.Flash.Placement)
	run("mmap", OnHost, d.Flash.Placement)
	run("pread", OnCUDA, d.Flash.Placement)
	if _, err := devicemodels.Check(d); err != nil {
		t.Errorf("%s: check: %v", name, err)
	}
}

// endless is a trace with more tokens than any simulation keeps the rows of.
type endless struct{ *traces.Memory }

func (endless) Tokens() int { return 1 << 50 }

// TestRowsAreBounded: a Run that would not fit into memory is refused before it takes any.
func TestRowsAreBounded(t *testing.T) {
	src := endless{testTrace(2, 256, 2, 0.2)}
	_, err := Run(t.Context(), src, testConfig())
	if !errors.Is(err, refusal.ErrConfig) || !strings.Contains(err.Error(), "MaxTokens") {
		t.Errorf("a Run of %d tokens: %v, want a refusal of MaxTokens", src.Tokens(), err)
	}
	cfg := testConfig()
	cfg.MaxTokens = 2
	if _, err := Run(t.Context(), src, cfg); err != nil {
		t.Errorf("2 tokens of it: %v", err)
	}
}

// TestClockIsBounded: work that takes longer than the clock counts is an error, on the host and on
// the flash. The times would overflow and be taken for short ones.
func TestClockIsBounded(t *testing.T) {
	for name, slow := range map[string]func(*Config, *traces.Header){
		"host": func(cfg *Config, head *traces.Header) {
			cfg.Device.Host.DenseRate, cfg.Device.Host.MemoryRate = 1e3, 1e3
			head.Shape.DModel, head.Shape.Heads, head.Shape.KVHeads = 1<<24, 1<<10, 1<<10
			head.Shape.HeadDim = 1 << 14
		},
		"flash": func(cfg *Config, head *traces.Header) {
			cfg.Device.Flash.LinkRate = 1e3
			head.UnitBytes = 1 << 41
		},
	} {
		src, cfg := testTrace(2, 256, 4, 0.2), testConfig()
		cfg.Device = testDevice()
		slow(&cfg, &src.Head)
		if _, err := Run(t.Context(), src, cfg); !errors.Is(err, flash.ErrClock) {
			t.Errorf("a slow %s: %v, want %v", name, err, flash.ErrClock)
		}
	}
}

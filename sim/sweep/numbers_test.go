package sweep

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/windrow-sim/windrow/internal/input/inputtest"
	"github.com/windrow-sim/windrow/internal/refusal"
	"github.com/windrow-sim/windrow/sim"
	"github.com/windrow-sim/windrow/traces"
)

// absurd are numbers that no scenario has in all of its fields, and values that are no numbers.
var absurd = []string{"0", "-1", "1", "1.5", "1e308", "NaN", ".inf", "65537", "10000000",
	"9223372036854775807", "18446744073709551616", "0..9223372036854775807", "1..1000000"}

// impossible are those that no field of any scenario has, but for those of anyNumber: limits that
// no trace reaches, seeds, and the steps of a list.
var (
	impossible = []string{"-1", "1e308", "NaN", ".inf", "9223372036854775807",
		"18446744073709551616", "0..9223372036854775807"}
	anyNumber = regexp.MustCompile(`((max_tokens|seed): |/)$`)
)

// TestAbsurdNumbersOfScenarios replaces each number of a scenario by absurd ones. It is then
// refused with its line, or the first configurations of it run on the first tokens.
func TestAbsurdNumbersOfScenarios(t *testing.T) {
	quantity := regexp.MustCompile(`\b[0-9]+(\.[0-9]+)?\b`)
	refused, ran := 0, 0
	scenario := strings.Replace(fullScenario, "\nmax_tokens", "\nshares: [2%, 0.05]\nmax_tokens", 1)
	scenario = strings.Replace(strings.Replace(scenario, "active: 0.05, ", "", 1),
		"image: some.flash.safetensors\n", "", 1)
	for _, at := range quantity.FindAllStringIndex(scenario, -1) {
		line := 1 + strings.Count(scenario[:at[0]], "\n")
		if strings.HasSuffix(scenario[:at[0]], "like: opt-") ||
			strings.HasPrefix(scenario[at[0]:], "6.7b") {
			continue
		}
		for _, other := range absurd {
			text := scenario[:at[0]] + other + scenario[at[1]:]
			name := fmt.Sprintf("line %d: %s", line, strings.Split(text, "\n")[line-1])
			s, err := ParseScenario("s.yaml", []byte(text))
			if err != nil {
				refused++
				if !errors.Is(err, ErrScenario) || !strings.Contains(err.Error(),
					fmt.Sprintf("s.yaml:%d: ", line)) && !strings.Contains(err.Error(),
					"multiply") &&
					!strings.Contains(err.Error(), "s.yaml:2: ") {
					t.Errorf("%s: refused without its line: %v", name, err)
				}
				continue
			}
			if slices.Contains(impossible, other) && !anyNumber.MatchString(scenario[:at[0]]) {
				t.Errorf("%s: is accepted", name)
				continue
			}
			ran++
			start(t, name, s)
		}
	}
	if refused < ran || ran < 40 {
		t.Errorf("%d scenarios are refused and %d run", refused, ran)
	}
}

// hung is far longer than anything here takes on a machine that is as busy as it gets.
const hung = 2 * time.Minute

// start runs the first configurations of a scenario on its first tokens.
func start(t *testing.T, name string, s *Scenario) {
	t.Helper()
	// Steps of a batch are as long as the batch is large, and lists are as long as they may be.
	s.MaxTokens, s.Batches, s.Headroom = 1, s.Batches[:min(len(s.Batches), 1)], false
	s.Trace.Layers = min(s.Trace.Layers, 1)
	if len(s.Batches) > 0 {
		s.Batches[0] = min(s.Batches[0], 4)
	}
	ctx, cancel := context.WithTimeout(t.Context(), hung)
	defer cancel()
	configs, err := configurations(s)
	if err == nil {
		var trace *Trace
		if trace, err = FromSynth(s.Trace.Options(true), s.MaxTokens); err == nil {
			err = Run(ctx, trace, List(configs[:min(len(configs), 2)]), Options{},
				func(*Result) error {
					return nil
				})
		}
	}
	if ctx.Err() != nil {
		t.Fatalf("%s: does not end", name)
	}
	if err != nil && !errors.Is(err, refusal.ErrConfig) && !strings.HasPrefix(err.Error(),
		"synth:") {
		t.Errorf("%s: %v", name, err)
	}
}

// parsed returns the configurations of a scenario and its synthetic trace.
func parsed(t *testing.T, scenario string) ([]Config, *Trace) {
	t.Helper()
	s, err := ParseScenario("s.yaml", []byte(scenario))
	if err != nil {
		t.Fatal(err)
	}
	configs, err := configurations(s)
	if err != nil {
		t.Fatal(err)
	}
	trace, err := FromSynth(s.Trace.Options(false), 0)
	if err != nil {
		t.Fatal(err)
	}
	return configs, trace
}

// TestHeadroomIsBounded: the fewest loads of a policy take memory for every token, which no second
// pass divides. A trace of too many tokens is refused before any is taken.
func TestHeadroomIsBounded(t *testing.T) {
	configs, trace := parsed(t, "trace: {like: opt-6.7b, tokens: 1000000000}\n"+
		"windows: 2\ndevices: m1-max\nheadroom: true\n")
	ctx, cancel := context.WithTimeout(t.Context(), hung)
	defer cancel()
	err := Run(ctx, trace, List(configs), Options{Headroom: true}, nil)
	if !errors.Is(err, sim.ErrConfig) || !strings.Contains(err.Error(), "max_tokens") {
		t.Errorf("%v, want a refusal that names max_tokens", err)
	}
}

// TestMemoryIsAsStated: docs/architecture.md states the size of a row.
func TestMemoryIsAsStated(t *testing.T) {
	if size := unsafe.Sizeof(traces.RunRow{}); size != 88 {
		t.Errorf("a row of a Run takes %d bytes, 88 are stated", size)
	}
}

// TestMemoryOfManyConfigurations: a pass has no more configurations than passMemory has room for,
// as the heap measures it.
func TestMemoryOfManyConfigurations(t *testing.T) {
	configs, trace := parsed(t, "trace: {like: opt-6.7b, layers: 1, tokens: 2}\n"+
		"windows: 0..19\ngaps: 0..99\nchunks: [none, 64KiB]\nparallel: 1..2\ndevices: m1-max\n")
	sweep := newSweeper(trace, List(configs), Options{})
	if err := sweep.check(t.Context()); err != nil {
		t.Fatal(err)
	}
	before := heap()
	p := newPass(trace, 1)
	for i := range configs {
		cfg, err := sweep.config(i)
		if err == nil {
			err = p.add(trace, &cfg.Config, sweep.table(&cfg.Config))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	p.ready()
	taken := heap() - before
	l := sweep.newLoad(trace.Tokens())
	for i := range configs {
		l.add(&configs[i], true)
	}
	estimated := float64(l.memory)
	if taken > estimated || taken < estimated/4 {
		t.Errorf("%d configurations take %.0f bytes, and %.0f are estimated", len(configs), taken,
			estimated)
	}
	runtime.KeepAlive(p)
}

// heap is the bytes of the heap that are in use.
func heap() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// largest is a sweep of many configurations: of windows, gaps, chunks and depths.
func largest(t *testing.T, windows int) (Configurations, *Trace) {
	t.Helper()
	s, err := ParseScenario("s.yaml", fmt.Appendf(nil, "trace: {like: opt-6.7b, layers: 1, "+
		"tokens: 2}\nwindows: 0..%d\ngaps: 0..99\nchunks: [none, 64KiB, 128KiB, 256KiB]\n"+
		"parallel: 1..5\ndevices: m1-max\n", windows-1))
	if err != nil {
		t.Fatal(err)
	}
	configs, err := s.Configurations(resolver())
	if err != nil {
		t.Fatal(err)
	}
	trace, err := FromSynth(s.Trace.Options(false), 0)
	if err != nil {
		t.Fatal(err)
	}
	return configs, trace
}

// TestMemoryDoesNotGrow: what a sweep holds is bounded by its pass. The more configurations were
// simulated, and the more are to come, the same it takes.
func TestMemoryDoesNotGrow(t *testing.T) {
	const memory = 3 << 20 // of a pass, instead of passMemory
	all, trace := largest(t, 500)
	if all.Len() != mostConfigurations {
		t.Fatalf("%d configurations, %d are the most", all.Len(), mostConfigurations)
	}
	before := heap()
	s := newSweeper(trace, Between(all, 0, 1_500), Options{})
	s.memory = memory
	var most [2]float64 // in the first half and in the second
	err := s.run(t.Context(), func(r *Result) error {
		if r.Index%100 == 0 {
			half := &most[min(r.Index/750, 1)]
			*half = max(*half, heap()-before)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	tables := 0
	for _, table := range s.tables {
		tables += table.bytes()
	}
	if tables > memory/keptShare {
		t.Errorf("%d tables of %d bytes are kept", len(s.tables), tables)
	}
	if most[1] > most[0]+memory/4 || max(most[0], most[1]) > 3*memory {
		t.Errorf("%.0f bytes, then %.0f, of passes of %d", most[0], most[1], memory)
	}
	runtime.KeepAlive(s)
}

// TestLargestSweep runs the largest sweep that is accepted and measures the memory of the process.
// "make largest" runs it.
func TestLargestSweep(t *testing.T) {
	if os.Getenv("WINDROW_LARGEST") == "" {
		t.Skip("takes half an hour; make largest runs it")
	}
	all, trace := largest(t, 500)
	done, most := 0, uint64(0)
	err := Run(t.Context(), trace, all, Options{}, func(*Result) error {
		if done++; done%1000 == 0 {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			most = max(most, m.Sys-m.HeapReleased)
		}
		return nil
	})
	if err != nil || done != mostConfigurations {
		t.Fatalf("%d results: %v", done, err)
	}
	t.Logf("%d results in at most %d MiB", done, most>>20)
	if most > 2*passMemory+256<<20 {
		t.Errorf("%d bytes, more than twice a pass", most)
	}
}

// TestAbsurdNumbersOfResults replaces each number of a file of results, whose lines then have the
// right hash. It is refused by line, field and value, or no program computes with it.
func TestAbsurdNumbersOfResults(t *testing.T) {
	path, h := filepath.Join(t.TempDir(), "r.jsonl"), &Header{}
	if err := sweepTo(t, path, h, false, 1000); err != nil {
		t.Fatal(err)
	}
	all, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(all, []byte("\n"))
	head, result := lines[0], lines[1]
	refused := 0
	try := func(line int, n inputtest.Number, other string, file []byte) {
		_, err := Read(bytes.NewReader(file), func(*Result) error { return nil })
		if err == nil {
			if slices.Contains(inputtest.Impossible(), other) {
				t.Errorf("line %d: %s = %s is accepted", line, n.Path, other)
			}
			return
		}
		refused++
		n.Line = line
		if missing := n.Missing(err, "results", other); missing != "" || !errors.Is(err,
			ErrResults) {
			t.Errorf("line %d: %s = %s: without %s: %v", line, n.Path, other, missing, err)
		}
	}
	for _, other := range inputtest.Absurd() {
		for _, n := range inputtest.JSON(t, head) {
			if !n.Quoted && !strings.HasPrefix(n.Path, "scenario.") {
				try(1, n, other, append(n.Replaced(head, other), result...))
			}
		}
		bare := unsummed(result)
		for _, n := range inputtest.JSON(t, bare) {
			if !n.Quoted {
				try(2, n, other, append(bytes.Clone(head), summed(n.Replaced(bare, other))...))
			}
		}
	}
	if refused < 300 {
		t.Errorf("%d numbers are refused", refused)
	}
}

// configurations are all those of a scenario.
func configurations(s *Scenario) (list []Config, err error) {
	all, err := s.Configurations(resolver())
	if err != nil {
		return nil, err
	}
	for i := range all.Len() {
		list = append(list, all.At(i))
	}
	return list, nil
}

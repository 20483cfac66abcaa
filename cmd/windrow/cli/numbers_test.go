package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/urfave/cli/v2"
)

// largest is the largest number that an integer holds.
const largest = "9223372036854775807"

// absurd are values of flags that hold numbers, by what their help calls the value. None fits any
// use; a verb refuses them or copes with them.
var absurd = map[string][]string{
	"SIZE": {largest + "B", "-1B", "NaNGiB"}, "SHARE": {"1e308", "-1", "NaN"},
	"S,S,…": {"1e308", "NaN"}, "N": {largest, "1.." + largest, "-1"},
	"RECORDS": {largest, "0.." + largest}, "TIME": {largest + "ns", "-1s", "NaNs"},
	"DURATION": {largest + "ns", "-1s"}, "pJ/bit": {"1e308", "NaN", "5..2"},
	"WATTS": {"1e308", "NaN"}, "R": {"1e308", "NaN", "1e-300"}, "TOKENS/s": {"1e308", "NaN"},
	"SHARE:FRACTION": {"1e308:0.1", "NaN:NaN", "0:0"},
	"I/N":            {"1/" + largest, largest + "/" + largest, "1/0"},
	"SPEC":           {"0:1e308GiB", largest + ":90%", "0:NaN%"},
	"POLICY": {"lru:" + largest, "window:" + largest, "pages:" + largest + ",ahead:" + largest,
		"hot:" + largest + "+" + largest, "lru:1e308GiB", "tensors:" + largest},
}

// placeholder is the word for the value in a flag's help.
var placeholder = regexp.MustCompile("`([^`]*)`")

// absurdOf lists the absurd values of a flag; none if it holds no number.
func absurdOf(f cli.Flag) []string {
	switch f.(type) {
	case *cli.IntFlag, *cli.Int64Flag:
		return []string{largest, "-" + largest, "1.5"}
	case *cli.Uint64Flag:
		return []string{"18446744073709551615", "-1"}
	case *cli.Float64Flag:
		return []string{"NaN", "1e308", "-1e308", "1e-300"}
	case *cli.DurationFlag:
		return []string{"2562047h", "-1s"}
	}
	word := placeholder.FindStringSubmatch(f.(cli.DocGenerationFlag).GetUsage())
	if word == nil {
		return nil
	}
	return absurd[word[1]]
}

// numberLines are command lines beside documents, with flags that need others.
var numberLines = []string{
	"sim -t tiny.trace.arrow -d m1-max --predicted --predictor-rank 4 --policy lru:2000 --gap 1",
	"sim -t tiny.trace.arrow -d m1-max --schedule lookahead --recall 0.5 --overfetch 0.1 " +
		"--staging 1MiB",
	"sim -t tiny.trace.arrow -d m1-max --schedule token --dense-prefix 1",
	"replay -t tales.trace.arrow -m tales.flash.safetensors --io mem --schedule lookahead " +
		"--staging 1MiB",
	"trace whatif tiny.trace.arrow --false-negatives 0.1 --false-positives 0.1 -o w.trace.arrow",
	"generate -m tales.flash.safetensors --prompts words.txt -n 2 --batch 2 --temp 1 --top-k 3",
	"generate -m tales.flash.safetensors --predictor low.predictor.safetensors -n 2 Once",
	"generate -m tales.flash.safetensors --oracle tales.trace.arrow -n 2 --io mem --window 2",
	"device fit grid.json -o g.device.yaml --cores 2",
	"probe . -o x.device.yaml", "demo --dir out", "validate --suite emulated",
}

// measuring are verbs that measure this machine for seconds. Their flags are checked before.
var measuringVerbs = []string{"probe", "demo", "validate"}

// linesOf lists the command lines that try the flags of a verb, in the order of preference.
func linesOf(t *testing.T, verb string) (list [][]string) {
	t.Helper()
	for _, d := range documents {
		if strings.HasPrefix(d.line+" ", verb+" ") && !strings.Contains(d.line, "--like list") {
			list = append(list, words(t, d.line))
		}
	}
	for _, line := range numberLines {
		if strings.HasPrefix(line+" ", verb+" ") {
			list = append(list, words(t, line))
		}
	}
	return list
}

// with returns a command line with another value of a flag, and whether the line had it.
func withValue(line []string, f cli.Flag, value string) (args []string, had bool) {
	names := f.Names()
	for i := 0; i < len(line); i++ {
		if strings.HasPrefix(line[i], "-") && slices.Contains(names, strings.TrimLeft(line[i],
			"-")) {
			had = true
			i++
			continue
		}
		args = append(args, line[i])
	}
	return append(args, "--"+names[0]+"="+value), had
}

// TestAbsurdNumbersOfFlags gives every flag with a number of every verb values that no use needs.
// The verb refuses them by name, or ends as ever: it does not panic, hang or take memory.
func TestAbsurdNumbersOfFlags(t *testing.T) {
	t.Setenv(asProgram, "1") // of the child that "trace check" starts
	trainWorkspace(t)
	sparseCheckpoint(t)
	linkFixture(t, "devicemodels/fio/testdata/grid.json", "grid.json")
	linkFixture(t, "traces/arrivals/testdata/azure-2024.csv", "azure.csv")
	for _, line := range []string{
		"sim -t tales.trace.arrow -m tales.flash.safetensors -d m1-max -o s.run.arrow",
		"sim -t tales.trace.arrow -m tales.flash.safetensors -d m1-max -o t.run.arrow",
		"train -t learn.trace.arrow --rank 2 --epochs 1 -o low.predictor.safetensors",
	} {
		must(t, words(t, line)...)
	}
	runs := 0
	eachFlag(func(verb string, f cli.Flag) {
		values := absurdOf(f)
		lines := linesOf(t, verb)
		if len(values) == 0 || len(lines) == 0 {
			if len(values) > 0 {
				t.Errorf("%s: no command line to try --%s with", verb, f.Names()[0])
			}
			return
		}
		line := lines[0]
		for _, other := range lines {
			if _, had := withValue(other, f, ""); had {
				line = other
				break
			}
		}
		for _, value := range values {
			args, _ := withValue(line, f, value)
			tryAbsurd(t, verb, f.Names()[0], value, args)
			runs++
		}
	})
	if runs < 500 {
		t.Errorf("%d values were tried", runs)
	}
}

const (
	// hung is far longer than anything here takes on a machine that is as busy as it gets.
	hung = 2 * time.Minute
	// mostAllocated bounds the bytes that a command line may allocate, garbage included.
	mostAllocated = 4 << 30
)

// tryAbsurd runs one command line.
func tryAbsurd(t *testing.T, verb, flag, value string, args []string) {
	t.Helper()
	name := "windrow " + strings.Join(args, " ")
	if i := slices.Index(args, "-o"); i >= 0 { // a file of its own, that is not there yet
		args = slices.Clone(args)
		args[i+1] = "absurd." + args[i+1]
	}
	old, err := filepath.Glob("absurd.*")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range old {
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), hung)
	defer cancel()
	if slices.Contains(measuringVerbs, strings.Fields(verb)[0]) {
		cancel()
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	done := make(chan outcome, 1)
	go func() {
		defer func() {
			if fault := recover(); fault != nil {
				done <- outcome{-1, "", fmt.Sprintf("panic: %v", fault)}
			}
		}()
		done <- commandContext(ctx, nil, args...)
	}()
	var o outcome
	select {
	case o = <-done:
	case <-time.After(2 * hung):
		t.Fatalf("%s: does not end, and does not hear that it should", name)
	}
	runtime.ReadMemStats(&after)
	if taken := after.TotalAlloc - before.TotalAlloc; taken > mostAllocated {
		t.Errorf("%s: takes %d bytes", name, taken)
	}
	if ctx.Err() == context.DeadlineExceeded {
		t.Errorf("%s: does not end", name)
	}
	switch o.code {
	case exitOK, exitValidation, exitInterrupted:
	case exitUsage, exitInput, exitHost:
		named := strings.Contains(o.stderr, flag) || strings.Contains(o.stderr, value)
		for word := range strings.SplitSeq(flag, "-") { // "a spread of 1e+308"
			named = named || len(word) > 4 && strings.Contains(o.stderr, word)
		}
		if !named {
			t.Errorf("%s: exit %d, and the message names neither flag nor value: %s", name, o.code,
				o.stderr)
		}
	default:
		t.Errorf("%s: exit %d: %s", name, o.code, o.stderr)
	}
}

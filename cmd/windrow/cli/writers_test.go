package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/urfave/cli/v2"

	"github.com/windrow-sim/windrow/internal/output"
	"github.com/windrow-sim/windrow/internal/output/outputtest"
	"github.com/windrow-sim/windrow/traces"
)

// writing is a verb that writes files. Its line writes to the folder out.
type writing struct {
	verb  string
	line  string
	timed bool // what it writes holds times, so that two runs differ
	large bool // it writes some 100 MB by the writer of another line; no power cut is tried
}

// writers has every verb that writes files (TestEveryWriterIsTried).
var writers = []writing{
	{verb: "pack", line: "pack examples/models/tales -o out/new.flash.safetensors"},
	{verb: "synth model", large: true,
		line: "synth model --like opt-125m --layers 1 -o out/m.flash.safetensors"},
	{verb: "synth trace",
		line: "synth trace --like opt-6.7b --layers 1 --tokens 2 -o out/m.trace.arrow"},
	{verb: "record",
		line: "record -m tales.flash.safetensors --prompts words.txt -n 2 -o out/r.trace.arrow"},
	{verb: "train",
		line: "train -t learn.trace.arrow --rank 2 --epochs 1 -o out/low.predictor.safetensors"},
	{verb: "train", line: "train -t learn.trace.arrow --kind centroid --centroids 4 --epochs 1 " +
		"-o out/sets.predictor.safetensors"},
	{verb: "train", line: "train --import checkpoint sparse.safetensors " +
		"-m tales.flash.safetensors -o out/deja.predictor.safetensors"},
	{verb: "trace merge", line: "trace merge tiny.trace.arrow tiny.trace.arrow -o " +
		"out/t.trace.arrow"},
	{verb: "trace whatif", line: "trace whatif tiny.trace.arrow --share 2% -o out/w.trace.arrow"},
	{verb: "sim", line: "sim -t tiny.trace.arrow -d m1-max -o out/s.run.arrow"},
	{verb: "replay", timed: true, line: "replay -t tales.trace.arrow -m tales.flash.safetensors " +
		"--max-tokens 2 --io mem -o out/t.run.arrow"},
	{verb: "calibrate", timed: true, line: "calibrate -t tales.trace.arrow " +
		"-m tales.flash.safetensors --io mem --measure-tokens 2 --dram 95% -o out/prefix.json"},
	{verb: "eval", timed: true, line: "eval -m tales.flash.safetensors --text words.txt " +
		"--max-tokens 8 --context 8 -d m1-max --shares 5% --plot out/e.svg"},
	{verb: "sweep", line: "sweep tiny.yaml --workers 1 -o out/s.jsonl --csv out/s.csv " +
		"--parquet out/s.parquet"},
	{verb: "adaptive", line: "adaptive -t tiny.trace.arrow -d m1-max --skip 0 --dram-over-time " +
		"0:90%,2:64% -o out/a.csv"},
	{verb: "adaptive", line: "adaptive -t tiny.trace.arrow -d m1-max --skip 0 --dram-over-time " +
		"0:90%,2:64% -o out/a.jsonl"},
	{verb: "report", line: "report tiny.run.arrow -o out/r.html"},
	{verb: "device fit", line: "device fit grid.json -o out/g.device.yaml"},
	{verb: "device compare", line: "device compare m1-max emmc-64gb-sige5 --chunks 4KiB " +
		"--depths 1 -o out/c.svg"},
}

// notTried are verbs that write files and are left out of the loops, each with the reason.
var notTried = map[string]string{
	"probe": "it measures for seconds before it saves a device file, as device fit does at once; " +
		"replay/probe tests its temporary file and its samples",
	"validate": "its suites that keep device files measure for minutes",
}

// TestEveryWriterIsTried: a verb with a flag that names a file to write is in the loops below.
func TestEveryWriterIsTried(t *testing.T) {
	tried := map[string]bool{}
	for _, w := range writers {
		tried[w.verb] = true
	}
	var walk func(commands []*cli.Command, path string)
	walk = func(commands []*cli.Command, path string) {
		for _, c := range commands {
			name := strings.TrimSpace(path + " " + c.Name)
			walk(c.Subcommands, name)
			writes := slices.ContainsFunc(c.Flags, func(f cli.Flag) bool {
				return slices.Contains(replaceable, f.Names()[0])
			})
			if writes && !tried[name] && notTried[name] == "" {
				t.Errorf("%s is not among the writers", name)
			}
			if !writes && (tried[name] || notTried[name] != "") {
				t.Errorf("%s writes nothing", name)
			}
		}
	}
	walk(commandsOf(), "")
}

func writersWorkspace(t *testing.T) {
	t.Helper()
	trainWorkspace(t)
	sparseCheckpoint(t)
	linkFixture(t, "devicemodels/fio/testdata/grid.json", "grid.json")
	write(t, "tiny.yaml", tinyScenario)
}

// freshOut makes the folder out anew.
func freshOut(t *testing.T) {
	t.Helper()
	if err := os.RemoveAll("out"); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir("out", 0o755); err != nil {
		t.Fatal(err)
	}
}

// filesOf returns the files of a folder.
func filesOf(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]byte{}
	for _, e := range entries {
		if e.IsDir() { // the state of a training, which a later one goes on with
			continue
		}
		all[e.Name()] = content(t, filepath.Join(dir, e.Name()))
	}
	return all
}

// wrong says why a file is not whole: another than that of a good run, or unreadable where runs
// differ.
func (w *writing) wrong(dir, name string, good map[string][]byte) string {
	data, err := os.ReadFile(filepath.Join(dir, name))
	switch {
	case err != nil:
		return err.Error()
	case good[name] == nil:
		return "a good run does not write it"
	case !w.timed:
		if string(data) != string(good[name]) {
			return fmt.Sprintf("%d bytes, other than the %d of a good run", len(data),
				len(good[name]))
		}
	case strings.HasSuffix(name, runSuffix):
		if _, err := traces.ReadRun(context.Background(), filepath.Join(dir, name)); err != nil {
			return err.Error()
		}
	case strings.HasSuffix(name, ".json"):
		if !json.Valid(data) {
			return "it is cut off"
		}
	case !strings.HasSuffix(strings.TrimSpace(string(data)), "</svg>"):
		return "it is cut off"
	}
	return ""
}

// positions are operations to let fail, out of count: all of few, else the first, the last and some
// between.
func positions(count int) (list []int) {
	const ends, between = 8, 6
	for at := 1; at <= count; at++ {
		if at <= ends || at > count-ends || at%(count/between+1) == 0 {
			list = append(list, at)
		}
	}
	return list
}

// V6, V7: in every verb that writes, an operation of the disk fails: opening, writing, syncing,
// closing, renaming. The exit code says so, the message names a file and the remedy, and nothing is
// there under a final name that is not whole.
func TestField_V6_EveryVerbOnABadDisk(t *testing.T) {
	writersWorkspace(t)
	for _, w := range writers {
		t.Run(w.line, func(t *testing.T) {
			freshOut(t)
			counter := &outputtest.Faults{}
			restore := output.Use(counter)
			must(t, words(t, w.line)...)
			restore()
			good := filesOf(t, "out")
			for i, at := range positions(counter.Count()) {
				freshOut(t)
				broken := []error{syscall.EIO, syscall.ENOSPC, syscall.EDQUOT}[i%3]
				disk := &outputtest.Faults{At: at, Err: broken, Sticky: i%2 == 1}
				restore := output.Use(disk)
				o := command(words(t, w.line)...)
				restore()
				if disk.Fired() == "" {
					continue // a timed verb did less this time
				}
				if o.code == exitOK {
					// Only what was given up anyway may fail unsaid.
					if given := strings.HasPrefix(disk.Fired(), "remove") ||
						strings.HasPrefix(disk.Fired(), "close s.jsonl."); !given {
						t.Errorf("%s: exit 0", disk.Fired())
					}
					for name := range good {
						if why := w.wrong("out", name, good); why != "" {
							t.Errorf("%s: %s: %s", disk.Fired(), name, why)
						}
					}
				} else if o.code != exitFailed || !strings.Contains(o.stderr, "out/") ||
					!strings.Contains(o.stderr, broken.Error()) ||
					!strings.Contains(o.stderr, "another") {
					t.Errorf("%s: exit %d: %s", disk.Fired(), o.code, o.stderr)
				}
				// On a disk that is broken for good, what was begun cannot be removed.
				checkOut(t, &w, disk.Fired(), good, disk.Sticky ||
					strings.HasPrefix(disk.Fired(), "remove"))
			}
		})
	}
}

// checkOut checks what a verb left in the folder out.
func checkOut(t *testing.T, w *writing, fired string, good map[string][]byte, leftovers bool) {
	t.Helper()
	for name := range filesOf(t, "out") {
		if strings.HasSuffix(name, ".partial") {
			resumable := w.verb == "sweep" && name == "s.jsonl.partial"
			if !leftovers && !resumable {
				t.Errorf("%s: left %s", fired, name)
			}
			continue
		}
		if why := w.wrong("out", name, good); why != "" {
			t.Errorf("%s: %s: %s", fired, name, why)
		}
	}
}

// A second process that writes the same file is refused at once and told who holds it, whatever the
// verb; a file that is there is not replaced unasked.
func TestTwoWriters(t *testing.T) {
	writersWorkspace(t)
	for _, w := range writers {
		t.Run(w.line, func(t *testing.T) {
			args := words(t, w.line)
			for i, word := range args {
				if !strings.HasPrefix(word, "out/") {
					continue
				}
				freshOut(t)
				held, err := output.Create(word)
				if err != nil {
					t.Fatal(err)
				}
				o := command(args...)
				if o.code != exitFailed || o.stdout != "" || !strings.Contains(o.stderr,
					fmt.Sprintf("process %d writes", os.Getpid())) {
					t.Errorf("%s %s: exit %d: %s", args[i-1], word, o.code, o.stderr)
				}
				held.Abort()
				if left := filesOf(t, "out"); len(left) > 0 {
					t.Errorf("%s %s: left %d files", args[i-1], word, len(left))
				}
				write(t, word, "mine")
				o = command(args...)
				if o.code != exitUsage || !strings.Contains(o.stderr, "--force") {
					t.Errorf("%s %s: exit %d: %s", args[i-1], word, o.code, o.stderr)
				}
				if left := filesOf(t, "out"); len(left) != 1 ||
					string(left[filepath.Base(word)]) != "mine" {
					t.Errorf("%s %s was changed", args[i-1], word)
				}
			}
		})
	}
}

// V3, V4: the power goes after any operation of any verb. What is there under a final name is
// whole, and the next run makes the same files; after the last operation all of them are there.
func TestField_V4_EveryVerbLosesPower(t *testing.T) {
	writersWorkspace(t)
	for _, w := range writers {
		if w.large {
			continue
		}
		t.Run(w.line, func(t *testing.T) {
			freshOut(t)
			disk := outputtest.Record("out")
			restore := output.Use(disk)
			must(t, words(t, w.line)...)
			restore()
			good := filesOf(t, "out")
			var last map[string][]byte
			n := 0
			disk.Cuts(t, nil, func(dir, cut string) {
				n++
				last = filesOf(t, dir)
				for name := range last {
					if strings.HasSuffix(name, ".partial") {
						continue
					}
					if why := w.wrong(dir, name, good); why != "" {
						t.Errorf("%s: %s: %s", cut, name, why)
					}
				}
				if n&(n-1) == 0 { // the first, second, fourth, eighth, …
					w.again(t, dir, cut, good)
				}
			})
			for name := range good {
				if last[name] == nil {
					t.Errorf("%s is not there at the end", name)
				}
			}
		})
	}
}

// again runs a verb in a folder that a power cut left.
func (w *writing) again(t *testing.T, dir, cut string, good map[string][]byte) {
	t.Helper()
	line := strings.ReplaceAll(w.line, "out/", dir+"/")
	more := "--force"
	if w.verb == "sweep" {
		more = "--resume"
	}
	if o := command(append(words(t, line), more)...); o.code != exitOK {
		t.Errorf("again %s: exit %d: %s", cut, o.code, o.stderr)
		return
	}
	for name := range good {
		if why := w.wrong(dir, name, good); why != "" {
			t.Errorf("again %s: %s: %s", cut, name, why)
		}
	}
	for name := range filesOf(t, dir) {
		if good[name] == nil {
			t.Errorf("again %s: %s is left", cut, name)
		}
	}
}

package cli

import (
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/windrow-sim/windrow/traces"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestGolden runs testdata/NAME.args, one command line per line ("#" starts a comment), in a
// workspace, and compares what they print with NAME.stdout and NAME.stderr and the exit codes with
// NAME.exit.
func TestGolden(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the golden files hold the error texts of Unix")
	}
	scripts, err := filepath.Glob("testdata/*.args")
	if err != nil || len(scripts) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, script := range scripts {
		script, err := filepath.Abs(script)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(script), ".args")
		t.Run(name, func(t *testing.T) {
			if strings.HasPrefix(name, "number") && runtime.GOARCH != "amd64" {
				t.Skip("the last digits depend on fused multiply-add, which Go uses on other " +
					"processors")
			}
			text, err := os.ReadFile(script)
			if err != nil {
				t.Fatal(err)
			}
			t.Setenv(asProgram, "1") // of the children that "trace check" starts
			workspace(t)
			before := names(t, ".")
			var stdout, stderr, exit strings.Builder
			for line := range strings.Lines(string(text)) {
				line = strings.TrimSpace(line)
				if line == "" || strings.HasPrefix(line, "#") {
					continue
				}
				o := command(words(t, line)...)
				fmt.Fprintf(&stdout, "$ windrow %s\n%s", line, o.stdout)
				fmt.Fprintf(&stderr, "$ windrow %s\n%s", line, o.stderr)
				fmt.Fprintf(&exit, "%d windrow %s\n", o.code, line)
				checkRefusal(t, name, line, o)
			}
			if after := names(t, "."); wantCode[name] != 0 && !slices.Equal(before, after) {
				t.Errorf("refused command lines left files behind: %v, before %v", after, before)
			}
			base := strings.TrimSuffix(script, ".args")
			golden(t, base+".stdout", stdout.String())
			golden(t, base+".stderr", stderr.String())
			golden(t, base+".exit", exit.String())
		})
	}
}

// wantCode is the exit code of every line of the scripts about refusals, whatever their golden
// files say.
var wantCode = map[string]int{"usage": exitUsage, "input": exitInput}

// checkRefusal is the invariant beside those golden files: the right code, nothing on stdout, one
// line on stderr that names a file or a flag of the command line.
func checkRefusal(t *testing.T, name, line string, o outcome) {
	t.Helper()
	want, ok := wantCode[name]
	if !ok {
		return
	}
	if o.code != want || o.stdout != "" {
		t.Errorf("%s: exit %d, want %d, and nothing on stdout, got %q", line, o.code, want,
			o.stdout)
	}
	last := strings.TrimSuffix(o.stderr[strings.LastIndex(strings.TrimSuffix(o.stderr, "\n"),
		"\n")+1:], "\n")
	named := slices.ContainsFunc(words(t, line), func(w string) bool {
		return strings.Contains(strings.ToLower(last), strings.TrimLeft(strings.ToLower(w), "-"))
	})
	if !strings.HasPrefix(last, "windrow: ") || !named {
		t.Errorf("%s: the message names nothing of it: %q", line, o.stderr)
	}
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		write(t, path, got)
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Errorf("%v; go test ./cmd/windrow/cli -update writes it", err)
		return
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("%s differs (-want +got):\n%s", filepath.Base(path), diff)
	}
}

// TestSimInvariants is the twin of the golden files of sim: they could freeze a mistake, these
// could not.
func TestSimInvariants(t *testing.T) {
	workspace(t)
	const record = 16 << 10 // bytes of a neuron of OPT-6.7B in fp16: 2 rows of 4096
	var accesses int64
	for _, window := range []string{"0", "1", "3", "100"} {
		must(t, "sim", "--trace", "tiny.trace.arrow", "-d", "m1-max", "--no-coalesce", "--window",
			window, "--force", "-o", "a.run.arrow")
		run, err := traces.ReadRun(t.Context(), "a.run.arrow")
		if err != nil {
			t.Fatal(err)
		}
		total := run.Meta.Totals
		if int64(total.Bytes) != total.Misses*record {
			t.Errorf("window %s: %d bytes for %d misses of %d", window, total.Bytes, total.Misses,
				record)
		}
		if total.Requests != total.Misses {
			t.Errorf("window %s: %d requests for %d misses without coalescing", window,
				total.Requests, total.Misses)
		}
		if accesses == 0 {
			accesses = activeUnits(t, "tiny.trace.arrow")
		}
		if total.Hits+total.Misses != accesses {
			t.Errorf("window %s: %d hits + %d misses are not the trace's %d active units", window,
				total.Hits, total.Misses, accesses)
		}
		if window == "0" && total.Hits != 0 {
			t.Errorf("a window of 0 tokens hit %d times", total.Hits)
		}
		if rate := float64(total.Tokens) /
			total.Wall.Seconds(); math.Abs(total.TokensPerS/rate-1) > 1e-9 {
			t.Errorf("window %s: %g tokens/s, but %d tokens take %v", window, total.TokensPerS,
				total.Tokens, total.Wall)
		}
		var parts int64
		for _, part := range total.PartNanos {
			parts += int64(part)
		}
		if parts != int64(total.Wall) {
			t.Errorf("window %s: the parts take %d ns, the run %d", window, parts, total.Wall)
		}
	}
}

// activeUnits counts the active units of a trace by reading its text form.
func activeUnits(t *testing.T, path string) int64 {
	t.Helper()
	var sum int64
	lines := strings.Split(strings.TrimSpace(must(t, "trace", "cat", path)), "\n")
	at := slices.Index(strings.Split(lines[0], ","), "active_count")
	for _, line := range lines[1:] {
		var n int64
		if _, err := fmt.Sscan(strings.Split(line, ",")[at], &n); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		sum += n
	}
	if sum == 0 {
		t.Fatalf("%s: no active units", path)
	}
	return sum
}

// TestSimFormatsAgree compares the numbers that the formats of one run print.
func TestSimFormatsAgree(t *testing.T) {
	workspace(t)
	args := []string{"sim", "--trace", "tiny.trace.arrow", "-d", "m1-max", "--window", "2"}
	var doc struct {
		Result struct {
			Sanity []struct {
				Bytes float64 `json:"flash_bytes_per_token"`
				Rate  float64 `json:"tokens_per_s"`
			} `json:"sanity"`
		} `json:"result"`
	}
	if err := json.Unmarshal([]byte(must(t, append(args, "--json")...)), &doc); err != nil ||
		len(doc.Result.Sanity) != 1 {
		t.Fatalf("%v, %+v", err, doc)
	}
	var tokens, decoded, wall, decodeWall, read, decodeRead float64
	lines := strings.Split(strings.TrimSpace(must(t, append(args, "--format", "csv")...)), "\n")
	names := strings.Split(lines[0], ",")
	for _, line := range lines[1:] {
		fields := strings.Split(line, ",")
		var latency, bytes float64
		fmt.Sscan(fields[slices.Index(names, "latency_ns")], &latency)
		fmt.Sscan(fields[slices.Index(names, "flash_bytes")], &bytes)
		tokens, wall, read = tokens+1, wall+latency, read+bytes
		if fields[slices.Index(names, "phase")] == "decode" {
			decoded, decodeWall, decodeRead = decoded+1, decodeWall+latency, decodeRead+bytes
		}
	}
	if tokens != 6 || decoded != 4 {
		t.Fatalf("%g tokens, %g of them generated, want 6 and 4", tokens, decoded)
	}
	bench := must(t, append(args, "--format", "go-bench")...)
	metric := func(unit string) (v float64) {
		fields := strings.Fields(bench[strings.Index(bench, "BenchmarkDecode"):])
		fmt.Sscan(fields[slices.Index(fields, unit)-1], &v)
		return v
	}
	for _, c := range []struct {
		what      string
		got, want float64
	}{
		{"JSON tokens/s, CSV", doc.Result.Sanity[0].Rate, tokens / wall * 1e9},
		{"JSON bytes/token, CSV", doc.Result.Sanity[0].Bytes, read / tokens},
		{"go-bench sec/token, CSV", metric("sec/token"), decodeWall / decoded / 1e9},
		{"go-bench tokens/sec, CSV", metric("tokens/sec"), decoded / decodeWall * 1e9},
		{"go-bench B/token, CSV", metric("B/token"), decodeRead / decoded},
	} {
		if !(math.Abs(c.got/c.want-1) < 1e-6) {
			t.Errorf("%s: %g and %g", c.what, c.got, c.want)
		}
	}
}

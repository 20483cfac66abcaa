package cli

import (
	"bufio"
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// interrupter cancels when stderr shows a word, as a user would who presses Ctrl-C upon seeing it.
type interrupter struct {
	word   string
	cancel context.CancelFunc
	seen   bool
}

func (i *interrupter) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte(i.word)) {
		i.seen = true
		i.cancel()
	}
	return len(b), nil
}

// An interrupted verb ends with 130 and leaves nothing that looks whole, nor temporary files; what
// is worth keeping has "partial" in its name.
func TestInterrupted(t *testing.T) {
	workspace(t)
	const image = "tales.flash.safetensors"
	for _, c := range []struct {
		name string
		word string // of stderr, upon which to interrupt
		line string
		left []string // in the folder out
	}{
		{"record", "record (prompts)", "record -m " + image +
			" --prompts examples/prompts/tales.txt --limit 3 -n 3 -o out/r.trace.arrow",
			[]string{"r.partial.trace.arrow", "r.partial.trace.json"}},
		{"pack", "pack (MiB)", "pack examples/models/tales -o out/p.flash.safetensors", nil},
		{"synth model", "synth model (MiB)", "synth model --like opt-125m --layers 1 -o " +
			"out/s.flash.safetensors", nil},
		{"synth trace", "synth trace", "synth trace --like opt-6.7b --layers 1 --tokens 50 -o " +
			"out/s.trace.arrow", nil},
		{"replay", "replay (tokens)", "replay --trace tales.trace.arrow -m " + image +
			" --direct off --io pread -o out/q.run.arrow",
			[]string{"q.partial.run.arrow", "q.partial.run.json"}},
		{"demo, small part", "record (prompts)", "demo --dir out --like opt-125m",
			[]string{"tales.flash.safetensors", "tales.partial.trace.arrow",
				"tales.partial.trace.json"}},
		{"demo, large part", "synth model (MiB)", "demo --dir out --like opt-125m",
			[]string{"tales.flash.safetensors", "tales.trace.arrow", "tales.trace.json"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := os.RemoveAll("out"); err != nil {
				t.Fatal(err)
			}
			if err := os.Mkdir("out", 0o755); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			i := &interrupter{word: c.word, cancel: cancel}
			o := commandContext(ctx, i, append([]string{"--progress", "always"},
				words(t, c.line)...)...)
			if o.code == exitHost {
				t.Skipf("this host cannot: %s", o.stderr)
			}
			if !i.seen {
				t.Fatalf("never said %q, exit %d:\n%s", c.word, o.code, o.stderr)
			}
			if o.code != exitInterrupted || !strings.Contains(o.stderr, "windrow: interrupted") {
				t.Errorf("exit %d, want %d:\n%s", o.code, exitInterrupted, o.stderr)
			}
			if c.name != "pack" && !strings.HasPrefix(c.name, "synth") &&
				!strings.Contains(o.stderr, "the same command starts anew") {
				t.Errorf("does not say what the next run does: %s", o.stderr)
			}
			if left := names(t, "out"); !slices.Equal(left, c.left) {
				t.Errorf("left behind: %v, want %v", left, c.left)
			}
			for _, name := range c.left {
				if strings.Contains(name, ".partial.") && strings.HasSuffix(name, ".arrow") &&
					!strings.HasPrefix(c.name, "demo") && !strings.Contains(o.stderr, name) {
					t.Errorf("the message does not name %s: %s", name, o.stderr)
				}
			}
		})
	}
}

// An interrupted study or training says whether the next run goes on or starts anew.
func TestInterruptedSaysWhatIsNext(t *testing.T) {
	trainWorkspace(t)
	for _, c := range []struct{ word, line, says string }{
		{"sweep (results on disk)", "sweep examples/scenarios/windows.yaml -o s.jsonl",
			"the same command starts anew"},
		{"train: ", "train -t learn.trace.arrow --rank 2 --epochs 1000 -o a.predictor.safetensors",
			"the same command goes on from there"},
		{"train (vocabularies)", "train -t learn.trace.arrow --kind centroid --centroids 16 " +
			"--epochs 100 -o b.predictor.safetensors", "the same command starts anew"},
		{"probe ", "probe tales.flash.safetensors --budget 1m -o a.device.yaml",
			"the same command starts anew"},
		{"probe ", "probe tales.flash.safetensors --budget 1m --samples b.jsonl -o b.device.yaml",
			"--resume goes on"},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		o := commandContext(ctx, &interrupter{word: c.word, cancel: cancel},
			append([]string{"--progress", "always"}, words(t, c.line)...)...)
		cancel()
		if o.code == exitHost {
			t.Logf("%s: this host cannot: %s", c.line, o.stderr)
		} else if o.code != exitInterrupted || !strings.Contains(o.stderr, c.says) {
			t.Errorf("%s: exit %d, want %d and %q: %s", c.line, o.code, exitInterrupted, c.says,
				o.stderr)
		}
	}
}

// What an interrupted recording leaves can be read and says what it is.
func TestInterruptedRecordingIsMarked(t *testing.T) {
	workspace(t)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	o := commandContext(ctx, &interrupter{word: "record (prompts)", cancel: cancel}, "--progress",
		"always",
		"record", "-m", "tales.flash.safetensors", "--prompts", "examples/prompts/tales.txt",
		"--limit", "3", "-n", "3", "-o", "r.trace.arrow")
	if o.code != exitInterrupted {
		t.Fatalf("exit %d: %s", o.code, o.stderr)
	}
	info := command("trace", "info", "r.partial.trace.arrow")
	if info.code != exitOK || !strings.Contains(strings.Join(strings.Fields(info.stdout), " "),
		"complete false") || !strings.Contains(info.stderr, "interrupted") {
		t.Errorf("exit %d\n%s%s", info.code, info.stdout, info.stderr)
	}
	if _, err := os.Stat("r.trace.arrow"); err == nil {
		t.Error("an interrupted trace has the name of a whole one")
	}
	tokens := strings.Count(must(t, "trace", "cat", "r.partial.trace.arrow"), "\n")
	if tokens < 2 {
		t.Errorf("nothing was kept")
	}
}

// The same with a real signal to a real process.
func TestSignalInterrupts(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no signal can be sent to another process here")
	}
	workspace(t)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// Far more work than fits into the time until the signal; some of it is done when the first
	// line appears.
	write(t, "many.txt", strings.Repeat("Once upon a time\n", 3000))
	cmd := exec.CommandContext(t.Context(), exe, "record", "-m", "tales.flash.safetensors",
		"--prompts",
		"many.txt", "-n", "100", "-o", "r.trace.arrow", "--progress", "always")
	cmd.Env = append(os.Environ(), asProgram+"=1")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for lines := bufio.NewScanner(stderr); lines.Scan(); {
		text.WriteString(lines.Text() + "\n")
		if strings.HasPrefix(lines.Text(), "record (prompts)") {
			if err := cmd.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
		}
	}
	err = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != exitInterrupted {
		t.Fatalf("exit %d (%v):\n%s", code, err, text.String())
	}
	left, err := filepath.Glob("r.*")
	if err != nil || !slices.Equal(left, []string{"r.partial.trace.arrow",
		"r.partial.trace.json"}) {
		t.Errorf("left behind: %v (%v)", left, err)
	}
}

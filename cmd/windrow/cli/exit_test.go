package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/windrow-sim/windrow/devicemodels"
	"github.com/windrow-sim/windrow/engine/flashio"
	"github.com/windrow-sim/windrow/internal/refusal"
)

// Every exit code is reached by a command line that a user could type.
func TestExitCodes(t *testing.T) {
	workspace(t)
	for _, c := range []struct {
		code int
		line string
		says string // on stderr
	}{
		{exitOK, "version", ""},
		{exitOK, "validate tiny.run.arrow tiny.run.arrow", ""},
		{exitFailed, "generate -m tales.flash.safetensors --oracle tales.trace.arrow --io pread " +
			"--direct off --temp 1.5 --seed 3", "departs from the trace at position"},
		{exitUsage, "sim --trace tiny.trace.arrow", "needs --device"},
		{exitInput, "trace info cut.trace.arrow", "cut short"},
		{exitInput, "generate -m folder Once", "windrow pack folder"},
		{exitValidation, "validate other.run.arrow tiny.run.arrow", "outside tolerance"},
	} {
		o := command(words(t, c.line)...)
		if o.code != c.code || !strings.Contains(o.stderr, c.says) {
			t.Errorf("%s: exit %d, want %d and %q:\n%s", c.line, o.code, c.code, c.says, o.stderr)
		}
	}
}

// Exit code 4 belongs to what the host lacks; the message says what to do.
func TestExitHostCannot(t *testing.T) {
	workspace(t)
	replay := []string{"replay", "--trace", "tales.trace.arrow", "--max-tokens", "1", "-m"}
	t.Run("uring", func(t *testing.T) {
		o := command(append(slices.Clone(replay), "tales.flash.safetensors", "--io", "uring",
			"--direct", "off")...)
		if ok, why := flashio.UringStatus(); ok {
			if o.code != exitOK {
				t.Errorf("io_uring is there, and yet: exit %d, %s", o.code, o.stderr)
			}
		} else if o.code != exitHost || !strings.Contains(o.stderr, why) {
			t.Errorf("without io_uring: exit %d, want %d and the reason %q: %s", o.code, exitHost,
				why, o.stderr)
		}
	})
	t.Run("direct", func(t *testing.T) {
		dir, err := os.MkdirTemp("/dev/shm", "windrow-cli-test-")
		if err != nil {
			t.Skipf("no memory file system to try: %v", err)
		}
		defer os.RemoveAll(dir)
		data, err := os.ReadFile("tales.flash.safetensors")
		if err != nil {
			t.Fatal(err)
		}
		image := filepath.Join(dir, "tales.flash.safetensors")
		write(t, image, string(data))
		if info, err := flashio.Describe(image); err != nil || !info.MemoryBacked {
			t.Skipf("/dev/shm is not in memory here (%v)", err)
		}
		o := command(append(slices.Clone(replay), image, "--direct", "on")...)
		if o.code != exitHost || !strings.Contains(o.stderr,
			"put the file on a file system of the drive") {
			t.Errorf("direct reads of tmpfs: exit %d, want %d and a remedy: %s", o.code, exitHost,
				o.stderr)
		}
		if o := command("probe", dir, "-o", "x.device.yaml"); o.code != exitHost {
			t.Errorf("probe of tmpfs: exit %d, want %d: %s", o.code, exitHost, o.stderr)
		}
		if left := names(t, dir); len(left) != 1 {
			t.Errorf("left behind: %v", left)
		}
	})
}

// A kind deep in the chain decides, and an interruption beats them all.
func TestClassify(t *testing.T) {
	live := context.Background()
	gone, cancel := context.WithCancel(live)
	cancel()
	canceled := fmt.Errorf("x: %w", context.Canceled)
	for _, c := range []struct {
		ctx  context.Context
		err  error
		code int
		text string
	}{
		{live, errors.New("boom"), exitFailed, "boom"},
		{live, fmt.Errorf("a: %w", usageError("b")), exitUsage, "a: b"},
		{live, fmt.Errorf("a: %w", inputError("b")), exitInput, "a: b"},
		{live, fmt.Errorf("a: %w", &fs.PathError{Op: "open", Path: "p", Err: syscall.EACCES}),
			exitInput, "a: open p: permission denied"},
		{live, fmt.Errorf("a: %w", devicemodels.ErrFormat), exitInput, "a: not a valid device"},
		{live, fmt.Errorf("a: %w", flashio.ErrEnvironment), exitHost, "a: the host cannot do this"},
		{live, &exec.ExitError{ProcessState: &os.ProcessState{}}, exitFailed, "exit status 0"},
		{live, canceled, exitFailed, "x: context canceled"},
		{gone, canceled, exitInterrupted, "interrupted: x"},
		{gone, context.Canceled, exitInterrupted, "interrupted"},
		{gone, errors.Join(canceled, errors.New("y"), context.Canceled), exitInterrupted,
			"interrupted: x\ny"},
		{gone, usageError("b"), exitUsage, "b"},
	} {
		if code, text := classify(c.ctx, c.err); code != c.code || (runtime.GOOS == "linux" &&
			text != c.text) {
			t.Errorf("%v: exit %d %q, want %d %q", c.err, code, text, c.code, c.text)
		}
	}
}

// badOutput is a stdout that takes a few bytes, then fails.
type badOutput struct {
	left         int
	write, close error
}

func (d *badOutput) Write(b []byte) (int, error) {
	n := min(len(b), d.left)
	d.left -= n
	if n < len(b) {
		return n, d.write
	}
	return n, nil
}

func (d *badOutput) Close() error { return d.close }

// A result that could not be printed is a failure, whatever the verb, and before the verb's own
// verdict. Left out is the demo, which takes a minute.
func TestStdoutOnFullDisk(t *testing.T) {
	readerWorkspace(t)
	lines := []string{"--help", "sim --help", "version --json", "trace cat tiny.trace.arrow",
		"sim -t tiny.trace.arrow -d m1-max --json", "synth model --like list",
		"plan -t tiny.trace.arrow -d m1-max --dram 1MiB"}
	done := map[string]bool{"demo": true, "validate": true}
	for _, line := range slices.Concat(readers, readNothing) {
		fields := strings.Fields(line)
		verb := fields[0]
		if find(commandsOf(), verb).Subcommands != nil {
			verb += " " + fields[1]
		}
		if !done[verb] && !strings.Contains(line, "tiny.gguf") {
			lines = append(lines, plainLine(line))
		}
		done[verb] = true
	}
	lines = append(lines, "validate tiny.run.arrow other.run.arrow")
	for _, line := range lines {
		var stderr strings.Builder
		code := Run(t.Context(), strings.NewReader(""), &badOutput{left: 4, write: syscall.ENOSPC},
			&stderr, words(t, line))
		if code == exitHost && strings.HasPrefix(line, "probe") {
			continue // a disk that cannot be measured has no result
		}
		if code != exitFailed || !strings.Contains(stderr.String(), "no space left") &&
			runtime.GOOS == "linux" {
			t.Errorf("%s: exit %d, want %d and the reason: %s", line, code, exitFailed,
				stderr.String())
		}
	}
}

// A lost result never has exit code 0. A closed pipe has a code of its own and no message.
func TestLostResult(t *testing.T) {
	const room = 1 << 20
	for what, c := range map[string]struct {
		out  badOutput
		code int
		says string
	}{
		"nothing is lost": {badOutput{left: room}, exitOK, ""},
		"write fails":     {badOutput{write: syscall.EACCES}, exitFailed, "not be written"},
		"write is short":  {badOutput{left: 1}, exitFailed, "short write"},
		"close fails, for quota": {badOutput{left: room, close: syscall.EDQUOT}, exitFailed,
			"quota"},
		"the pipe is closed": {badOutput{write: syscall.EPIPE}, exitPipe, ""},
	} {
		var stderr strings.Builder
		code := Run(t.Context(), strings.NewReader(""), &c.out, &stderr, []string{"version"})
		if code != c.code || !strings.Contains(stderr.String(), c.says) ||
			(c.says == "") != (stderr.Len() == 0) {
			t.Errorf("%s: exit %d, want %d and %q: %s", what, code, c.code, c.says, stderr.String())
		}
	}
}

// Once a write of the result has failed, the verb stops generating.
func TestGenerateEndsWithItsReader(t *testing.T) {
	workspace(t)
	var stderr strings.Builder
	code := Run(t.Context(), strings.NewReader(""), &badOutput{left: 20, write: syscall.EPIPE},
		&stderr, words(t, "generate -m tales.flash.safetensors -n 100 Once"))
	if code != exitPipe || stderr.Len() > 0 {
		t.Errorf("exit %d, want %d: %s", code, exitPipe, stderr.String())
	}
}

// Fields of a configuration are named as the flags that set them.
func TestFieldsAreNamedAsFlags(t *testing.T) {
	for field, flag := range map[string]string{"Tokens": "--tokens", "KMax": "--k-max",
		"PrefillChunk": "--prefill-chunk", "DRAM": "--dram", "TargetFN": "--target-fn",
		"NoBOS": "--no-bos", "N": "-n", "IO": "--io", "FNGoal": "--fn-goal"} {
		if got := flagOf(field); got != flag {
			t.Errorf("%s is %s, want %s", field, got, flag)
		}
	}
	err := fmt.Errorf("prompt 3: %w", refusal.Config("{KMax} %d: 1 or more is wanted", 0))
	if code, text := classify(t.Context(), err); code != exitUsage ||
		text != "prompt 3: --k-max 0: 1 or more is wanted" {
		t.Errorf("exit %d %q", code, text)
	}
}

package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// asProgram in the environment makes the test binary the program.
const asProgram = "WINDROW_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	switch os.Getenv(asProgram) {
	case "":
	case "deaf":
		deaf()
	default:
		main()
	}
	os.Exit(m.Run())
}

// program is a command line in a process of its own.
func program(t *testing.T, args ...string) (*exec.Cmd, *strings.Builder) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd, stderr := exec.CommandContext(t.Context(), exe, args...), &strings.Builder{}
	cmd.Env, cmd.Stderr = append(os.Environ(), asProgram+"=1"), stderr
	return cmd, stderr
}

// codeOf runs a program and returns its exit code, -1 for a signal.
func codeOf(t *testing.T, cmd *exec.Cmd) int {
	t.Helper()
	if err := cmd.Run(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode()
}

// A full disk behind a redirection, and a pipe that its reader has closed, are no successes.
func TestStdoutFails(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer full.Close()
	cmd, stderr := program(t, "version")
	cmd.Stdout = full
	if code := codeOf(t, cmd); code != 1 || !strings.Contains(stderr.String(), "no space left") {
		t.Errorf("/dev/full: exit %d, want 1 and the reason: %s", code, stderr)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	defer w.Close()
	cmd, stderr = program(t, "device", "list")
	cmd.Stdout = w
	if code := codeOf(t, cmd); code != 141 || stderr.Len() > 0 {
		t.Errorf("closed pipe: exit %d, want 141 in silence: %s", code, stderr)
	}
}

// Either signal ends a verb that waits for a pipe, with exit code 130. The verb is known to wait
// when it has taken the first bytes.
func TestSignalEnds(t *testing.T) {
	for _, signal := range []os.Signal{syscall.SIGINT, syscall.SIGTERM} {
		pipe := filepath.Join(t.TempDir(), "requests.csv")
		if err := unix.Mkfifo(pipe, 0o644); err != nil {
			t.Skipf("no named pipes here: %v", err)
		}
		cmd, stderr := program(t, "trace", "arrivals", pipe)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		w, err := os.OpenFile(pipe, os.O_WRONLY, 0) // waits for the verb
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		if err := cmd.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 130 ||
			!strings.Contains(stderr.String(), "windrow: interrupted") {
			t.Errorf("%v: %v, want exit code 130: %s", signal, err, stderr)
		}
	}
}

// A verb that is blocked on a full pipe ends as well: its page is longer than the pipe holds.
func TestSignalEndsBlockedOutput(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := unix.FcntlInt(w.Fd(), unix.F_SETPIPE_SZ, 4096); err != nil {
		t.Skip(err)
	}
	cmd, stderr := program(t, "man")
	cmd.Stdout = w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	if _, err := r.Read(make([]byte, 1)); err != nil { // so that it has begun to write
		t.Fatal(err)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 130 {
		t.Errorf("%v, want exit code 130: %s", err, stderr)
	}
}

// The second interrupt ends a program at once that does not end by itself.
func TestSecondSignalKills(t *testing.T) {
	cmd, _ := program(t)
	cmd.Env = append(cmd.Env, asProgram+"=deaf")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(out); lines.Scan(); { // "ready", then "interrupted"
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
	}
	if err := cmd.Wait(); err == nil || !strings.Contains(err.Error(), "signal: interrupt") {
		t.Errorf("%v, want an end by the signal", err)
	}
}

// deaf says when it is interrupted, and goes on.
func deaf() {
	ctx := untilInterrupted()
	fmt.Println("ready")
	<-ctx.Done()
	for { // the handler is removed a moment after the context ended
		fmt.Println("interrupted")
		time.Sleep(10 * time.Millisecond)
	}
}

// Command testrun runs "go test" and prints what it prints, and in the last line how many tests
// were skipped and why:
//
//	testrun go test ./...
//
// Its exit code is that of the command. Tests that are skipped in silence look like tests that
// pass: on a machine without fio, root or a GPU some are.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"syscall"
)

func main() {
	if len(os.Args) < 3 || os.Args[2] != "test" {
		fmt.Fprintln(os.Stderr, "testrun: give the command to run: testrun go test ./...")
		os.Exit(2)
	}
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// run runs "go test" with -json, translates its output, and returns its exit code.
func run(command []string, stdout, stderr io.Writer) int {
	// An interrupt of a terminal reaches the command too: it ends, and then this program does. A
	// request to end that only this program gets is handed on.
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	cmd := exec.CommandContext(ctx, command[0], slices.Insert(slices.Clone(command[1:]), 1,
		"-json")...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.Stderr = stderr
	events, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		fmt.Fprintln(stderr, "testrun:", err)
		return 1
	}
	signal.Ignore(os.Interrupt) // not before: the command would inherit it
	r := newReport(stdout)
	readErr := r.read(events)
	_, _ = io.Copy(io.Discard, events) // so that the command can end
	err = cmd.Wait()
	r.end()
	if readErr != nil {
		fmt.Fprintln(stderr, "testrun:", readErr)
	}
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit) && exit.ExitCode() > 0:
		return exit.ExitCode()
	case err != nil || readErr != nil:
		if err != nil {
			fmt.Fprintln(stderr, "testrun:", err)
		}
		return 1
	}
	return 0
}

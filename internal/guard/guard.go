// Package guard runs work on untrusted input in a child process, with limits on its memory, time
// and output: a parser that crashes, hangs or runs out of memory ends the child alone. It is a
// leaf.
package guard

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// limitEnv carries the child's memory limit in bytes from Run to Enter.
const limitEnv = "WINDROW_CHECK_LIMIT"

// Base is the least memory limit that makes sense: the Go runtime reserves much more address space
// than it uses.
const Base = 4 << 30

// Child says how to run a child.
type Child struct {
	Argv   []string      // the program with its arguments; it must call Enter
	Stdin  io.Reader     // nil: nothing
	Memory int64         // bytes of address space, Base or more; it holds on Linux
	Time   time.Duration // 0: as long as the context
	Output int           // bytes of its output that are kept
}

// Failed is the error of a child that crashed, was ended, or exceeded a limit.
type Failed struct {
	State string // how it ended
	First string // the first line of what it said
}

func (f *Failed) Error() string {
	return fmt.Sprintf("the child process: %s: %s", f.State,
		f.First)
}

// Run starts the child and returns its output. A *Failed is the input's fault; other errors are of
// the context or of starting the child.
func Run(ctx context.Context, c Child) ([]byte, error) {
	if len(c.Argv) == 0 {
		return nil, errors.New("guard: no command for the child process")
	}
	limit := ctx
	if c.Time > 0 {
		var cancel context.CancelFunc
		limit, cancel = context.WithTimeout(ctx, c.Time)
		defer cancel()
	}
	stdout, stderr := limited{most: c.Output}, limited{most: 1 << 20}
	cmd := exec.CommandContext(limit, c.Argv[0], c.Argv[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = c.Stdin, &stdout, &stderr
	cmd.WaitDelay = time.Second // a grandchild may keep the pipes open
	cmd.Env = append(os.Environ(), limitEnv+"="+strconv.FormatInt(c.Memory, 10))
	err := cmd.Run()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	var exit *exec.ExitError
	switch {
	case limit.Err() != nil:
		return nil, &Failed{fmt.Sprintf("not done after %v", c.Time), "ended"}
	case err != nil && !errors.As(err, &exit):
		return nil, fmt.Errorf("the child process: %w", err)
	case err != nil:
		first, _, _ := strings.Cut(stderr.String(), "\n")
		return nil, &Failed{cmd.ProcessState.String(), first}
	}
	return stdout.Bytes(), nil
}

// Enter is the child's half of Run: it limits the memory of this process. Without Run it does
// nothing.
func Enter() error {
	text, ok := os.LookupEnv(limitEnv)
	if !ok {
		return nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n <= 0 {
		return fmt.Errorf("guard: %s=%q is not a number of bytes", limitEnv, text)
	}
	if err := limitMemory(n); err != nil {
		return fmt.Errorf("guard: memory limit of %d bytes: %w", n, err)
	}
	return nil
}

// limited keeps the first bytes that are written to it, so that a child cannot fill this process's
// memory.
type limited struct {
	bytes.Buffer
	most int
}

// Write implements io.Writer; it never fails.
func (l *limited) Write(p []byte) (int, error) {
	if room := l.most - l.Len(); room > 0 {
		l.Buffer.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}

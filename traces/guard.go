package traces

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// limitEnv carries the child's memory limit in bytes from GuardedCheck to ServeCheck.
const limitEnv = "WINDROW_CHECK_LIMIT"

// guardBase is the memory that a checking child may use beyond the size of the file. The Go runtime
// reserves much more address space than it uses.
const guardBase = 4 << 30

// reply is what ServeCheck prints for GuardedCheck.
type reply struct {
	Report Report `json:"report"`
	Error  string `json:"error"`
	Kind   string `json:"kind"` // "", "format", "unsupported" or "other"
}

// GuardedCheck runs CheckFile for an untrusted file in a child process with a memory limit. A file
// that makes a parser crash or run out of memory ends the child alone. argv starts the child: this
// program again, with arguments that lead it to ServeCheck(path, stdout). A child that crashes, is
// killed or prints nonsense is an ErrFormat. The limit is on address space and holds on Linux; on
// other systems the child has no limit.
func GuardedCheck(ctx context.Context, path string, argv []string) (Report, error) {
	info, err := os.Stat(path)
	if err != nil {
		return Report{}, fmt.Errorf("traces: %w", err)
	}
	return guarded(ctx, path, argv, guardBase+info.Size())
}

func guarded(ctx context.Context, path string, argv []string, limit int64) (Report, error) {
	if len(argv) == 0 {
		return Report{}, errors.New("traces: check: no command for the child process")
	}
	var stdout, stderr limited
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.WaitDelay = time.Second // a grandchild may keep the pipes open
	cmd.Env = append(os.Environ(), limitEnv+"="+strconv.FormatInt(limit, 10))
	err := cmd.Run()
	if ctx.Err() != nil {
		return Report{}, fmt.Errorf("traces: check of %s: %w", path, ctx.Err())
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return Report{}, fmt.Errorf("traces: check of %s: the child process: %w", path, err)
	}
	var rep reply
	if err != nil || json.Unmarshal(stdout.Bytes(), &rep) != nil {
		first, _, _ := strings.Cut(stderr.String(), "\n")
		return Report{}, formatError(path, "the file made the checking process fail (%v): %s",
			cmd.ProcessState, first)
	}
	return rep.Report, rep.err()
}

// err rebuilds the error of the child with its kind.
func (r *reply) err() error {
	kinds := map[string]error{"format": ErrFormat, "unsupported": ErrUnsupported}
	switch {
	case r.Kind == "":
		return nil
	case kinds[r.Kind] != nil:
		return fmt.Errorf("%s: %w", strings.TrimSuffix(r.Error, ": "+kinds[r.Kind].Error()),
			kinds[r.Kind])
	default:
		return errors.New(r.Error)
	}
}

// ServeCheck is the child's half of GuardedCheck. It limits this process's memory, scans the file
// and prints the result to w. It returns only errors of printing; errors of the file are part of
// the result.
func ServeCheck(ctx context.Context, path string, w io.Writer) error {
	if text, ok := os.LookupEnv(limitEnv); ok {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n <= 0 {
			return fmt.Errorf("traces: %s=%q is not a number of bytes", limitEnv, text)
		}
		if err := limitMemory(n); err != nil {
			return fmt.Errorf("traces: memory limit of %d bytes: %w", n, err)
		}
	}
	rep, err := CheckFile(ctx, path)
	out := reply{Report: rep}
	if err != nil {
		out.Error = err.Error()
		switch {
		case errors.Is(err, ErrUnsupported):
			out.Kind = "unsupported"
		case errors.Is(err, ErrFormat):
			out.Kind = "format"
		default:
			out.Kind = "other"
		}
	}
	return json.NewEncoder(w).Encode(out)
}

// limited keeps the first MiB that is written to it, so that a child cannot fill this process's
// memory.
type limited struct{ bytes.Buffer }

// Write implements io.Writer; it never fails.
func (l *limited) Write(p []byte) (int, error) {
	const most = 1 << 20
	if room := most - l.Len(); room > 0 {
		l.Buffer.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}

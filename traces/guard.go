package traces

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/windrow-sim/windrow/internal/guard"
)

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
	return guarded(ctx, path, argv, guard.Base+info.Size())
}

func guarded(ctx context.Context, path string, argv []string, limit int64) (Report, error) {
	const most = 1 << 20 // bytes of a reply
	out, err := guard.Run(ctx, guard.Child{Argv: argv, Memory: limit, Output: most})
	var failed *guard.Failed
	if err != nil && !errors.As(err, &failed) {
		return Report{}, fmt.Errorf("traces: check of %s: %w", path, err)
	}
	if failed == nil {
		failed = &guard.Failed{State: "exit status 0"}
	}
	var rep reply
	if err != nil || json.Unmarshal(out, &rep) != nil {
		return Report{}, formatError(path, "the file made the checking process fail (%s): %s",
			failed.State, failed.First)
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
	if err := guard.Enter(); err != nil {
		return err
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

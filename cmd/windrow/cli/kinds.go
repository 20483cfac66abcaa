package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/windrow-sim/windrow/internal/input"
	"github.com/windrow-sim/windrow/internal/refusal"
)

// fileKind is a kind of file that windrow reads, and where it belongs.
type fileKind struct{ name, belongs string }

// The kinds of files.
var (
	kindTrace     = fileKind{"an activation trace", "sim -t TRACE"}
	kindRun       = fileKind{"a Run", "report RUN"}
	kindImage     = fileKind{"a flash image", "generate -m IMG"}
	kindPredictor = fileKind{"a predictor", "generate --predictor FILE"}
	kindWeights   = fileKind{"a checkpoint of safetensors", "pack DIR"}
	kindGGUF      = fileKind{"a GGUF file", "pack FILE"}
	kindPyTorch   = fileKind{"a PyTorch checkpoint", "pack DIR"}
	kindDevice    = fileKind{"a device model", "sim -d DEVICE"}
	kindScenario  = fileKind{"a scenario", "sweep SCENARIO"}
	kindFio       = fileKind{"an output of fio", "device fit FILE"}
	kindResults   = fileKind{"results of a sweep", "sweep --resume"}
)

// sniff names the kind of a file by its name's ending and its first bytes. It is the zero kind for
// a file that it does not know.
func sniff(ctx context.Context, path string) fileKind {
	f, err := input.Open(ctx, path)
	if err != nil {
		return fileKind{}
	}
	defer f.Close()
	const enough = 64 << 10
	head, err := io.ReadAll(io.NewSectionReader(f, 0, enough))
	if err != nil {
		return fileKind{}
	}
	has := func(text string) bool { return bytes.Contains(head, []byte(text)) }
	switch {
	case bytes.HasPrefix(head, []byte("ARROW1")):
		if strings.HasSuffix(path, runSuffix) || has("dur_ns") {
			return kindRun
		}
		return kindTrace
	case bytes.HasPrefix(head, []byte("GGUF")):
		return kindGGUF
	case bytes.HasPrefix(head, []byte("PK\x03\x04")):
		return kindPyTorch
	case len(head) > 9 && head[8] == '{': // the length of the header goes before it
		switch {
		case has("windrow flash image"):
			return kindImage
		case has("windrow low-rank predictor"), has("windrow.centroid"):
			return kindPredictor
		case has("data_offsets"):
			return kindWeights
		}
	case has(`"fio version"`):
		return kindFio
	case strings.HasSuffix(path, sweepSuffix) && json.Valid(firstLine(head)):
		return kindResults
	case has("\nflash:"):
		return kindDevice
	case has("\ndevices:") || has("\nwindows:") || bytes.HasPrefix(head, []byte("devices:")):
		return kindScenario
	}
	return fileKind{}
}

func firstLine(text []byte) []byte {
	line, _, _ := bytes.Cut(text, []byte("\n"))
	return line
}

// expected are the kinds that flags and arguments take. Verbs that take several kinds of files are
// not here.
var expected = map[string]fileKind{
	"trace": kindTrace, "oracle": kindTrace, "test": kindTrace, "model": kindImage,
	"draft": kindImage, "predictor": kindPredictor, "evaluate": kindPredictor,
	"device": kindDevice, "host": kindDevice,
	"RUN": kindRun, "RUN [RUN]": kindRun, "TRACE": kindTrace, "TRACE...": kindTrace,
	"IMAGE...": kindImage, "SCENARIO": kindScenario, "DEVICE": kindDevice, "[DEVICE]": kindDevice,
	"DEVICE DEVICE...": kindDevice,
}

// explainKind adds to an error about a bad file what the file is and where it belongs, when it is
// of another kind than the flag or argument takes.
func explainKind(c *cli.Context, err error) error {
	if !errors.Is(err, refusal.ErrInput) {
		return err
	}
	hint := func(path string, want fileKind) string {
		got := sniff(c.Context, path)
		if got == want || got == (fileKind{}) || want == (fileKind{}) {
			return ""
		}
		return fmt.Sprintf("%s is %s, not %s; see \"windrow %s\"", path, got.name, want.name,
			got.belongs)
	}
	for _, f := range c.Command.Flags {
		name := f.Names()[0]
		if s, ok := f.(*cli.StringFlag); ok && c.IsSet(s.Name) {
			if text := hint(c.String(name), expected[name]); text != "" {
				return &explained{err, text}
			}
		}
	}
	for _, path := range c.Args().Slice() {
		if text := hint(path, expected[c.Command.ArgsUsage]); text != "" {
			return &explained{err, text}
		}
	}
	return err
}

// explained is an error with a hint behind it.
type explained struct {
	error
	hint string
}

func (e *explained) Error() string { return e.error.Error() + "; " + e.hint }
func (e *explained) Unwrap() error { return e.error }

// suggestFlag adds the nearest flag of a command to the library's error about an unknown one.
func suggestFlag(err error, flags []cli.Flag) string {
	text := err.Error()
	name, ok := strings.CutPrefix(text, "flag provided but not defined: ")
	if !ok {
		return text
	}
	name = strings.TrimLeft(name, "-")
	var known []string
	for _, f := range flags {
		known = append(known, f.Names()...)
	}
	slices.Sort(known)
	if near := didYouMean(name, known); near != "" {
		best := strings.TrimSuffix(strings.TrimPrefix(near, "; did you mean "), "?")
		return fmt.Sprintf("unknown flag %s; did you mean %s?", dashed(name), dashed(best))
	}
	return "unknown flag " + dashed(name)
}

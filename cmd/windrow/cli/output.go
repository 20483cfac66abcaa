package cli

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"github.com/windrow-sim/windrow/cmd/windrow/report"
	"github.com/windrow-sim/windrow/internal/document"
	"github.com/windrow-sim/windrow/internal/input"
	"github.com/windrow-sim/windrow/internal/nearest"
	"github.com/windrow-sim/windrow/internal/plain"
)

// formatFlags are on every verb.
func formatFlags(formats []string) []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "format", Value: "text",
			Usage: "print the result in `FORMAT`: " + strings.Join(formats, ", ")},
		&cli.BoolFlag{Name: "json", Usage: "short for --format json"},
	}
}

// runVerbs print Runs, which have two formats more.
var runVerbs = []string{"sim", "replay"}

func formatsOf(verb string) []string {
	if slices.Contains(runVerbs, verb) {
		return report.RunFormats()
	}
	return report.Formats()
}

// checkFormat refuses a format that is not known, before the work.
func checkFormat(c *cli.Context) error {
	known := formatsOf(c.Command.Name)
	if name := c.String("format"); !slices.Contains(known, name) {
		return usageError("--format %q: known are %s%s", name, strings.Join(known, ", "),
			didYouMean(name, known))
	}
	if c.Bool("json") && c.IsSet("format") && c.String("format") != "json" {
		return usageError("--json and --format %s: give one of them", c.String("format"))
	}
	return nil
}

// didYouMean suggests the nearest of the known names, or nothing when none is near.
func didYouMean(name string, known []string) string { return nearest.Hint(name, known) }

func (e *env) format(c *cli.Context) string {
	if c.Bool("json") {
		return "json"
	}
	return c.String("format")
}

// put prints a result in the format of the flags. It is the one way to stdout.
func (e *env) put(c *cli.Context, d *document.Document) error {
	options, err := e.options(c, e.format(c))
	if err != nil {
		return err
	}
	return report.Write(e.stdout, d, options)
}

// putRuns prints Runs, which have formats of their own besides.
func (e *env) putRuns(c *cli.Context, d *report.Data) error {
	options, err := e.options(c, e.format(c))
	if err != nil {
		return err
	}
	return d.Write(e.stdout, options)
}

func (e *env) options(c *cli.Context, format string) (report.Options, error) {
	if format == "json" || format == "html" {
		if err := e.readInputs(c); err != nil {
			return report.Options{}, err
		}
	}
	return report.Options{Format: format, Width: e.width(), Origin: report.Origin{Tool: Tool,
		Command: commandLine(e.args), Inputs: e.inputs}}, nil
}

// width is that of the terminal on stdout, or 0 when stdout is none.
func (e *env) width() int {
	f, ok := e.terminal.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return 0
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	// Tables of fewer columns cannot be read, tables of more lose the eye.
	return min(max(width, 60), 160)
}

// unresulting are flags that do not change a result: same inputs, same bytes, for any of them. The
// names of files to write are among them.
func unresulting() []string {
	return append([]string{"workers", "progress", "threads", "o"}, append(switches,
		outputs...)...)
}

// switches are those of them that take no value.
var switches = []string{"quiet", "q", "resume", "force", "verify"}

// commandLine is the command as one types it, without the flags that do not change its result.
func commandLine(args []string) string {
	words := []string{"windrow"}
	for i := 0; i < len(args); i++ {
		name, _, joined := strings.Cut(strings.TrimLeft(args[i], "-"), "=")
		if strings.HasPrefix(args[i], "-") && slices.Contains(unresulting(), name) {
			if !joined && !slices.Contains(switches, name) {
				i++
			}
			continue
		}
		words = append(words, plain.Word(args[i]))
	}
	return strings.Join(words, " ")
}

// input notes the SHA-256 of an input file for the JSON form, where a reader knows it already. A
// flash image is named by the hash that it carries, that of the model it was packed from.
func (e *env) input(name, hash string) {
	if e.inputs == nil {
		e.inputs = map[string]string{}
	}
	e.inputs[name] = hash
}

// readInputs hashes the files of the command line that no reader has noted: values of flags that
// name inputs, and arguments. Folders and devices have no hash. An interrupted verb prints what it
// has without them.
func (e *env) readInputs(c *cli.Context) error {
	if c.Context.Err() != nil {
		return nil
	}
	var names []string
	for _, f := range c.Command.Flags {
		name := f.Names()[0]
		if !c.IsSet(name) || slices.Contains(outputs, name) {
			continue
		}
		switch f.(type) {
		case *cli.StringFlag:
			names = append(names, c.String(name))
		case *cli.StringSliceFlag:
			names = append(names, c.StringSlice(name)...)
		}
	}
	for _, name := range append(names, c.Args().Slice()...) {
		if _, known := e.inputs[name]; !known {
			e.hashInput(c.Context, name)
		}
	}
	return c.Context.Err() // some have no hash then
}

// replaceable are flags whose value names a file to write, or a folder of them, which --force lets
// replace others.
var replaceable = []string{"out", "csv", "parquet", "plot", "keep-devices"}

// outputs are all flags whose value names a file to write.
var outputs = append([]string{"samples", "state"}, replaceable...)

// hashInput notes a regular file. One that cannot be read is left to its reader, whose error says
// more.
func (e *env) hashInput(ctx context.Context, path string) {
	f, err := input.Open(ctx, path)
	if err != nil {
		return
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, io.NewSectionReader(f, 0, f.Size())); err == nil {
		e.input(path, hex.EncodeToString(h.Sum(nil)))
	}
}

// errAnswer marks a result that says no: the document was printed, the exit code is 5.
var errAnswer = errors.New("the answer is no")

// putAnswer prints the result of a question. A reason why the answer is no ends the verb.
func (e *env) putAnswer(c *cli.Context, d *document.Document, no string) error {
	if err := e.put(c, d); err != nil || no == "" {
		return err
	}
	return &kinded{errAnswer, no}
}

// Package cli is the command line: one file per verb, each of which parses flags, calls a library
// function and prints its result. No verb decides anything a library could.
//
// Conventions: stdout is the result, stderr is everything else; flags may stand before or after
// arguments; errors map to exit codes in exit.go and nowhere else; every verb's help ends with
// examples that a test runs.
package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
)

// Version of the program, written into every file it makes.
const Version = "0.1.0"

// Tool is the program's name and version as files carry it.
const Tool = "windrow " + Version

// env is what a verb may touch of the outside world.
type env struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	now            func() time.Time // for progress only
	progress       string           // auto, always or never
	quiet          bool
	notFound       string            // verb that help was wanted for and that there is not
	terminal       io.Writer         // stdout itself, to ask for its width
	args           []string          // the command line, without the program's name
	inputs         map[string]string // files that the result depends on, with their SHA-256
}

// Run executes one command line (without the program's name) and returns the exit code.
func Run(ctx context.Context, stdin io.Reader, stdout, stderr io.Writer, args []string) int {
	out := &result{w: stdout}
	e := &env{stdin: stdin, stdout: out, stderr: stderr, now: time.Now, terminal: stdout,
		args: args}
	app := newApp(e)
	args, err := reorder(app, spoken(args))
	if err == nil {
		err = app.RunContext(ctx, append([]string{app.Name}, args...))
	}
	if err == nil && e.notFound != "" {
		err = unknownVerb(e.notFound)
	}
	if err == nil && out.err != nil {
		err = fmt.Errorf("the result could not be written: %w", out.err)
	}
	if err == nil {
		return exitOK
	}
	code, text := classify(ctx, err)
	fmt.Fprintf(stderr, "windrow: %s\n", text)
	return code
}

func newApp(e *env) *cli.App {
	app := &cli.App{
		Name:  "windrow",
		Usage: "simulate and run language models that are larger than memory and live on flash",
		Description: "Start with \"windrow demo\". Every verb explains itself: windrow VERB " +
			"--help.\n" +
			"Results go to stdout, everything else to stderr. Exit codes: 0 ok, 1 run failed, 2 " +
			"usage, 3 bad input file,\n" +
			"4 this host cannot (the message says what to do), 5 validation outside tolerance, " +
			"130 interrupted.",
		Writer: e.stdout, ErrWriter: e.stderr,
		HideVersion:     true,
		HideHelpCommand: true,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "progress", Value: "auto",
				Usage:       "`WHEN` to show progress on stderr: auto (a terminal), always, never",
				Destination: &e.progress},
			&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"},
				Usage: "no progress and no notes on stderr", Destination: &e.quiet},
		},
		Commands: []*cli.Command{
			demoCommand(e), packCommand(e), synthCommand(e), generateCommand(e), recordCommand(e),
			trainCommand(e), evalCommand(e), traceCommand(e),
			probeCommand(e), deviceCommand(e), simCommand(e), batchCommand(e), trafficCommand(e),
			replayCommand(e), calibrateCommand(e), validateCommand(e), reportCommand(e),
			breakevenCommand(e), planCommand(e), feasibleCommand(e),
			layoutCommand(e),
			adaptiveCommand(e),
			speculateCommand(e),
			sweepCommand(e),
			reproduceCommand(e),
			doctorCommand(e), versionCommand(e),
		},
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return unknownVerb(c.Args().First())
			}
			return cli.ShowAppHelp(c)
		},
		CommandNotFound: func(_ *cli.Context, name string) { e.notFound = name },
		Before: func(*cli.Context) error {
			if !slices.Contains([]string{"auto", "always", "never"}, e.progress) {
				return usageError("--progress %q: it is auto, always or never", e.progress)
			}
			return nil
		},
		OnUsageError: func(_ *cli.Context, err error, _ bool) error {
			return usageError("%v; see \"windrow --help\"", err)
		},
		// Errors come back to Run; the library must not end the process by itself.
		ExitErrHandler: func(*cli.Context, error) {},
	}
	plainSwitches(app.Flags)
	prepare(app.Commands, "windrow")
	return app
}

func unknownVerb(name string) error {
	return usageError("unknown verb %q; \"windrow --help\" lists them", name)
}

// spoken understands the two ways of asking that the library would refuse: "help VERB" and
// "--version".
func spoken(args []string) []string {
	switch {
	case len(args) > 0 && args[0] == "help":
		return append(slices.Clone(args[1:]), "--help")
	case len(args) == 1 && args[0] == "--version":
		return []string{"version"}
	}
	return args
}

// prepare gives every command the same manners.
func prepare(commands []*cli.Command, path string) {
	for _, c := range commands {
		full := path + " " + c.Name
		c.HideHelpCommand = true
		if len(c.Subcommands) == 0 {
			addFormatFlags(c)
		}
		plainSwitches(c.Flags)
		c.OnUsageError = func(_ *cli.Context, err error, _ bool) error {
			return usageError("%v; see \"%s --help\"", err, full)
		}
		prepare(c.Subcommands, full)
		if len(c.Subcommands) > 0 {
			c.Action = func(ctx *cli.Context) error {
				if ctx.Args().Present() {
					return usageError("%s: unknown %q; see \"%s --help\"", verb(full),
						ctx.Args().First(), full)
				}
				return cli.ShowSubcommandHelp(ctx)
			}
			continue
		}
		check(c, full)
	}
}

// addFormatFlags gives a verb --format and --json.
func addFormatFlags(c *cli.Command) {
	for _, f := range c.Flags {
		if f.Names()[0] == "format" {
			return
		}
	}
	c.Flags = append(c.Flags, formatFlags(formatsOf(c.Name))...)
}

// plainSwitches leaves "(default: false)" out of the help of switches.
func plainSwitches(flags []cli.Flag) {
	for _, f := range flags {
		if b, ok := f.(*cli.BoolFlag); ok {
			b.DisableDefaultText = true
		}
	}
}

// examples formats a verb's examples for its help; the test of the examples reads them back.
func examples(lines ...string) string {
	return "Examples:\n   " + strings.Join(lines, "\n   ")
}

func printJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// needArgs checks the number of arguments.
func needArgs(c *cli.Context, want int, what string) error {
	if c.NArg() != want {
		full := c.Command.HelpName
		return usageError("%s needs %s, got %d; see \"%s --help\"", verb(full), what, c.NArg(),
			full)
	}
	return nil
}

// result is stdout that remembers its first error, so that a full disk behind a redirection is not
// taken for success.
type result struct {
	w   io.Writer
	err error
}

func (r *result) Write(b []byte) (int, error) {
	n, err := r.w.Write(b)
	if r.err == nil {
		r.err = err
	}
	return n, err
}

// verb leaves the program's name out of a command's full name: every error starts with it anyway.
func verb(full string) string { return strings.TrimPrefix(full, "windrow ") }

// note prints a line to stderr unless the user wants silence.
func (e *env) note(format string, args ...any) {
	if !e.quiet {
		fmt.Fprintf(e.stderr, format+"\n", args...)
	}
}

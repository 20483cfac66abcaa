// Package cli is the command line: one file per verb, each of which parses flags, calls a library
// function and prints its result. No verb decides anything a library could.
//
// Conventions: stdout is the result, stderr is everything else; flags may stand before or after
// arguments; errors map to exit codes in exit.go and nowhere else; every verb's help ends with
// examples that a test runs.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"github.com/windrow-sim/windrow/internal/plain"
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
	claims         []func()          // give up the names of files to write
	vouched        map[string]bool   // images that vouch has looked at
}

// Run executes one command line (without the program's name) and returns the exit code. It closes
// stdout, if that can be closed: some disks tell only then that they are full.
func Run(ctx context.Context, stdin io.Reader, stdout, stderr io.Writer, args []string) int {
	// A verb that cannot write its result is cancelled.
	lost, cancel := context.WithCancel(ctx)
	defer cancel()
	out := &result{w: &endable{ctx: ctx, w: stdout}, failed: cancel}
	if f, ok := stderr.(*os.File); !ok || !term.IsTerminal(int(f.Fd())) {
		stderr = &endable{ctx: ctx, w: stderr}
	}
	e := &env{stdin: stdin, stdout: out, stderr: stderr, now: time.Now, terminal: stdout,
		args: args}
	app := newApp(e)
	err := checkEncoding(args)
	if err == nil {
		err = checkVerb(app, args)
	}
	if err == nil && !asksForWords(args) {
		args, err = reorder(app, spoken(args))
	}
	if err == nil {
		err = app.RunContext(lost, append([]string{app.Name}, args...))
	}
	if err == nil && e.notFound != "" {
		err = unknownVerb(app, e.notFound)
	}
	out.close()
	code, text := exitOK, ""
	switch {
	case out.err != nil && ctx.Err() == nil:
		if errors.Is(out.err, syscall.EPIPE) {
			return exitPipe // whoever closed it knows
		}
		code, text = exitFailed, fmt.Sprintf("the result could not be written: %v", out.err)
	case err != nil:
		code, text = classify(ctx, err)
	default:
		return exitOK
	}
	fmt.Fprintf(stderr, "windrow: %s\n", plain.Lines(text))
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
			"4 this host cannot (the message says what to do), 5 the answer is no (outside the " +
			"tolerance, does not fit), " +
			"130 interrupted, 141 the reader of stdout went away.",
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
		EnableBashCompletion: true,
		Commands: slices.Concat(
			group("models", packCommand(e), synthCommand(e), generateCommand(e),
				recordCommand(e), trainCommand(e), evalCommand(e)),
			group("measure", doctorCommand(e), probeCommand(e), deviceCommand(e),
				calibrateCommand(e), replayCommand(e)),
			group("predict", simCommand(e), sweepCommand(e), planCommand(e),
				breakevenCommand(e), feasibleCommand(e), batchCommand(e), trafficCommand(e),
				adaptiveCommand(e), speculateCommand(e), layoutCommand(e)),
			group("compare", demoCommand(e), validateCommand(e), reproduceCommand(e),
				reportCommand(e)),
			group("files", traceCommand(e), cleanCommand(e), imageCommand(e),
				completionCommand(e), manCommand(e), versionCommand(e)),
		),
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return unknownVerb(c.App, c.Args().First())
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
		OnUsageError: func(c *cli.Context, err error, _ bool) error {
			return usageError("%s; see \"windrow --help\"", suggestFlag(err, c.App.Flags))
		},
		// Errors come back to Run; the library must not end the process by itself.
		ExitErrHandler: func(*cli.Context, error) {},
	}
	plainSwitches(app.Flags)
	e.prepare(app.Commands, "windrow")
	app.CustomAppHelpTemplate = appHelp(app)
	return app
}

// group puts verbs under one heading of the help.
func group(heading string, commands ...*cli.Command) []*cli.Command {
	for _, c := range commands {
		c.Category = heading
	}
	return commands
}

// checkEncoding refuses names and texts that are not UTF-8. Documents, manifests and files of
// models hold nothing else: a name would be another there.
func checkEncoding(args []string) error {
	for _, arg := range args {
		if !utf8.ValidString(arg) {
			return usageError("%s is not UTF-8, which results and manifests hold; rename the "+
				"file, or name it through a link: ln -s %s NAME", plain.Word(arg),
				plain.Word(arg))
		}
	}
	return nil
}

// checkVerb refuses a misspelt verb before its flags are looked at.
func checkVerb(app *cli.App, args []string) error {
	if len(args) == 0 || strings.HasPrefix(args[0], "-") || args[0] == "help" ||
		find(app.Commands, args[0]) != nil {
		return nil
	}
	return unknownVerb(app, args[0])
}

func unknownVerb(app *cli.App, name string) error {
	return usageError("unknown verb %q%s; \"windrow --help\" lists them", name,
		didYouMean(name, namesOf(app.Commands)))
}

func namesOf(commands []*cli.Command) (names []string) {
	for _, c := range commands {
		names = append(names, c.Names()...)
	}
	return names
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
func (e *env) prepare(commands []*cli.Command, path string) {
	for _, c := range commands {
		full := path + " " + c.Name
		c.HideHelpCommand = true
		if len(c.Subcommands) == 0 {
			addForceFlag(c)
			addFormatFlags(c)
		}
		plainSwitches(c.Flags)
		c.OnUsageError = func(_ *cli.Context, err error, _ bool) error {
			return usageError("%s; see \"%s --help\"", suggestFlag(err, c.Flags), full)
		}
		c.CustomHelpTemplate = verbHelp(c, full)
		e.prepare(c.Subcommands, full)
		if len(c.Subcommands) > 0 {
			c.Action = func(ctx *cli.Context) error {
				if ctx.Args().Present() {
					name := ctx.Args().First()
					return usageError("%s: unknown %q%s; see \"%s --help\"", verb(full), name,
						didYouMean(name, namesOf(c.Subcommands)), full)
				}
				return cli.ShowSubcommandHelp(ctx)
			}
			continue
		}
		e.check(c, full)
	}
}

// addForceFlag gives --force to a verb that writes a file.
func addForceFlag(c *cli.Command) {
	for _, f := range c.Flags {
		if slices.Contains(replaceable, f.Names()[0]) {
			c.Flags = append(c.Flags, &cli.BoolFlag{Name: "force",
				Usage: "replace a file that is there already"})
			return
		}
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

// examples formats a verb's examples for its help, commands and, before one, a comment "# what it
// shows"; the test of the examples reads them back.
func examples(lines ...string) string {
	return "Examples:\n   " + strings.Join(lines, "\n   ")
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
// taken for success. failed is called upon it.
type result struct {
	w      *endable
	err    error
	failed func()
}

func (r *result) Write(b []byte) (int, error) {
	n, err := r.w.Write(b)
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	r.note(err)
	return n, err
}

func (r *result) close() { r.note(r.w.Close()) }

func (r *result) note(err error) {
	if err != nil && r.err == nil {
		r.err = err
		r.failed()
	}
}

// verb leaves the program's name out of a command's full name: every error starts with it anyway.
func verb(full string) string { return strings.TrimPrefix(full, "windrow ") }

// remark prints the remark of a library as note does.
func (e *env) remark(text string) { e.note("%s", text) }

// note prints a line to stderr unless the user wants silence.
func (e *env) note(format string, args ...any) {
	if !e.quiet {
		fmt.Fprintln(e.stderr, plain.Lines(fmt.Sprintf(format, args...)))
	}
}

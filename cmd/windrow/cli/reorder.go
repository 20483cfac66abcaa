package cli

import (
	"strings"

	"github.com/urfave/cli/v2"
)

// reorder moves flags before arguments within the addressed command, and flags of the program
// before its verb, since urfave/cli v2 stops reading flags at the first argument and then silently
// treats the rest as arguments (field case H1). A value that only looks like a flag can be
// protected by "--". A flag without its value is refused here: moved, it would take what comes to
// stand behind it.
func reorder(app *cli.App, args []string) ([]string, error) {
	flags, commands := app.Flags, app.Commands
	var global, out, late, plain, path []string
	for i := 0; i < len(args); i++ {
		arg := args[i]
		switch {
		case arg == "--":
			plain = append(plain, args[i+1:]...)
			i = len(args)
		case strings.HasPrefix(arg, "-") && arg != "-":
			to, f := &late, findFlag(flags, arg)
			if f == nil {
				if f = findFlag(app.Flags, arg); f != nil {
					to = &global
				}
			}
			*to = append(*to, arg)
			if takesValue(f, arg) {
				if i++; i == len(args) || args[i] == "--" {
					return nil, usageError("%s needs a value; see \"%s --help\"", arg,
						strings.Join(append([]string{app.Name}, path...), " "))
				}
				*to = append(*to, args[i])
			}
		default:
			next := find(commands, arg)
			if next == nil || len(plain) > 0 {
				plain = append(plain, arg)
				commands = nil // the first argument ends the path of verbs
				continue
			}
			out = append(append(out, late...), arg)
			late, path = nil, append(path, arg)
			flags, commands = next.Flags, next.Subcommands
		}
	}
	out = append(append(global, out...), late...)
	if len(plain) > 0 {
		out = append(append(out, "--"), plain...)
	}
	return out, nil
}

func find(commands []*cli.Command, name string) *cli.Command {
	for _, c := range commands {
		if c.HasName(name) {
			return c
		}
	}
	return nil
}

// findFlag returns the flag that arg names, or nil: an unknown one is left for the library to
// refuse.
func findFlag(flags []cli.Flag, arg string) cli.Flag {
	name, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(arg, "-"), "-"), "=")
	for _, f := range flags {
		for _, n := range f.Names() {
			if n == name {
				return f
			}
		}
	}
	return nil
}

// takesValue reports whether the flag's value is the next argument.
func takesValue(f cli.Flag, arg string) bool {
	d, ok := f.(cli.DocGenerationFlag)
	return ok && d.TakesValue() && !strings.Contains(arg, "=")
}

package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"
)

// completing is the argument by which the scripts below ask for the words that may follow.
const completing = "--generate-bash-completion"

// bashCompletion asks the program itself for the words, so that it never falls behind.
const bashCompletion = `_windrow() {
  local current=${COMP_WORDS[COMP_CWORD]}
  local line=("${COMP_WORDS[@]:0:COMP_CWORD}")
  [[ $current == -* ]] && line+=("${current/%--/-}")
  COMPREPLY=($(compgen -W "$("${line[@]}" ` + completing + ` 2>/dev/null)" -- "$current"))
}
complete -o default -F _windrow windrow
`

// zshCompletion runs the script of bash.
const zshCompletion = "autoload -U +X bashcompinit && bashcompinit\n" + bashCompletion

func completionCommand(e *env) *cli.Command {
	return &cli.Command{
		Name:      "completion",
		Usage:     "print a script that completes verbs and flags in a shell",
		ArgsUsage: "SHELL",
		Description: "SHELL is bash, zsh or fish. For bash, add to ~/.bashrc: " +
			"source <(windrow completion bash). For zsh, add to ~/.zshrc:\n" +
			"source <(windrow completion zsh). For fish: windrow completion fish > " +
			"~/.config/fish/completions/windrow.fish.\n\n" +
			examples("windrow completion bash", "windrow completion fish"),
		Action: func(c *cli.Context) error {
			if err := needArgs(c, 1, "the name of a shell: bash, zsh or fish"); err != nil {
				return err
			}
			script := ""
			switch shell := c.Args().First(); shell {
			case "bash":
				script = bashCompletion
			case "zsh":
				script = zshCompletion
			case "fish":
				text, err := c.App.ToFishCompletion()
				if err != nil {
					return fmt.Errorf("completion: %w", err)
				}
				script = text
			default:
				return usageError("completion %s: it is bash, zsh or fish%s", shell,
					didYouMean(shell, []string{"bash", "zsh", "fish"}))
			}
			_, err := io.WriteString(e.stdout, script)
			return err
		},
	}
}

func manCommand(e *env) *cli.Command {
	return &cli.Command{
		Name:  "man",
		Usage: "print the manual page of the program",
		Description: "Read it with: windrow man > windrow.1 && man ./windrow.1\n\n" +
			examples("windrow man"),
		Action: func(c *cli.Context) error {
			text, err := c.App.ToManWithSection(1)
			if err != nil {
				return fmt.Errorf("man: %w", err)
			}
			_, err = io.WriteString(e.stdout, text)
			return err
		},
	}
}

// asksForWords reports whether a script of a shell is asking, not a person.
func asksForWords(args []string) bool {
	return len(args) > 0 && strings.HasPrefix(args[len(args)-1], completing)
}

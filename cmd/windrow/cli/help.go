package cli

import (
	"flag"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/urfave/cli/v2"
)

// helpWidth is the width of help texts in columns: they are read in terminals, pagers and
// documents.
const helpWidth = 80

// helpFlag is the library's --help, one variable for all command lines of a process. The library
// writes into a flag when it parses, and command lines may be parsed side by side.
type helpFlag struct{ *cli.BoolFlag }

func init() {
	if shared, ok := cli.HelpFlag.(*cli.BoolFlag); ok {
		cli.HelpFlag = helpFlag{shared}
	}
}

// Apply implements cli.Flag.
func (h helpFlag) Apply(set *flag.FlagSet) error {
	own := *h.BoolFlag
	return own.Apply(set)
}

// verbHelp is the help of a verb: what it does, how it is called, examples, flags. The library
// takes it as a template, so that the two marks of one are written out.
func verbHelp(c *cli.Command, path string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n", wrapped(path+" - "+c.Usage, 0, "  "))
	usage := "usage: " + path
	switch {
	case len(c.Subcommands) > 0:
		usage += " VERB [flags]"
	default:
		for _, f := range c.Flags {
			if isRequired(f) {
				name, placeholder, _ := flagText(f)
				short, _, _ := strings.Cut(name, ", ")
				usage += " " + short + " " + placeholder
			}
		}
		usage += " [flags]"
		if c.ArgsUsage != "" {
			usage += " " + c.ArgsUsage
		}
	}
	fmt.Fprintf(&b, "%s\n", wrapped(usage, 0, "  "))
	about, lines, _ := strings.Cut(c.Description, "Examples:\n")
	if about = strings.TrimSpace(about); about != "" {
		fmt.Fprintf(&b, "\n%s\n", reflow(about))
	}
	if lines != "" {
		b.WriteString("\nExamples:\n")
		for line := range strings.Lines(lines) {
			line = "  " + strings.TrimSpace(line)
			if !strings.HasPrefix(line, "  #") {
				line = continued(line)
			}
			b.WriteString(line + "\n")
		}
	}
	if len(c.Subcommands) > 0 {
		b.WriteString("\nVerbs:\n")
		verbList(&b, c.Subcommands)
	}
	if len(c.Flags) > 0 {
		b.WriteString("\nFlags:\n")
		flagList(&b, c.Flags)
	}
	return asTemplate(b.String())
}

// appHelp is the help of the program: its verbs in groups.
func appHelp(app *cli.App) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\nusage: windrow VERB [flags] [arguments]\n\n%s\n",
		wrapped("windrow - "+app.Usage, 0, "  "), reflow(app.Description))
	heading := ""
	for _, c := range app.Commands {
		if c.Category != heading {
			heading = c.Category
			fmt.Fprintf(&b, "\n%s:\n", strings.ToUpper(heading[:1])+heading[1:])
		}
		verbList(&b, []*cli.Command{c})
	}
	b.WriteString("\nFlags of every verb:\n")
	flagList(&b, app.Flags)
	return asTemplate(b.String())
}

func asTemplate(text string) string { return strings.ReplaceAll(text, "{{", `{{"{{"}}`) }

// verbColumn and flagColumn are where the explanations begin.
const (
	verbColumn = 14
	flagColumn = 25
)

func verbList(b *strings.Builder, commands []*cli.Command) {
	for _, c := range commands {
		entry(b, c.Name, c.Usage, verbColumn)
	}
}

func flagList(b *strings.Builder, flags []cli.Flag) {
	for _, f := range flags {
		if v, ok := f.(cli.VisibleFlag); ok && !v.IsVisible() {
			continue
		}
		name, placeholder, about := flagText(f)
		if placeholder != "" {
			name += " " + placeholder
		}
		entry(b, name, about, flagColumn)
	}
}

// entry writes a name and its explanation, which begins in a column, on the next line if the name
// is too long.
func entry(b *strings.Builder, name, about string, column int) {
	head := "  " + name
	if n := utf8.RuneCountInString(head); n+2 > column {
		b.WriteString(head + "\n")
		head = ""
	}
	text := wrapped(strings.Repeat(" ", column)+about, 0, strings.Repeat(" ", column))
	b.WriteString(head + text[utf8.RuneCountInString(head):] + "\n")
}

// flagText takes a flag apart: "-k, --window", "K", and the explanation with the default.
func flagText(f cli.Flag) (name, placeholder, about string) {
	names := f.Names()
	name = dashed(names[0])
	for _, short := range names[1:] {
		name = dashed(short) + ", " + name
	}
	doc, ok := f.(cli.DocGenerationFlag)
	if !ok {
		return name, "", ""
	}
	about = doc.GetUsage()
	if before, rest, ok := strings.Cut(about, "`"); ok {
		inner, after, _ := strings.Cut(rest, "`")
		placeholder, about = inner, before+inner+after
	}
	if isRequired(f) {
		about += " (required)"
	} else if text := defaultText(f, doc); text != "" {
		about += " (default: " + text + ")"
	}
	return name, placeholder, about
}

// defaultText is a default as help shows it: none for switches, and none for 0 and "" unless words
// stand for them.
func defaultText(f cli.Flag, doc cli.DocGenerationFlag) string {
	if _, ok := f.(*cli.BoolFlag); ok {
		return ""
	}
	text := strings.Trim(doc.GetDefaultText(), `"`)
	if text == "0" || text == "0s" {
		return ""
	}
	return text
}

// reflow breaks paragraphs into lines of helpWidth. Lines that begin with spaces stay as they are;
// so do the examples.
func reflow(text string) string {
	about, lines, found := strings.Cut(text, "Examples:\n")
	var out []string
	for paragraph := range strings.SplitSeq(about, "\n\n") {
		var block []string
		for line := range strings.Lines(paragraph) {
			line = strings.TrimRight(line, "\n")
			last := len(block) - 1
			if strings.HasPrefix(line, " ") || last < 0 || strings.HasPrefix(block[last], " ") {
				block = append(block, line)
			} else {
				block[last] += " " + line
			}
		}
		for i, line := range block {
			indent := ""
			if strings.HasPrefix(line, " ") {
				indent = strings.Repeat(" ", hang(line))
			}
			block[i] = wrapped(line, 0, indent)
		}
		out = append(out, strings.Join(block, "\n"))
	}
	text = strings.Join(out, "\n\n")
	if found {
		text += "Examples:\n" + lines
	}
	return text
}

// hang is the column of the explanation in a line "  name   explanation".
func hang(line string) int {
	body := strings.TrimLeft(line, " ")
	indent := len(line) - len(body)
	name, rest, ok := strings.Cut(body, "  ")
	if !ok {
		return indent
	}
	return indent + utf8.RuneCountInString(name) + 2 + len(rest) - len(strings.TrimLeft(rest, " "))
}

// wrapped breaks text into lines of helpWidth; lines after the first begin with indent. Spaces at
// the beginning and runs of spaces stay as they are.
func wrapped(text string, used int, indent string) string {
	var b strings.Builder
	column := used
	body := strings.TrimLeft(text, " ")
	b.WriteString(text[:len(text)-len(body)])
	column += len(text) - len(body)
	begin := column
	for i, word := range strings.Split(body, " ") {
		n := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case word != "" && column+1+n > helpWidth && column > begin:
			b.WriteString("\n" + indent)
			column = utf8.RuneCountInString(indent)
			begin = column
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += n
	}
	return b.String()
}

// unbroken are the parts of a command that stay on one line: a flag with its value, quoted words.
var unbroken = regexp.MustCompile(`--?[a-z-]+ (?:"[^"]*"|[^-\s]\S*)|"[^"]*"`)

// continued breaks a command into lines of helpWidth that a shell joins again.
func continued(command string) string {
	const end, space = " \\", "\x00"
	command = unbroken.ReplaceAllStringFunc(command, func(part string) string {
		return strings.ReplaceAll(part, " ", space)
	})
	lines := strings.Split(wrapped(command, len(end), "      "), "\n")
	return strings.ReplaceAll(strings.Join(lines, end+"\n"), space, " ")
}

func isRequired(f cli.Flag) bool {
	r, ok := f.(cli.RequiredFlag)
	return ok && r.IsRequired()
}

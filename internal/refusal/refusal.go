// Package refusal sorts errors by their remedy: another configuration, another file, another host.
// The command line maps these kinds to exit codes. It is a leaf.
//
// A library refuses a value of its configuration by the name of the field, in braces:
//
//	refusal.Config("{Tokens} %d: 1 or more is wanted", c.Tokens)
//
// Error prints the bare name. A program with other names for the fields, such as flags, prints
// those with Text.
package refusal

import (
	"errors"
	"fmt"
	"strings"
)

// The kinds, to be tested with errors.Is.
var (
	// ErrConfig: the configuration cannot be carried out; change it.
	ErrConfig = errors.New("bad configuration")
	// ErrInput: a file is not the one that is needed; name another.
	ErrInput = errors.New("bad input file")
	// ErrHost: this machine lacks something; the message says what to do about it.
	ErrHost = errors.New("the host cannot do this")
)

// sentinel is an error of a kind that prints as its text alone.
type sentinel struct {
	kind error
	text string
}

func (s *sentinel) Error() string        { return s.text }
func (s *sentinel) Is(target error) bool { return target == s.kind }

// Kind returns an error to wrap in others, as errors.New does. errors.Is finds both the error
// itself and its kind in them.
func Kind(kind error, text string) error { return &sentinel{kind, text} }

// refused is an error that names fields of a configuration.
type refused struct {
	kind   error
	format string
	args   []any
}

// Config returns an error of kind ErrConfig. A field of the configuration stands in the format as
// {Name}.
func Config(format string, args ...any) error { return &refused{ErrConfig, format, args} }

// Input returns an error of kind ErrInput. Fields stand in the format as in Config.
func Input(format string, args ...any) error { return &refused{ErrInput, format, args} }

func (r *refused) Error() string { return r.text(nil) }

func (r *refused) Is(target error) bool { return target == r.kind }

func (r *refused) text(name func(field string) string) string {
	return Format(name, r.format, r.args...)
}

// Format formats a text in which fields stand as {Name}, with the given names of fields; nil = the
// bare ones. Braces in arguments stay as they are.
func Format(name func(field string) string, format string, args ...any) string {
	if name == nil {
		name = func(field string) string { return field }
	}
	var b strings.Builder
	rest := format
	for {
		before, after, open := strings.Cut(rest, "{")
		field, behind, closed := strings.Cut(after, "}")
		if !open || !closed {
			return fmt.Sprintf(b.String()+rest, renamed(args, name)...)
		}
		// A name has no verbs of Sprintf.
		b.WriteString(before + strings.ReplaceAll(name(field), "%", "%%"))
		rest = behind
	}
}

// renamed puts the text of errors among the arguments in their place.
func renamed(args []any, name func(field string) string) []any {
	list := make([]any, len(args))
	for i, arg := range args {
		if list[i] = arg; arg != nil {
			if err, ok := arg.(error); ok {
				list[i] = Text(err, name)
			}
		}
	}
	return list
}

// Text is the text of an error, with other names for the fields that refusals in its chain name.
func Text(err error, name func(field string) string) string {
	text := err.Error()
	for _, r := range refusals(err) {
		text = strings.Replace(text, r.Error(), r.text(name), 1)
	}
	return text
}

// refusals are those in the tree of an error, outermost first.
func refusals(err error) []*refused {
	if r, ok := err.(*refused); ok {
		return []*refused{r}
	}
	var list []*refused
	switch w := err.(type) {
	case interface{ Unwrap() error }:
		list = refusals(w.Unwrap())
	case interface{ Unwrap() []error }:
		for _, inner := range w.Unwrap() {
			list = append(list, refusals(inner)...)
		}
	}
	return list
}

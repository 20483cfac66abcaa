package chat

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ardanlabs/jinja"

	"github.com/windrow-sim/windrow/internal/refusal"
)

// Limits of what a template may do. The largest published template has 60 kB; a text of maxText
// bytes is longer than any context.
const (
	maxTemplate = 1 << 20  // bytes of a template
	maxRange    = 1 << 16  // numbers of one range
	maxText     = 16 << 20 // bytes of a rendered text
	maxNesting  = 200      // brackets and blocks inside each other
)

// ErrTemplate is the kind of errors of a template: it cannot be compiled, or refuses a
// conversation.
var ErrTemplate = refusal.Kind(refusal.ErrInput, "chat template")

// Options are the inputs of a template besides the conversation.
type Options struct {
	// The texts of special tokens; "" where the model has none, which leaves the variable
	// undefined.
	BOS, EOS, Pad string
	// Now is the clock of strftime_now.
	Now time.Time
}

// Template is a compiled template. It is safe for concurrent use.
type Template struct{ compiled *jinja.Template }

// Compile compiles a template. An error is an ErrTemplate with the line.
func Compile(source string) (*Template, error) {
	if len(source) > maxTemplate {
		return nil, templateError("%d bytes; at most %d are taken", len(source), maxTemplate)
	}
	if depth := nesting(source); depth > maxNesting {
		return nil, templateError("%d brackets or blocks inside each other; at most %d are taken",
			depth, maxNesting)
	}
	rewritten, err := rewrite(source)
	if err != nil {
		return nil, err
	}
	t, err := compile(rewritten)
	if err != nil {
		return nil, locate(source, err)
	}
	return &Template{t}, nil
}

// compile calls the engine, whose parser may panic.
func compile(source string) (t *jinja.Template, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the engine gave up: %v", r)
		}
	}()
	return jinja.Compile(source)
}

// raised is the error of raise_exception.
type raised struct{ text string }

func (r *raised) Error() string { return r.text }

// Render makes the text of a conversation. It does not limit time and memory: use Guarded for a
// template that came from somewhere. Errors are ErrTemplate; one that the template raises is its
// own sentence, with the message that it is about.
func (t *Template) Render(c *Conversation, opt Options) (string, error) {
	text, err := t.render(c, len(c.messages), opt)
	var own *raised
	if !errors.As(err, &own) {
		return text, err
	}
	for n := 1; n <= len(c.messages); n++ {
		var earlier *raised
		if _, err := t.render(c, n, opt); errors.As(err, &earlier) && earlier.text == own.text {
			return "", templateError("message %d (%s): %s", n, c.role(n-1), own.text)
		}
	}
	return "", templateError("%s", own.text)
}

// render renders the first n messages.
func (t *Template) render(c *Conversation, n int, opt Options) (text string, err error) {
	// the engine does not wrap errors, and panics where a value has another type than it expects
	var own *raised
	defer func() {
		if r := recover(); r != nil {
			text, err = "", templateError("the template cannot be rendered: %v", r)
		}
		if own != nil {
			text, err = "", own
		}
	}()
	values := c.values(n)
	for name, token := range map[string]string{"bos_token": opt.BOS, "eos_token": opt.EOS,
		"pad_token": opt.Pad} {
		if token != "" {
			values[name] = jinja.NewString(token)
		}
	}
	for name, fn := range map[string]func([]jinja.Value, map[string]jinja.Value) (jinja.Value,
		error){
		"range": boundedRange, jsonName: toJSON, stringName: printed, printName: printed,
		"strftime_now": func(args []jinja.Value, _ map[string]jinja.Value) (jinja.Value, error) {
			return now(opt.Now, args)
		},
		"raise_exception": func(args []jinja.Value, _ map[string]jinja.Value) (jinja.Value, error) {
			own = &raised{"raise_exception without a message"}
			if len(args) > 0 {
				own.text = plain(args[0])
			}
			return jinja.Undefined(), own
		},
	} {
		values[name] = jinja.NewCallable(name, fn)
	}
	text, err = t.compiled.RenderValues(values)
	switch {
	case err != nil:
		return "", templateError("%v", err)
	case len(text) > maxText:
		return "", templateError("it makes a text of %d bytes; at most %d are taken", len(text),
			maxText)
	}
	return text, nil
}

// boundedRange is Jinja's range, of no more than maxRange numbers.
func boundedRange(args []jinja.Value, _ map[string]jinja.Value) (jinja.Value, error) {
	var n [3]int64
	if len(args) < 1 || len(args) > 3 {
		return jinja.Undefined(), fmt.Errorf("range of %d arguments", len(args))
	}
	for i, a := range args {
		if !a.IsInt() {
			return jinja.Undefined(), fmt.Errorf("range of %s, which is no whole number", a)
		}
		n[i] = a.AsInt()
	}
	from, to, step := n[0], n[1], n[2]
	switch len(args) {
	case 1:
		from, to, step = 0, n[0], 1
	case 2:
		step = 1
	}
	if step == 0 {
		return jinja.Undefined(), errors.New("range with a step of 0")
	}
	var items []jinja.Value
	for i := from; step > 0 && i < to || step < 0 && i > to; {
		if len(items) == maxRange {
			return jinja.Undefined(), fmt.Errorf("a range of more than %d numbers", maxRange)
		}
		items = append(items, jinja.NewInt(i))
		next := i + step
		if next > i != (step > 0) { // overflow
			break
		}
		i = next
	}
	return jinja.NewList(items), nil
}

// templateError returns an ErrTemplate.
func templateError(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrTemplate, fmt.Sprintf(format, args...))
}

// locate adds the expression to an error of the engine, which names the line of a statement at
// best: the first one that does not compile alone.
func locate(source string, err error) error {
	for _, p := range pieces(source) {
		_, inner, _ := p.parts()
		inner = strings.TrimSpace(inner)
		alone := "{{ " + inner + " }}"
		if p.text[1] == '%' {
			keyword, rest, _ := strings.Cut(inner, " ")
			switch keyword {
			case "if", "elif":
				alone = "{% if " + rest + " %}{% endif %}"
			case "set":
				if !strings.Contains(rest, "=") {
					continue
				}
				alone = "{% set " + rest + " %}"
			case "for":
				alone = "{% for " + rest + " %}{% endfor %}"
			default:
				continue
			}
		}
		if _, bad := compile(alone); bad != nil {
			return templateError("line %d: %.300s: %v", p.line, p.text, bad)
		}
	}
	return templateError("%v", err)
}

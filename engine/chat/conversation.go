package chat

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/ardanlabs/jinja"

	"github.com/windrow-sim/windrow/internal/input"
	"github.com/windrow-sim/windrow/internal/refusal"
	"github.com/windrow-sim/windrow/internal/units"
)

// ErrConversation is the kind of errors of a conversation.
var ErrConversation = refusal.Kind(refusal.ErrInput, "conversation")

// Conversation is the input of a template: messages and tools.
type Conversation struct {
	messages []jinja.Value // dictionaries with a role
	tools    jinja.Value   // a list, or none
	answer   bool          // the text ends where the assistant begins to speak
	now      *time.Time
	extra    *jinja.Dict // further variables
}

// maxMessages bounds a conversation: a template may look at every pair of messages.
const maxMessages = 10_000

// fields are the members of a conversation that is an object.
const fields = "messages, tools, add_generation_prompt, now (2026-01-31), chat_template_kwargs"

// Parse reads a conversation: a list of messages, or an object with messages and, if they are
// wanted, tools (a list of functions), add_generation_prompt (true without it), now (the date that
// a template sees) and chat_template_kwargs (further variables, as enable_thinking). A message is
// an object with a role and a content; keys keep their order, because a template may print them.
// Errors are ErrConversation.
func Parse(data []byte) (*Conversation, error) {
	v, err := decode(input.TrimMark(data))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConversation, err)
	}
	c := &Conversation{tools: jinja.None(), answer: true}
	if err := c.fill(v); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConversation, err)
	}
	return c, nil
}

func (c *Conversation) fill(v jinja.Value) error {
	messages := v
	if v.IsDict() {
		d := v.AsDict()
		for _, key := range d.OrderedKeys() {
			member, _ := d.Get(key)
			if key == "messages" {
				continue
			}
			if err := c.member(key, member); err != nil {
				return err
			}
		}
		messages, _ = d.Get("messages")
	}
	if !messages.IsList() {
		return errors.New("no messages: give a list of them, or an object with messages")
	}
	c.messages = messages.AsList().Items
	switch n := len(c.messages); {
	case n == 0:
		return errors.New("the list of messages is empty")
	case n > maxMessages:
		return fmt.Errorf("%d messages; at most %d are taken", n, maxMessages)
	}
	for i, m := range c.messages {
		if err := checkMessage(m); err != nil {
			return fmt.Errorf("message %d (%s): %w", i+1, c.role(i), err)
		}
	}
	return nil
}

// member reads a member of a conversation besides the messages.
func (c *Conversation) member(key string, v jinja.Value) error {
	switch key {
	case "tools":
		if !v.IsList() && !v.IsNone() {
			return errors.New("tools is no list")
		}
		if v.IsList() && v.AsList().Len() > 0 {
			c.tools = v
		}
	case "add_generation_prompt":
		if !v.IsBool() {
			return errors.New("add_generation_prompt is neither true nor false")
		}
		c.answer = v.AsBool()
	case "now":
		if v.IsString() {
			for _, layout := range []string{time.DateOnly, time.DateTime, time.RFC3339} {
				if at, err := time.Parse(layout, v.AsString()); err == nil {
					c.now = &at
					return nil
				}
			}
		}
		return fmt.Errorf("now is %.60s, which is no date (2026-01-31)", v)
	case "chat_template_kwargs":
		if !v.IsDict() {
			return errors.New("chat_template_kwargs is no object")
		}
		c.extra = v.AsDict()
	default:
		return fmt.Errorf("unknown member %.60q; known: %s", key, fields)
	}
	return nil
}

// checkMessage refuses what no template can take.
func checkMessage(m jinja.Value) error {
	if !m.IsDict() {
		return errors.New("it is no object with role and content")
	}
	d := m.AsDict()
	if role, ok := d.Get("role"); !ok || !role.IsString() || role.AsString() == "" {
		return errors.New("it has no role, as system, user, assistant or tool")
	}
	content, _ := d.Get("content")
	calls, _ := d.Get("tool_calls")
	if (content.IsNone() || content.IsUndefined()) && !calls.IsTruthy() {
		for _, key := range []string{"reasoning_content", "thinking", "reasoning"} {
			if v, ok := d.Get(key); ok && v.IsString() {
				return nil
			}
		}
		return errors.New("its content is null, and it calls no tool: give it a text")
	}
	return nil
}

// role returns the role of a message.
func (c *Conversation) role(i int) string {
	if m := c.messages[i]; m.IsDict() {
		if role, ok := m.AsDict().Get("role"); ok && role.IsString() {
			return role.AsString()
		}
	}
	return "no role"
}

// values returns the variables of a template for the first n messages.
func (c *Conversation) values(n int) map[string]jinja.Value {
	out := map[string]jinja.Value{
		"messages":              jinja.NewList(c.messages[:n:n]),
		"tools":                 c.tools,
		"documents":             jinja.None(),
		"add_generation_prompt": jinja.NewBool(c.answer),
	}
	if c.extra != nil {
		for _, key := range c.extra.OrderedKeys() {
			out[key], _ = c.extra.Get(key)
		}
	}
	return out
}

// decode reads one JSON value. Objects keep the order of their keys; the last of equal keys counts,
// at the place of the first, as in Python.
func decode(data []byte) (jinja.Value, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	v, err := decodeValue(dec, 0)
	if err != nil {
		return v, fmt.Errorf("not valid JSON at byte %d: %w", dec.InputOffset(), err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return v, fmt.Errorf("there is something after the JSON value, at byte %d",
			dec.InputOffset())
	}
	return v, nil
}

func decodeValue(dec *json.Decoder, depth int) (jinja.Value, error) {
	token, err := dec.Token()
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return jinja.Undefined(), err
	}
	switch t := token.(type) {
	case string:
		return jinja.NewString(t), nil
	case bool:
		return jinja.NewBool(t), nil
	case json.Number:
		return number(string(t))
	case nil:
		return jinja.None(), nil
	}
	if depth == maxNesting/2 {
		return jinja.Undefined(), fmt.Errorf("more than %d lists and objects inside each other",
			maxNesting/2)
	}
	if token == json.Delim('[') {
		var items []jinja.Value
		for dec.More() {
			item, err := decodeValue(dec, depth+1)
			if err != nil {
				return item, err
			}
			items = append(items, item)
		}
		_, err := dec.Token()
		return jinja.NewList(items), err
	}
	object := jinja.NewDict()
	d := object.AsDict()
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return object, err
		}
		member, err := decodeValue(dec, depth+1)
		if err != nil {
			return member, err
		}
		d.Set(key.(string), member) // a key is a string, or Token is an error
	}
	_, err = dec.Token()
	return object, err
}

// number reads a number: whole ones stay whole.
func number(text string) (jinja.Value, error) {
	if !strings.ContainsAny(text, ".eE") {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return jinja.Undefined(), fmt.Errorf("the number %.40s has more than 64 bits", text)
		}
		return jinja.NewInt(n), nil
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return jinja.Undefined(), fmt.Errorf("the number %.40s is too large", text)
	}
	return jinja.NewFloat(f), nil
}

// Read reads a conversation of at most limit bytes from a file, or from stdin for the path "-", and
// checks it. Errors are ErrConversation, the context's, or those of the file.
func Read(ctx context.Context, path string, stdin io.Reader, limit units.Bytes) ([]byte, error) {
	data, err := []byte(nil), error(nil)
	if path == "-" {
		path = "stdin"
		data, err = readStream(ctx, path, stdin, limit)
	} else {
		data, err = input.ReadText(ctx, path, input.Limit{Most: limit, Field: "MaxInput"})
	}
	if err != nil {
		return nil, err
	}
	if _, err := Parse(data); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return data, nil
}

// readStream reads a stream to its end, or until the context ends.
func readStream(ctx context.Context, name string, from io.Reader, limit units.Bytes) ([]byte,
	error) {
	data, err := input.Await(ctx, name, func() ([]byte, error) {
		return io.ReadAll(io.LimitReader(from, int64(limit)+1))
	}, nil)
	if err == nil && len(data) > int(limit) {
		return nil, refusal.Input("%s holds more than the limit of %v; raise the limit with "+
			"{MaxInput}", name, limit)
	}
	return data, err
}

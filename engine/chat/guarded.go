package chat

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/windrow-sim/windrow/internal/guard"
	"github.com/windrow-sim/windrow/internal/input"
)

// childTime is how long a child may render; published templates take milliseconds.
const childTime = 20 * time.Second

// request goes from Guarded to Serve.
type request struct {
	Template     string
	Conversation json.RawMessage
	Options      Options
}

// reply is its answer.
type reply struct {
	Text, Error  string
	Conversation bool // the error is of the conversation, not of the template
}

// Guarded renders a conversation with a template in a child process with limits. argv starts the
// child: this program again, with arguments that lead it to Serve. Without a date in the
// conversation opt.Now is the template's clock.
func Guarded(ctx context.Context, argv []string, template string, conversation []byte,
	opt Options) (string, error) {
	return guarded(ctx, argv, template, conversation, opt, childTime)
}

func guarded(ctx context.Context, argv []string, template string, conversation []byte, opt Options,
	limit time.Duration) (string, error) {
	// what is no JSON could not be handed on
	if _, err := Parse(conversation); err != nil {
		return "", err
	}
	in, err := json.Marshal(request{template, input.TrimMark(conversation), opt})
	if err != nil {
		return "", fmt.Errorf("chat: %w", err)
	}
	// JSON may escape every byte of a text
	out, err := guard.Run(ctx, guard.Child{Argv: argv, Stdin: bytes.NewReader(in),
		Memory: guard.Base, Time: limit, Output: 6*maxText + 1<<10})
	var failed *guard.Failed
	if errors.As(err, &failed) {
		return "", templateError("it made the rendering process fail: %s: %.300s", failed.State,
			failed.First)
	}
	if err != nil {
		return "", fmt.Errorf("chat: %w", err)
	}
	var r reply
	if err := json.Unmarshal(out, &r); err != nil {
		return "", templateError("the rendering process answered nonsense: %v", err)
	}
	switch {
	case r.Error == "":
		return r.Text, nil
	case r.Conversation:
		return "", &told{ErrConversation, r.Error}
	}
	return "", &told{ErrTemplate, r.Error}
}

// told is an error that the child told.
type told struct {
	kind error
	text string
}

func (t *told) Error() string { return t.text }
func (t *told) Unwrap() error { return t.kind }

// Serve is the child's half of Guarded. It returns only errors of reading and printing; those of
// the template are part of the reply.
func Serve(in io.Reader, out io.Writer) error {
	if err := guard.Enter(); err != nil {
		return err
	}
	var req request
	if err := json.NewDecoder(in).Decode(&req); err != nil {
		return fmt.Errorf("chat: request: %w", err)
	}
	var r reply
	text, err := serve(req)
	if r.Text = text; err != nil {
		r = reply{Error: err.Error(), Conversation: errors.Is(err, ErrConversation)}
	}
	return json.NewEncoder(out).Encode(r)
}

func serve(req request) (string, error) {
	c, err := Parse(req.Conversation)
	if err != nil {
		return "", err
	}
	t, err := Compile(req.Template)
	if err != nil {
		return "", err
	}
	if c.now != nil {
		req.Options.Now = *c.now
	}
	return t.Render(c, req.Options)
}

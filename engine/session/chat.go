package session

import (
	"context"
	"time"

	"github.com/windrow-sim/windrow/engine/chat"
	"github.com/windrow-sim/windrow/internal/refusal"
)

// Chat is a conversation to be made the prompt of a generation.
type Chat struct {
	Messages []byte // as chat.Parse reads them
	// ChatTemplate is the file of a template that replaces the image's; "" = the image's.
	ChatTemplate string
	Now          time.Time // the clock of a template, unless the messages have a date
	// Child starts this program so that it calls chat.Serve.
	Child []string
}

// Prompt renders a conversation with the model's chat template, and says which one that is. The
// text holds all tokens that the model wants: encode it with NoBOS.
func (s *Session) Prompt(ctx context.Context, c Chat) (string, error) {
	tok, err := s.Text()
	if err != nil {
		return "", err
	}
	template := chat.Source(s.Image.Chat)
	if c.ChatTemplate != "" {
		if template, err = chat.FromFile(ctx, c.ChatTemplate); err != nil {
			return "", err
		}
	}
	if template.Text == "" {
		return "", refusal.Config("%s has no chat template (the folder that it was packed from "+
			"had none, or it was packed by an older windrow): pack it again, or give a template "+
			"with {ChatTemplate}", s.Image.Path)
	}
	opt := chat.Options{Now: c.Now}
	for _, role := range []struct {
		into *string
		get  func() (uint32, bool)
	}{{&opt.BOS, tok.BOS}, {&opt.EOS, tok.EOS}, {&opt.Pad, tok.Pad}} {
		if id, ok := role.get(); ok {
			*role.into = tok.Token(id)
		}
	}
	text, err := chat.Guarded(ctx, c.Child, template.Text, c.Messages, opt)
	if err != nil {
		return "", err
	}
	s.Note("chat template: %s", template.From)
	return text, nil
}

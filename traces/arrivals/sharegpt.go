package arrivals

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// shareGPT reads a JSON list of conversations, one at a time.
type shareGPT struct {
	in      *allowance
	dec     *json.Decoder
	count   func(string) int
	n       int64     // conversations read
	pending []Request // turns of the last conversation that next has not returned yet
}

// conversation holds the used keys of a conversation.
type conversation struct {
	ID       json.RawMessage `json:"id"`
	Messages []message       `json:"conversations"`
}

type message struct {
	From  string  `json:"from"`
	Value *string `json:"value"`
}

// newShareGPT reads the opening bracket of the list.
func newShareGPT(r io.Reader, count func(string) int) (*shareGPT, error) {
	if count == nil {
		return nil, fmt.Errorf("the file holds texts, whose tokens only a tokenizer can count; "+
			"none was given: %w", ErrUnsupported)
	}
	in := &allowance{r: r, left: MaxConversation}
	s := &shareGPT{in: in, dec: json.NewDecoder(in), count: count}
	token, err := s.dec.Token()
	if err != nil {
		return nil, s.broken(err)
	}
	if token != json.Delim('[') {
		return nil, fmt.Errorf("the file does not begin with a list of conversations: %w",
			ErrFormat)
	}
	return s, nil
}

func (s *shareGPT) line() int64 { return s.n }

func (s *shareGPT) next(req *Request, stats *Stats) error {
	for len(s.pending) == 0 {
		s.in.left = MaxConversation
		if !s.dec.More() {
			return s.end()
		}
		s.n++
		var c conversation
		err := s.dec.Decode(&c)
		if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			stats.Lines++
			return &LineError{Unit: "conversation", Line: s.n, Field: wrong.Field,
				Value: wrong.Value, Reason: WrongType}
		}
		if err != nil {
			return s.broken(err)
		}
		stats.Lines++
		turns, why, bad := s.turns(&c)
		if bad != nil {
			return bad
		}
		if why != "" {
			stats.Skipped[why]++
		}
		s.pending = turns
	}
	*req = s.pending[0]
	s.pending = s.pending[1:]
	return nil
}

// turns returns the answered turns of a conversation. The reason says why there are none. It is
// Unanswered if only the last message has no answer.
func (s *shareGPT) turns(c *conversation) ([]Request, Reason, *LineError) {
	session := s.session(c.ID)
	var list []Request
	history, prompt, output := 0, 0, 0
	turn := func() {
		list = append(list, Request{Prompt: history + prompt, Output: output, History: history,
			Session: session, Turn: len(list) + 1})
		history, prompt, output = history+prompt+output, 0, 0
	}
	for i := range c.Messages {
		m := &c.Messages[i]
		if m.Value == nil {
			return nil, NullValue, nil
		}
		n := s.count(*m.Value)
		if n < 0 || n > MaxTokens || history+prompt+output > MaxTokens-n {
			return nil, "", &LineError{Unit: "conversation", Line: s.n, Field: "value",
				Value: shorten([]byte(*m.Value)), Reason: TooLarge,
				Detail: fmt.Sprintf("the tokenizer counts %d tokens", n)}
		}
		if n == 0 {
			return nil, EmptyMessage, nil
		}
		switch m.From {
		case "human", "user", "system":
			if output > 0 {
				turn()
			}
			prompt += n
		case "gpt", "chatgpt", "bing", "bard", "assistant":
			if i == 0 || i == 1 && c.Messages[0].From == "system" {
				return nil, GPTFirst, nil
			}
			output += n
		default:
			return nil, UnknownRole, nil
		}
	}
	if output > 0 {
		turn()
	}
	switch {
	case len(c.Messages) == 0:
		return nil, Empty, nil
	case len(list) == 0:
		return nil, OneTurn, nil
	case prompt > 0:
		return list, Unanswered, nil
	}
	return list, "", nil
}

// session returns the name of a conversation: its id, or its number if it has none.
func (s *shareGPT) session(id json.RawMessage) string {
	var text string
	switch {
	case json.Unmarshal(id, &text) == nil && text != "":
		return text
	case len(id) > 0 && id[0] != '"' && id[0] != '{' && id[0] != '[' && string(id) != "null":
		return string(id)
	}
	return fmt.Sprintf("conversation %d", s.n)
}

// end reads the rest of the file after the last conversation.
func (s *shareGPT) end() error {
	if _, err := s.dec.Token(); err != nil {
		return s.broken(err)
	}
	if _, err := s.dec.Token(); err == nil {
		return fmt.Errorf("behind the list of %d conversations there is more: %w", s.n, ErrFormat)
	} else if err != io.EOF {
		return s.broken(err)
	}
	return io.EOF
}

// broken returns the error of JSON that is broken. Reading cannot continue after it.
func (s *shareGPT) broken(err error) error {
	syntax, bad := errors.AsType[*json.SyntaxError](err)
	wrong, misfit := errors.AsType[*json.UnmarshalTypeError](err)
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("conversation %d: the file is cut off: %w", s.n, ErrFormat)
	case bad:
		return fmt.Errorf("line %d: conversation %d: not JSON: byte %d: %w: %w", s.fileLine(), s.n,
			syntax.Offset, syntax, ErrFormat)
	case misfit: // a number beyond float64 in place of another type
		return fmt.Errorf("line %d: conversation %d: %w: %w", s.fileLine(), s.n, wrong, ErrFormat)
	case errors.Is(err, errUsedUp):
		return fmt.Errorf("conversation %d: is longer than %d bytes: %w", s.n, MaxConversation,
			ErrUnsupported)
	}
	return err
}

// fileLine is the line of the file that the decoder is at: where the value begins that it could not
// read.
func (s *shareGPT) fileLine() int {
	ahead, err := io.ReadAll(s.dec.Buffered())
	if err != nil { // cannot happen: it is in memory
		return 0
	}
	return 1 + s.in.ends - bytes.Count(bytes.TrimLeft(ahead, ", \t\r\n"), []byte("\n"))
}

// errUsedUp is the error of an allowance that is used up.
var errUsedUp = errors.New("too long")

// allowance reads at most left bytes. Without it the decoder would hold strings of any length.
type allowance struct {
	r    io.Reader
	left int
	ends int // of lines that were read
}

func (a *allowance) Read(b []byte) (int, error) {
	if a.left <= 0 {
		return 0, errUsedUp
	}
	n, err := a.r.Read(b[:min(len(b), a.left)])
	a.left -= n
	a.ends += bytes.Count(b[:n], []byte("\n"))
	return n, err
}

package checkpoint

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/windrow-sim/windrow/engine/checkpoint/internal/tensor"
)

// scanner reads the JSON of headers in place: objects of strings, whole numbers and such objects.
// It returns parts of the data. It does not compare names: a header has very many.
type scanner struct {
	data  []byte
	dec   jsontext.Decoder
	input bytes.Buffer // reads data; the decoder parses it in place
	buf   []byte       // of text
}

// newScanner stands at the beginning of data, which must be UTF-8.
func newScanner(data []byte) *scanner {
	s := &scanner{data: data}
	s.rewind(0)
	return s
}

// rewind continues at a position, which must be the start of a value.
func (s *scanner) rewind(at int) {
	s.input = *bytes.NewBuffer(s.data[at:])
	s.dec.Reset(&s.input, jsontext.AllowDuplicateNames(true))
}

// at returns the position behind the last value read.
func (s *scanner) at() int { return len(s.data) - len(s.dec.UnreadBuffer()) }

// broken is an error of the decoder.
func broken(err error) error {
	var syntax *jsontext.SyntacticError
	switch {
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		err = io.ErrUnexpectedEOF
	case errors.Is(err, jsontext.ErrDuplicateName) && errors.As(err, &syntax):
		return twice([]byte(syntax.JSONPointer.LastToken()))
	case errors.As(err, &syntax):
		err = syntax.Err
	}
	return fmt.Errorf("%w: %w", ErrFormat, err)
}

// value reads a string or number and returns it unchanged.
func (s *scanner) value(kind jsontext.Kind, what string) ([]byte, error) {
	if got := s.dec.PeekKind(); got != kind && got != 0 {
		return nil, fmt.Errorf("%w: %s is not %s", ErrFormat, s.token(), what)
	}
	raw, err := s.dec.ReadValue()
	if err != nil {
		return nil, broken(err)
	}
	return raw, nil
}

// open reads the bracket that begins an object or list.
func (s *scanner) open(bracket jsontext.Kind) error {
	if got := s.dec.PeekKind(); got != bracket && got != 0 {
		return fmt.Errorf("%w: %s where %s is expected", ErrFormat, s.token(), bracket)
	}
	return s.delimiter()
}

// delimiter reads a bracket.
func (s *scanner) delimiter() error {
	if _, err := s.dec.ReadToken(); err != nil {
		return broken(err)
	}
	return nil
}

// object reads an object; member is called with each quoted name and must read the value.
func (s *scanner) object(member func(name []byte) error) error {
	if err := s.open('{'); err != nil {
		return err
	}
	for s.dec.PeekKind() != '}' {
		name, err := s.quoted()
		if err == nil {
			err = member(name)
		}
		if err != nil {
			return err
		}
	}
	return s.delimiter()
}

// end demands that only white space is left.
func (s *scanner) end() error {
	if tok, err := s.dec.ReadToken(); err == nil {
		return fmt.Errorf("%w: %s after the end of the object", ErrFormat, tok.Kind())
	} else if err != io.EOF {
		return broken(err)
	}
	return nil
}

// quoted reads a string and returns it unchanged, with its quotes.
func (s *scanner) quoted() ([]byte, error) { return s.value('"', "a string") }

// text returns the text of a string that quoted has accepted. It is valid until the next call.
func (s *scanner) text(quoted []byte) []byte {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return quoted[1 : len(quoted)-1]
	}
	s.buf, _ = jsontext.AppendUnquote(s.buf[:0], quoted)
	return s.buf
}

// textAt is text of the string at a position.
func (s *scanner) textAt(at uint32) []byte {
	s.rewind(int(at))
	quoted, _ := s.quoted()
	return s.text(quoted)
}

// token returns the text up to the next separator, for a message.
func (s *scanner) token() string {
	rest := bytes.TrimLeft(s.dec.UnreadBuffer(), " \t\r\n,:")
	if i := bytes.IndexAny(rest[min(1, len(rest)):], ",]}: \t\r\n"); i >= 0 {
		rest = rest[:1+i]
	}
	return tensor.Clip(string(rest[:min(len(rest), 1000)]))
}

// counts reads an array of integers from 0 to 2^63−1 and returns their number.
func (s *scanner) counts(list *[maxRank]int64) (n int, err error) {
	if err := s.open('['); err != nil {
		return 0, err
	}
	for ; s.dec.PeekKind() != ']'; n++ {
		if n == len(list) {
			return n, fmt.Errorf("%w: more than %d numbers; reshape the tensor", ErrUnsupported,
				len(list))
		}
		if list[n], err = s.count(); err != nil {
			return n, err
		}
	}
	return n, s.delimiter()
}

// count reads an integer from 0 to 2^63−1.
func (s *scanner) count() (int64, error) {
	const what = "a whole number from 0 to 2^63-1"
	raw, err := s.value('0', what)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil || raw[0] == '-' {
		return 0, fmt.Errorf("%w: %s is not %s", ErrFormat, tensor.Clip(string(raw)), what)
	}
	return n, nil
}

package checkpoint

import (
	"bytes"
	"fmt"
	"io"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/windrow-sim/windrow/engine/checkpoint/internal/tensor"
)

// scanner reads the JSON of headers, which are objects of strings, of whole numbers and of such objects, in place: it
// allocates nothing but a buffer as long as the longest string with an escape. The data must be UTF-8. Names are not
// compared: a header has very many.
type scanner struct {
	data   []byte
	at     int
	nameAt int    // where the last name of a member starts
	buf    []byte // of text
}

// space skips white space.
func (s *scanner) space() {
	for s.at < len(s.data) && bytes.IndexByte([]byte(" \t\r\n"), s.data[s.at]) >= 0 {
		s.at++
	}
}

// next skips white space and returns the byte after it, 0 at the end.
func (s *scanner) next() byte {
	s.space()
	if s.at == len(s.data) {
		return 0
	}
	return s.data[s.at]
}

// unexpected is the error of something else than what must be here.
func (s *scanner) unexpected(want string) error {
	if s.at == len(s.data) {
		return fmt.Errorf("%w: %w", ErrFormat, io.ErrUnexpectedEOF)
	}
	return fmt.Errorf("%w: invalid character %q where %s is expected", ErrFormat, s.data[s.at], want)
}

// end demands that only white space is left.
func (s *scanner) end() error {
	if s.space(); s.at < len(s.data) {
		return fmt.Errorf("%w: %q after the end of the object", ErrFormat, s.data[s.at])
	}
	return nil
}

// list reads what stands between two brackets; element must read one element of it.
func (s *scanner) list(first, last byte, element func() error) error {
	if s.next() != first {
		return s.unexpected(string(first))
	}
	s.at++
	if s.next() == last {
		s.at++
		return nil
	}
	for {
		if err := element(); err != nil {
			return err
		}
		switch s.next() {
		case last:
			s.at++
			return nil
		case ',':
			s.at++
		default:
			return s.unexpected("a comma or " + string(last))
		}
	}
}

// object reads an object; member is called with each quoted name and must read the value.
func (s *scanner) object(member func(name []byte) error) error {
	return s.list('{', '}', func() error {
		if s.next() != '"' {
			return s.unexpected("a name")
		}
		s.nameAt = s.at
		name, err := s.quoted()
		if err != nil {
			return err
		}
		if s.next() != ':' {
			return s.unexpected("a colon")
		}
		s.at++
		return member(name)
	})
}

// quoted reads a string and returns it as it stands there, with its quotes.
func (s *scanner) quoted() ([]byte, error) {
	if s.next() != '"' {
		if s.at == len(s.data) {
			return nil, s.unexpected("a string")
		}
		return nil, fmt.Errorf("%w: %s is not a string", ErrFormat, s.token())
	}
	start, escaped := s.at, false
	for s.at++; s.at < len(s.data); s.at++ {
		switch c := s.data[s.at]; {
		case c == '"':
			s.at++
			raw := s.data[start:s.at]
			if escaped {
				var err error
				if s.buf, err = jsontext.AppendUnquote(s.buf[:0], raw); err != nil {
					return nil, fmt.Errorf("%w: %w", ErrFormat, err)
				}
			}
			return raw, nil
		case c == '\\':
			escaped = true
			s.at++
		case c < ' ':
			return nil, s.unexpected("a character of a string")
		}
	}
	s.at = len(s.data)
	return nil, s.unexpected("the end of a string")
}

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
	s.at = int(at)
	quoted, _ := s.quoted()
	return s.text(quoted)
}

// token returns what stands here up to the next separator, for a message.
func (s *scanner) token() string {
	rest := s.data[s.at:]
	if i := bytes.IndexAny(rest[1:], ",]}: \t\r\n"); i >= 0 {
		rest = rest[:1+i]
	}
	return tensor.Clip(string(rest[:min(len(rest), 1000)]))
}

// counts reads an array of integers from 0 to 2^63−1 and returns their number.
func (s *scanner) counts(list *[maxRank]int64) (int, error) {
	n := 0
	err := s.list('[', ']', func() error {
		if n == len(list) {
			return fmt.Errorf("%w: more than %d numbers; reshape the tensor", ErrUnsupported, len(list))
		}
		var err error
		list[n], err = s.count()
		n++
		return err
	})
	return n, err
}

// count reads an integer from 0 to 2^63−1.
func (s *scanner) count() (int64, error) {
	const most = len("9223372036854775807")
	if s.next(); s.at == len(s.data) {
		return 0, s.unexpected("a number")
	}
	token := s.data[s.at:]
	digits := 0
	for digits < len(token) && '0' <= token[digits] && token[digits] <= '9' {
		digits++
	}
	whole := digits > 0 && digits <= most && (token[0] != '0' || digits == 1) &&
		(digits == len(token) || bytes.IndexByte([]byte(",]} \t\r\n"), token[digits]) >= 0)
	if whole {
		if n, err := strconv.ParseInt(string(token[:digits]), 10, 64); err == nil {
			s.at += digits
			return n, nil
		}
	}
	return 0, fmt.Errorf("%w: %s is not a whole number from 0 to 2^63-1", ErrFormat, s.token())
}

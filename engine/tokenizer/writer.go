package tokenizer

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// MarshalText returns the tokenizer as one line of JSON, which depends only on the tokenizer's
// behaviour. Parse reads it. The error is always nil; encoding.TextMarshaler requires it.
func (t *Tokenizer) MarshalText() ([]byte, error) {
	var out bytes.Buffer
	t.writeDocument(&out)
	return out.Bytes(), nil
}

// hash returns the hash of the document, in hexadecimal.
func (t *Tokenizer) hash() string {
	h := sha256.New()
	t.writeDocument(h)
	return hex.EncodeToString(h.Sum(nil))
}

// writeDocument writes the document to something that does not fail.
func (t *Tokenizer) writeDocument(to io.Writer) {
	w := documentWriter{to: to, buf: make([]byte, 0, writerBuffer)}
	w.encoder = json.NewEncoder(&w.encoded)
	w.encoder.SetEscapeHTML(false)
	if t.plain() {
		t.writePlain(&w)
	} else {
		t.writeGeneral(&w)
	}
	w.flush()
}

// writerBuffer is the part of a document that is in memory at a time, and writerPiece the part of a
// string that is quoted at a time: at most six times as much.
const (
	writerBuffer = 16 << 10
	writerPiece  = 1 << 10
)

// documentWriter writes JSON piece by piece: a document is as large as the tokenizer itself. The
// bytes are those of encoding/json with SetEscapeHTML(false), because hashes in old traces depend
// on them.
type documentWriter struct {
	to      io.Writer
	buf     []byte
	sep     string // before the next element
	encoder *json.Encoder
	encoded bytes.Buffer // what encoder writes
}

func (w *documentWriter) flush() {
	w.to.Write(w.buf)
	w.buf = w.buf[:0]
}

// room makes room for n more bytes in the buffer, if it is larger than that.
func (w *documentWriter) room(n int) {
	if len(w.buf)+n > writerBuffer {
		w.flush()
	}
}

// raw writes a piece of JSON.
func (w *documentWriter) raw(text string) {
	w.room(len(text))
	w.buf = append(w.buf, text...)
}

// bytes is raw for bytes.
func (w *documentWriter) bytes(text []byte) {
	w.room(len(text))
	w.buf = append(w.buf, text...)
}

// open begins the object or list, and end ends it.
func (w *documentWriter) open(bracket string) {
	w.raw(bracket)
	w.sep = ""
}

func (w *documentWriter) end(bracket string) {
	w.raw(bracket)
	w.sep = ","
}

// element begins an element of a list.
func (w *documentWriter) element() {
	w.raw(w.sep)
	w.sep = ","
}

// member begins a member of an object.
func (w *documentWriter) member(name string) {
	w.element()
	w.raw(`"` + name + `":`)
}

// value writes a member with a small value.
func (w *documentWriter) value(name string, v any) {
	w.member(name)
	w.encode(v)
}

// encode writes a value as encoding/json does. Our own types cannot fail.
func (w *documentWriter) encode(v any) {
	w.encoded.Reset()
	if err := w.encoder.Encode(v); err != nil {
		panic("tokenizer: " + err.Error())
	}
	w.bytes(bytes.TrimSuffix(w.encoded.Bytes(), []byte("\n")))
}

// number writes an element of a list.
func (w *documentWriter) number(n uint32) {
	w.element()
	var digits [10]byte
	w.bytes(strconv.AppendUint(digits[:0], uint64(n), 10))
}

// numbers writes a member that is a list.
func (w *documentWriter) numbers(name string, list []uint32) {
	w.member(name)
	w.open("[")
	for _, n := range list {
		w.number(n)
	}
	w.end("]")
}

// scores writes a member that is a list of scores, with null for a missing one. size is their
// number; those after the end of the list are missing too.
func (w *documentWriter) scores(name string, list []float64, size int) {
	w.member(name)
	w.open("[")
	for i := range size {
		w.element()
		if i >= len(list) || math.IsNaN(list[i]) {
			w.raw("null")
		} else {
			w.encode(&list[i])
		}
	}
	w.end("]")
}

// text writes the characters of a string, without the quotes around it.
func (w *documentWriter) text(s string) {
	for s != "" {
		piece := s[:min(len(s), writerPiece)]
		for len(piece) < len(s) && !utf8.RuneStart(s[len(piece)]) {
			piece = piece[:len(piece)-1]
		}
		// the only difference between the two packages
		if i := strings.IndexAny(piece, lineEnds); i >= 0 {
			piece = piece[:i]
		}
		if piece == "" {
			r, width := utf8.DecodeRuneInString(s)
			w.raw(fmt.Sprintf(`\u%04x`, r))
			s = s[width:]
			continue
		}
		w.room(6*len(piece) + 2)
		from := len(w.buf)
		quoted, err := jsontext.AppendQuote(w.buf, piece)
		if err != nil {
			panic("tokenizer: " + err.Error()) // everything that is read is UTF-8
		}
		n := copy(quoted[from:], quoted[from+1:len(quoted)-1])
		w.buf, s = quoted[:from+n], s[len(piece):]
	}
}

// base64 writes bytes as a string.
func (w *documentWriter) base64(data []byte) {
	w.raw(`"`)
	const chunk = writerBuffer / 8 * 3 // a multiple of three: no padding in between
	for len(data) > 0 {
		n := min(len(data), chunk)
		w.room(base64.StdEncoding.EncodedLen(n))
		w.buf = base64.StdEncoding.AppendEncode(w.buf, data[:n])
		data = data[n:]
	}
	w.raw(`"`)
}

// lineEnds are U+2028 and U+2029, which encoding/json escapes.
const lineEnds = "\u2028\u2029"

// quoted writes a string as an element of a list.
func (w *documentWriter) quoted(parts ...string) {
	w.element()
	w.raw(`"`)
	for _, p := range parts {
		w.text(p)
	}
	w.raw(`"`)
}

// tokens writes the member with the spellings by id.
func (w *documentWriter) tokens(lex *lexicon) {
	w.member("vocab")
	w.open("[")
	for id := range uint32(lex.size()) {
		w.quoted(lex.text(id))
	}
	w.end("]")
}

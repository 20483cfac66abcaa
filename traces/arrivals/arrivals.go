package arrivals

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/windrow-sim/windrow/internal/units"
)

// Request is one request to a server of a language model.
type Request struct {
	At     units.Nanos // arrival, since the first request; 0 if the source has no times
	Prompt int         // tokens of the whole context
	Output int         // generated tokens; 0 for a failed request, with Options.KeepFailed
	// tokens of Prompt from earlier turns of the session; 0 if the source does not say
	History int
	Session string // conversation; "" if the source does not say
	Turn    int    // number in the session, from 1; 0 if the source does not say
}

// Limits of what is read.
const (
	// MaxTokens is the largest number of tokens of a request.
	MaxTokens = 1<<31 - 1
	// MaxLine is the longest line in bytes.
	MaxLine = 256 << 10
	// MaxConversation is the longest conversation in bytes of JSON.
	MaxConversation = 64 << 20
	// MaxSort is the largest number of requests that Options.Sort takes. They take up to 1 GiB
	// while the list grows.
	MaxSort = 4 << 20
)

// Format is the layout of a file.
type Format string

// The formats; doc.go describes them.
const (
	Detect    Format = "" // by the first bytes
	Azure2023 Format = "azure-2023"
	Azure2024 Format = "azure-2024"
	BurstGPT  Format = "burstgpt"
	Mooncake  Format = "mooncake"
	Bailian   Format = "bailian"
	Vidur     Format = "vidur"
	ShareGPT  Format = "sharegpt"
)

// Formats lists the names of the formats.
func Formats() []Format {
	return []Format{Azure2023, Azure2024, BurstGPT, Mooncake, Bailian, Vidur, ShareGPT}
}

// ParseFormat returns the format of a name. The error lists the names.
func ParseFormat(name string) (Format, error) {
	if slices.Contains(Formats(), Format(name)) {
		return Format(name), nil
	}
	var names []string
	for _, f := range Formats() {
		names = append(names, string(f))
	}
	return Detect, fmt.Errorf("arrivals: there is no format %q; the formats are %s", name,
		strings.Join(names, ", "))
}

// HasTimes reports whether the format has arrival times.
func (f Format) HasTimes() bool { return f != ShareGPT }

// Options of a Reader. The zero value detects the format and refuses the first bad line.
type Options struct {
	Format Format // Detect finds it
	// sort by time, in memory, at most MaxSort requests; ignored for formats without times
	Sort bool
	// number of bad lines to leave out and count before one is an error; below 0 is 0
	SkipBad int
	// KeepFailed keeps the requests that have a prompt and no output tokens: they failed, after
	// the server computed their prompts.
	KeepFailed bool
	Count      func(text string) int // tokens of a text; needed for ShareGPT and only there
}

// Stats counts the lines so far by their outcome.
type Stats struct {
	Format Format `json:"format"`
	Lines  int64  `json:"lines"` // data lines, or conversations, without the header
	// requests read; with Sort all of them from the first Next on
	Requests int64 `json:"requests"`
	// bad lines that SkipBad tolerated; they are in Skipped too
	Bad int64 `json:"bad"`
	// requests without output tokens that KeepFailed kept; they are in Requests too
	Failed  int64            `json:"failed"`
	Skipped map[Reason]int64 `json:"skipped"` // lines left out, by reason
	// SingleToken is the number of requests with one output token. They have no time per output
	// token, which is a mean over the tokens after the first. Leave them out of it.
	SingleToken int64    `json:"single_token"`
	Ignored     []string `json:"ignored"` // unused columns, or unused keys of the first line
}

// Reason is why a line is bad or left out.
type Reason string

// Reasons for which a line is bad.
const (
	Unsorted   Reason = "unsorted"     // earlier than a line before it
	Negative   Reason = "negative"     // below zero
	NotANumber Reason = "not a number" // NaN, inf, words
	// no number, or an empty line
	Blank     Reason = "blank"
	Exponent  Reason = "exponent"            // 1e3
	Separator Reason = "thousands separator" // 1,000 in quotes, 1_000, 1'000 or 1 000
	Fraction  Reason = "fraction"            // 1.5 tokens
	// beyond MaxTokens, or beyond the range of units.Nanos
	TooLarge  Reason = "too large"
	BadTime   Reason = "time in another layout" // not the format's layout, or no such date
	Fields    Reason = "number of fields"       // another number than the header's
	OpenQuote Reason = "open quote"             // no closing quote, or text after it
	LongLine  Reason = "long line"              // beyond MaxLine
	NotJSON   Reason = "not JSON"               // the line is not a JSON object
	TwiceKey  Reason = "key twice"              // a key that a line has twice
	WrongType Reason = "wrong type"             // of a value in a conversation
)

// Reasons for which a line or a conversation is left out without being bad.
const (
	NoPrompt     Reason = "no prompt tokens"
	NoOutput     Reason = "no output tokens" // the request failed: see Options.KeepFailed
	Empty        Reason = "empty conversation"
	OneTurn      Reason = "one turn"      // a question without an answer
	GPTFirst     Reason = "gpt first"     // an answer without its question
	NullValue    Reason = "null value"    // a message without text
	EmptyMessage Reason = "empty message" // a message of no tokens
	UnknownRole  Reason = "unknown role"  // a message of neither side
	// the last message of a conversation that is otherwise kept
	Unanswered Reason = "unanswered message"
)

// Kinds of errors, for errors.Is. Errors of the operating system keep their own kind.
var (
	// ErrFormat is wrapped by errors about a file that is not a trace of requests, or that has a
	// bad line.
	ErrFormat = errors.New("malformed trace of requests")
	// ErrUnsupported is wrapped by errors about a file that may be valid but that this package
	// cannot read.
	ErrUnsupported = errors.New("unsupported trace of requests")
	// ErrUnknown is wrapped beside ErrFormat by errors about a file that may be of several formats
	// or of none: Options.Format says which it is.
	ErrUnknown = errors.New("unknown format")
)

// LineError is a bad line. It wraps ErrFormat.
type LineError struct {
	File   string
	Unit   string // "line" or "conversation"
	Line   int64  // from 1, the header included
	Field  string // column or key; "" if the whole line is bad
	Value  string // the field's text, shortened
	Reason Reason
	Detail string // details; "" if there are none
	Before int64  // tolerated bad lines before this one
}

// Error says file, line, field, value and reason.
func (e *LineError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "arrivals: %s: %s %d: ", e.File, e.Unit, e.Line)
	if e.Field != "" {
		fmt.Fprintf(&b, "%s %q: ", e.Field, e.Value)
	}
	b.WriteString(string(e.Reason))
	if e.Detail != "" {
		b.WriteString(": " + e.Detail)
	} else if e.Reason == TooLarge {
		b.WriteString(": " + e.limit())
	}
	if e.Before > 0 {
		fmt.Fprintf(&b, "; bad lines before it that were left out: %d", e.Before)
	}
	return b.String() + ": " + ErrFormat.Error()
}

// limit says what the field may hold at most.
func (e *LineError) limit() string {
	for _, f := range Formats() {
		if columnsOf(f).time == e.Field || e.Field == keyTime {
			return fmt.Sprintf("a time is at most %d s", int64(math.MaxInt64/units.Second))
		}
	}
	return fmt.Sprintf("a request has at most %d tokens", int64(MaxTokens))
}

// Unwrap returns ErrFormat.
func (e *LineError) Unwrap() error { return ErrFormat }

// shorten returns the start of a text for a message.
func shorten(b []byte) string {
	const most = 60
	if len(b) > most {
		return string(b[:most]) + "…"
	}
	return string(b)
}

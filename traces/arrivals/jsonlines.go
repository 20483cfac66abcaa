package arrivals

import (
	"bytes"
	"encoding/json"
	"errors"
	"iter"
	"slices"

	"github.com/windrow-sim/windrow/internal/units"
)

// Keys of a line that are read.
const (
	keyTime   = "timestamp"
	keyPrompt = "input_length"
	keyOutput = "output_length"
)

// jsonLines reads files with one JSON object per line.
type jsonLines struct {
	in    *lines
	clock func([]byte) (units.Nanos, Reason)
}

func (j *jsonLines) line() int64 { return j.in.n }

func (j *jsonLines) next(req *Request, stats *Stats) error {
	line, err := j.in.next()
	if err == nil || errors.Is(err, ErrFormat) {
		stats.Lines++
	}
	if err != nil {
		return err
	}
	if bad := j.parse(line, req); bad != nil {
		return bad
	}
	if stats.Lines == 1 {
		stats.Ignored = unusedKeys(line)
	}
	return nil
}

func (j *jsonLines) parse(line []byte, req *Request) *LineError {
	line = bytes.TrimSpace(line)
	if line[0] != '{' || !json.Valid(line) {
		return j.in.bad(NotJSON)
	}
	*req = Request{}
	var at, prompt, output []byte
	for key, value := range members(line) {
		place := &at
		switch string(key) {
		case keyTime:
		case keyPrompt:
			place = &prompt
		case keyOutput:
			place = &output
		default:
			continue
		}
		if *place != nil {
			return j.in.badField(string(key), value, TwiceKey)
		}
		*place = value
	}
	var why Reason
	if req.At, why = j.clock(orBlank(at)); why != "" {
		return j.in.badField(keyTime, at, why)
	}
	if req.Prompt, why = parseCount(orBlank(prompt)); why != "" {
		return j.in.badField(keyPrompt, prompt, why)
	}
	if req.Output, why = parseCount(orBlank(output)); why != "" {
		return j.in.badField(keyOutput, output, why)
	}
	return nil
}

// orBlank returns nothing for null.
func orBlank(value []byte) []byte {
	if string(value) == "null" {
		return nil
	}
	return value
}

// unusedKeys returns the unused keys of a valid line.
func unusedKeys(line []byte) []string {
	var list []string
	for key := range members(bytes.TrimSpace(line)) {
		if name := string(key); !slices.Contains([]string{keyTime, keyPrompt, keyOutput}, name) &&
			!slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	return list
}

// members yields the keys and values of a valid JSON object as they are written. Keys keep their
// escapes; no used key has one.
func members(object []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(key, value []byte) bool) {
		rest := object[1:] // after the brace or a comma
		for {
			open := bytes.IndexByte(rest, '"')
			if open < 0 {
				return
			}
			rest = rest[open:]
			end := stringEnd(rest)
			key := rest[1 : end-1]
			rest = rest[end+bytes.IndexByte(rest[end:], ':')+1:]
			end = valueEnd(rest)
			if !yield(key, bytes.TrimSpace(rest[:end])) {
				return
			}
			if end == len(rest) || rest[end] != ',' {
				return
			}
			rest = rest[end+1:]
		}
	}
}

// stringEnd returns the index after the closing quote of the string that begins valid JSON.
func stringEnd(b []byte) int {
	for i := 1; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(b)
}

// valueEnd returns the index after the value of a member in valid JSON: that of the comma or brace.
func valueEnd(b []byte) int {
	depth := 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			i += stringEnd(b[i:]) - 1
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return i
			}
			depth--
		case ',':
			if depth == 0 {
				return i
			}
		}
	}
	return len(b)
}

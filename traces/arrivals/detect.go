package arrivals

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/windrow-sim/windrow/internal/input"
)

// headBytes is the number of bytes from which the format is detected.
const headBytes = 64 << 10

// foreign returns an error for files of well-known other kinds, whatever the chosen format.
func foreign(name string, head []byte) error {
	if len(head) == 0 {
		return fmt.Errorf("the file is empty: %w", ErrFormat)
	}
	head = head[:min(len(head), input.HeadBytes)]
	if err := input.ForeignText(name, head, input.Rows); err != nil {
		return fmt.Errorf("%w: %w", err, ErrUnsupported)
	}
	if bytes.IndexByte(head, 0) >= 0 {
		return fmt.Errorf("the file is not text; write its rows as CSV: %w", ErrUnsupported)
	}
	return nil
}

// detect returns the format of a file from its first bytes.
func detect(head []byte) (Format, error) {
	switch start := bytes.TrimLeft(head, " \t\r\n"); {
	case bytes.HasPrefix(start, []byte("{")):
		return detectJSON(start)
	case bytes.HasPrefix(start, []byte("[")):
		return ShareGPT, nil
	}
	line, rest, _ := bytes.Cut(head, []byte("\n"))
	names, _ := split(bytes.TrimSuffix(line, []byte("\r")), nil)
	has := func(want string) bool {
		for _, name := range names {
			if string(name) == want {
				return true
			}
		}
		return false
	}
	switch {
	case has("TIMESTAMP") && has("ContextTokens"):
		return azure(rest), nil
	case has("Request tokens") && has("Response tokens"):
		return BurstGPT, nil
	case has("num_prefill_tokens") && !has("arrived_at"):
		return Detect, fmt.Errorf("line 1: the file has lengths of requests and no arrivals, "+
			"since there is no column arrived_at; the columns are %s: %w", listed(names),
			ErrFormat)
	case has("num_prefill_tokens"):
		return Vidur, nil
	}
	if len(names) > 1 {
		var known []string
		for _, f := range []Format{Azure2023, BurstGPT, Vidur} {
			c := columnsOf(f)
			known = append(known, fmt.Sprintf("%s has %s, %s and %s", f, c.time, c.prompt,
				c.output))
		}
		return Detect, fmt.Errorf("line 1: the columns %s are not those of a known trace of "+
			"requests (%s); a CSV needs its header: %w: %w", listed(names),
			strings.Join(known, "; "), ErrUnknown, ErrFormat)
	}
	return Detect, fmt.Errorf("line 1: %q is not the beginning of a known trace of requests; a "+
		"CSV needs its header: %w", shorten(line), ErrFormat)
}

// listed lists names of columns or keys for a message, the first of many.
func listed[S ~string | ~[]byte](names []S) string {
	const most = 20
	var list []string
	for _, name := range names[:min(len(names), most)] {
		list = append(list, strconv.Quote(shorten([]byte(name))))
	}
	if more := len(names) - most; more > 0 {
		list = append(list, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(list, ", ")
}

// Keys of the lines of a trace, besides those that are read.
var (
	mooncakeKeys = []string{keyTime, keyPrompt, keyOutput, "hash_ids"}
	bailianKeys  = append([]string{"chat_id", "parent_chat_id", "type", "turn"}, mooncakeKeys...)
)

// detectJSON distinguishes the traces with one JSON object per line by their keys. Two have the
// same keys for times in different units, so that a file with other keys than theirs is refused:
// its times may be in either. So are Mooncake's keys with times that are no whole milliseconds.
func detectJSON(head []byte) (Format, error) {
	var keys []string
	for n := 1; len(head) > 0; n++ {
		var line []byte
		line, head, _ = bytes.Cut(head, []byte("\n"))
		found, at := firstKeys(line)
		if n == 1 {
			keys = found
		}
		_, fraction, _ := strings.Cut(at, ".")
		if among(keys, mooncakeKeys) && strings.Trim(fraction, "0") != "" {
			return Detect, fmt.Errorf("line %d: %s %s is no whole number of milliseconds, as "+
				"those of %s are; the times may be in seconds, as those of %s are: %w: %w", n,
				keyTime, at, Mooncake, Bailian, ErrUnknown, ErrFormat)
		}
	}
	switch {
	case among(keys, mooncakeKeys): // or no key at all, which line 1 is refused for
		return Mooncake, nil
	case among(keys, bailianKeys):
		return Bailian, nil
	}
	return Detect, fmt.Errorf("line 1: the keys %s are not those of a known trace of requests, so "+
		"that the unit of its times is not known (%s has %s, in milliseconds; %s has %s, in "+
		"seconds): %w: %w", listed(keys), Mooncake, listed(mooncakeKeys), Bailian,
		listed(bailianKeys), ErrUnknown, ErrFormat)
}

// firstKeys returns the keys of a line as far as it is JSON, and the text of its time.
func firstKeys(line []byte) (keys []string, at string) {
	dec := json.NewDecoder(bytes.NewReader(line))
	if token, err := dec.Token(); err != nil || token != json.Delim('{') {
		return nil, ""
	}
	for dec.More() {
		key, err := dec.Token()
		name, ok := key.(string)
		var value json.RawMessage
		if err != nil || !ok {
			break
		}
		keys = append(keys, name)
		if dec.Decode(&value) != nil {
			break
		}
		if name == keyTime {
			at = string(value)
		}
	}
	return keys, at
}

// among reports whether all names are known.
func among(names, known []string) bool {
	return !slices.ContainsFunc(names, func(name string) bool {
		return !slices.Contains(known, name)
	})
}

// azure distinguishes the two traces of Azure, whose headers are equal, by the first readable time.
func azure(rows []byte) Format {
	for len(rows) > 0 {
		var row []byte
		row, rows, _ = bytes.Cut(rows, []byte("\n"))
		fields, _ := split(bytes.TrimSuffix(row, []byte("\r")), nil)
		for _, field := range fields {
			if _, why := parseStamp(field, true); why == "" {
				return Azure2024
			}
			if _, why := parseStamp(field, false); why == "" {
				return Azure2023
			}
		}
	}
	return Azure2023
}

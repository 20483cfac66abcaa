package arrivals

import (
	"bytes"
	"fmt"

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
		return Mooncake, nil
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
			"since there is no column arrived_at: %w", ErrFormat)
	case has("num_prefill_tokens"):
		return Vidur, nil
	}
	return Detect, fmt.Errorf("line 1: %q is not the beginning of a known trace of requests; a "+
		"CSV needs its header: %w", shorten(line), ErrFormat)
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

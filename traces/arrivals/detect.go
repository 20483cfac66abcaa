package arrivals

import (
	"bytes"
	"fmt"
)

// headBytes is the number of bytes from which the format is detected.
const headBytes = 64 << 10

// byteOrderMark returns the length of the mark that some programs put before UTF-8.
func byteOrderMark(head []byte) int {
	if bytes.HasPrefix(head, []byte("\xef\xbb\xbf")) {
		return 3
	}
	return 0
}

// foreign returns an error for files of well-known other kinds, whatever the chosen format.
func foreign(head []byte) error {
	switch {
	case len(head) == 0:
		return fmt.Errorf("the file is empty: %w", ErrFormat)
	case bytes.HasPrefix(head, []byte("version https://git-lfs.")):
		return fmt.Errorf("this is a Git LFS pointer, not the trace; run git lfs pull: %w",
			ErrFormat)
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		return fmt.Errorf("the file is compressed; run gunzip on it first: %w", ErrUnsupported)
	case bytes.HasPrefix(head, []byte("PK\x03\x04")):
		return fmt.Errorf("the file is an archive; unpack it first: %w", ErrUnsupported)
	case bytes.HasPrefix(head, []byte{0xff, 0xfe}), bytes.HasPrefix(head, []byte{0xfe, 0xff}):
		return fmt.Errorf("the file is UTF-16; convert it to UTF-8 first: %w", ErrUnsupported)
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

package flashio

import (
	"os"
	"strconv"
	"strings"
)

// ProcessReadBytes returns the bytes that this process has made the system read from storage since
// it started, without reads from the page cache (read_bytes of /proc/self/io). Two calls around a
// measurement show whether its reads reached the device. ok is false where the system has no such
// counter.
func ProcessReadBytes() (n int64, ok bool) {
	text, err := os.ReadFile("/proc/self/io")
	if err != nil {
		return 0, false
	}
	return parseReadBytes(string(text))
}

func parseReadBytes(text string) (int64, bool) {
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, "read_bytes:"); ok {
			n, err := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}

package fio

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/windrow-sim/windrow/internal/bounds"
	"github.com/windrow-sim/windrow/internal/input"
)

// numberRange is that of all numbers which are read: counts, bytes, rates and times.
var numberRange = bounds.Range[float64]{Least: 0, Most: maxCount,
	Why: "beyond that they are not exact, and no job has as much"}

// numberKeys are the keys whose numbers are read. "error" may be negative. "min" is not read: fio
// writes the largest integer for one that it did not measure.
var numberKeys = []string{"io_bytes", "io_kbytes", "bw_bytes", "bw", "iops", "runtime", "total_ios",
	"short_ios", "drop_ios", "mean", "N", "timestamp", "elapsed", "groupid", "bw_mean", "bw_dev",
	"bw_samples", "job_start", "total_err"}

// mostOdd bounds the numbers that oddNumbers lists.
const mostOdd = 20

// oddNumbers lists the numbers of the objects found that are read and are in no range, by line and
// path. They count as absent.
func oddNumbers(f *findings) (list []string) {
	line, before := 1, 0
	for _, at := range f.at {
		line += bytes.Count(f.data[before:at.start], []byte("\n"))
		before = at.start
		text := f.data[at.start:at.end]
		if clean := withoutNaN(text); clean != nil {
			text = clean
		}
		list = append(list, oddIn(text, line)...)
		if len(list) >= mostOdd {
			return list[:mostOdd]
		}
	}
	return list
}

// oddIn lists those of one JSON object. line is that of its first byte.
func oddIn(data []byte, line int) (list []string) {
	dec := jsontext.NewDecoder(bytes.NewReader(data), jsontext.AllowDuplicateNames(true),
		jsontext.AllowInvalidUTF8(true))
	for {
		token, err := dec.ReadToken()
		if err != nil || dec.StackDepth() == 0 {
			return list
		}
		if kind := token.Kind(); kind != '0' && kind != '"' || len(list) == mostOdd {
			continue
		}
		text := token.String()
		v, err := strconv.ParseFloat(text, 64)
		if err == nil && numberRange.Has(v) || err != nil &&
			strings.Trim(text, "0123456789.eE+-") != "" {
			continue
		}
		if path := dec.StackPointer(); text != "" && isRead(path) {
			list = append(list, fmt.Sprintf("line %d: %s: %s %s; it is left out",
				line-1+input.LineAt(data, dec.InputOffset()), input.Dotted(path), text,
				numberRange.Refuse(v)))
		}
	}
}

// isRead reports whether the number at a place is read.
func isRead(at jsontext.Pointer) bool {
	parent := at.Parent().LastToken()
	return slices.Contains(numberKeys, at.LastToken()) || parent == "percentile" || parent == "bins"
}

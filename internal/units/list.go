package units

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// maxRange is the largest number of values in a list, so that a mistyped range cannot exhaust the
// memory.
const maxRange = 1 << 16

// maxInt is the largest value in a list. Beyond it sums of two would overflow on some machine.
const maxInt = math.MaxInt32 / 2

// ParseInts reads a list of integers and ranges: "4", "1,2,8", "0..16", "0..4,8,16". A range
// includes both ends. "1..64/3" is every third number from 1. The values ascend.
func ParseInts(text string) ([]int, error) {
	var list []int
	for word := range strings.SplitSeq(text, ",") {
		word = strings.TrimSpace(word)
		from, rest, ranged := strings.Cut(word, "..")
		to, step, stepped := strings.Cut(rest, "/")
		if !ranged {
			to, step = from, "1"
		} else if !stepped {
			step = "1"
		}
		var n [3]int
		for i, s := range []string{from, to, step} {
			v, err := strconv.Atoi(strings.TrimSpace(s))
			if err != nil || v < 0 {
				return nil, fmt.Errorf("units: %q is neither a number nor a range like 1..64 or "+
					"1..64/3", word)
			}
			n[i] = v
		}
		switch {
		case n[2] < 1:
			return nil, fmt.Errorf("units: %q: the step must be 1 or more", word)
		case n[0] > n[1]:
			return nil, fmt.Errorf("units: %q: the range ends before it begins", word)
		case len(list) > 0 && n[0] <= list[len(list)-1]:
			return nil, fmt.Errorf("units: %q: the numbers of %q must ascend", word, text)
		case (n[1]-n[0])/n[2] >= maxRange-len(list):
			return nil, fmt.Errorf("units: %q has more than %d numbers", text, maxRange)
		case n[1] > maxInt || n[2] > maxInt:
			return nil, fmt.Errorf("units: %q: the numbers are at most %d", word, maxInt)
		}
		for v := n[0]; v <= n[1]; v += n[2] {
			list = append(list, v)
		}
	}
	return list, nil
}

// ParseInterval reads a number or an interval, "20" or "20..40"; a number is both ends.
func ParseInterval(text string) (low, high float64, err error) {
	first, last, two := strings.Cut(text, "..")
	if !two {
		last = first
	}
	low, lowErr := strconv.ParseFloat(first, 64)
	high, highErr := strconv.ParseFloat(last, 64)
	if lowErr != nil || highErr != nil {
		return 0, 0, fmt.Errorf("units: %q is neither N nor LOW..HIGH", text)
	}
	return low, high, nil
}

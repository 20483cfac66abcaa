package fio

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/windrow-sim/windrow/internal/units"
)

// options are the options of a job as fio lists them: those of the job over those of [global].
// Options that take no value, such as stonewall and group_reporting, are not listed.
type options map[string]string

// aliases are other names of the options used here.
var aliases = map[string]string{"blocksize": "bs", "readwrite": "rw", "blocksize_range": "bsrange",
	"blocksize_split": "bssplit"}

// merged returns the options of a job over the global ones.
func merged(global, job map[string]text) options {
	all := make(options, len(global)+len(job))
	for _, list := range []map[string]text{global, job} {
		for name, value := range list {
			if short, ok := aliases[name]; ok {
				name = short
			}
			all[name] = strings.TrimSpace(string(value))
		}
	}
	return all
}

// has reports whether one of the options is given, even with an unreadable value.
func (o options) has(names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool { _, ok := o[name]; return ok })
}

// flag reads a boolean option; nil when it is absent or not a boolean.
func (o options) flag(name string) *bool {
	switch o[name] {
	case "1":
		return ptr(true)
	case "0":
		return ptr(false)
	}
	return nil
}

// count reads a number of at least 1; nil when it is absent or not such a number.
func (o options) count(name string) *int {
	v, ok := size(o[name], o.kilo())
	if !ok || v < 1 || v > maxInFlight {
		return nil
	}
	return ptr(int(v))
}

// maxInFlight bounds iodepth and numjobs far above the limits of fio, so that their products fit.
const maxInFlight = 1 << 20

// kilo is the factor of "k".
func (o options) kilo() uint64 {
	if o["kb_base"] == "1000" {
		return 1000
	}
	return 1024
}

// defaultBlock is fio's default block size.
const defaultBlock = 4 * units.KiB

// block returns the size of the job's requests in a direction. mean is the measured number of bytes
// per request, 0 when unknown. It decides where fio and its documentation disagree. The warning is
// the reason for a nil or doubtful size.
func (o options) block(direction string, mean float64) (b *units.Bytes, warning string) {
	for _, name := range []string{"bsrange", "bssplit"} {
		if v := o[name]; v != "" {
			return nil, fmt.Sprintf("%s=%s: the job has no one block size", name, v)
		}
	}
	given, ok := o["bs"]
	if !ok {
		return nil, ""
	}
	if given == "" {
		return nil, "bs is no size"
	}
	// of reads, writes, trims; the last one also holds for the directions without one
	parts := strings.Split(given, ",")
	part := parts[min(max(slices.Index([]string{"read", "write", "trim"}, direction), 0),
		len(parts)-1)]
	if part == "" {
		return ptr(defaultBlock), ""
	}
	if strings.Contains(part, "-") {
		return nil, fmt.Sprintf("bs=%s: the job has no one block size", given)
	}
	v, ok := size(part, o.kilo())
	if !ok || v < 1 || v > math.MaxInt64 {
		return nil, fmt.Sprintf("bs=%s is no size", given)
	}
	if !strings.HasSuffix(strings.ToLower(part), "i") {
		return ptr(units.Bytes(v)), ""
	}
	// The documentation says that "1mi" is 1,000,000, the value used without a measurement. fio
	// 3.33 reads it as "1m".
	documented, ok := size(part+"b", o.kilo())
	if !ok || documented < 1 || documented > math.MaxInt64 {
		return nil, fmt.Sprintf("bs=%s is no size", given)
	}
	if near(mean, float64(v)) {
		return ptr(units.Bytes(v)), fmt.Sprintf("bs=%s is taken as %d bytes, which is what the "+
			"requests had; fio's documentation says %d", given, v, documented)
	}
	return ptr(units.Bytes(documented)),
		fmt.Sprintf("bs=%s is taken as %d bytes, as fio's documentation has it", given, documented)
}

// size reads a number with a suffix by fio's rule: k, m, g, t, p and kb, mb, … multiply by powers
// of kilo, which is 1024 unless kb_base is 1000; kib, mib, … by powers of the other of the two.
// What follows a known suffix is ignored, as fio does. Source: HOWTO of fio, "kb_base"; checked
// with fio 3.33.
func size(s string, kilo uint64) (v uint64, ok bool) {
	s = strings.ToLower(strings.TrimSpace(s))
	base, digits := 10, "0123456789"
	if hex, found := strings.CutPrefix(s, "0x"); found {
		s, base, digits = hex, 16, "0123456789abcdef"
	}
	number := s[:len(s)-len(strings.TrimLeft(s, digits))]
	suffix := s[len(number):]
	v, err := strconv.ParseUint(number, base, 64)
	if err != nil {
		return 0, false
	}
	if suffix == "" || suffix[0] == 'b' || base == 16 { // "0x1k" is 1, checked with fio 3.42
		return v, true
	}
	power := strings.IndexByte("kmgtp", suffix[0]) + 1
	if power == 0 {
		return 0, false
	}
	if strings.HasPrefix(suffix[1:], "ib") {
		kilo = 1024 + 1000 - kilo
	}
	for range power {
		hi, lo := bits.Mul64(v, kilo)
		if hi != 0 {
			return 0, false
		}
		v = lo
	}
	return v, true
}

// near reports whether a measured number is within 1 % of the expected one; false when it is
// unknown (0).
func near(measured, want float64) bool { return math.Abs(measured-want) <= 0.01*want }

func ptr[T any](v T) *T { return &v }

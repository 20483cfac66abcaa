package adaptive

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/windrow-sim/windrow/internal/units"
)

// ErrSchedule marks a budget over time that cannot be read.
var ErrSchedule = errors.New("adaptive: not a budget over time")

// Change is a budget from a token or a time on.
type Change struct {
	From   int64       `json:"from"` // index of a token of the trace, or nanoseconds
	Budget units.Bytes `json:"budget_bytes"`
}

// Schedule is a budget of all memory that changes over time. It holds from the first token that
// begins at or after a change.
type Schedule struct {
	ByTime  bool     `json:"by_time"` // From is nanoseconds since the first token
	Changes []Change `json:"changes"` // ascending, the first from 0 on
}

// maxChanges and maxLine bound the input.
const maxChanges, maxLine = 1 << 14, 1 << 12

// Parse reads "SIZE", or "FROM:SIZE,FROM:SIZE,…" where FROM ascends from 0: bare numbers are tokens
// of the trace (0:6GiB,40:3GiB), times have a unit (0s:6GiB,2.5s:3GiB). A SIZE may be a share of
// whole, the model's weights: 60%. Errors wrap ErrSchedule.
func Parse(text string, whole units.Bytes) (*Schedule, error) {
	var s Schedule
	if !strings.Contains(text, ":") {
		text = "0:" + text
	}
	for _, part := range strings.Split(text, ",") {
		from, size, ok := strings.Cut(strings.TrimSpace(part), ":")
		if !ok {
			return nil, fmt.Errorf("%w: %q is not FROM:SIZE, such as 40:3GiB or 2.5s:60%%",
				ErrSchedule, part)
		}
		if err := s.add(from, size, whole); err != nil {
			return nil, err
		}
	}
	return &s, nil
}

// MaxFile is the size limit of a file of lines FROM,SIZE.
const MaxFile = 16 * units.MiB

// ParseCSV reads a file of lines "FROM,SIZE", with FROM and SIZE as for Parse. A first line
// "from,budget", empty lines and lines that start with # are skipped. Errors wrap ErrSchedule and
// name the line.
func ParseCSV(r io.Reader, whole units.Bytes) (*Schedule, error) {
	var s Schedule
	scan := bufio.NewScanner(r)
	scan.Buffer(nil, maxLine)
	for n := 1; scan.Scan(); n++ {
		line := strings.TrimSpace(scan.Text())
		if line == "" || strings.HasPrefix(line, "#") || n == 1 && line == "from,budget" {
			continue
		}
		from, size, ok := strings.Cut(line, ",")
		if !ok {
			return nil, fmt.Errorf("%w: line %d: %.40q is not FROM,SIZE", ErrSchedule, n, line)
		}
		if err := s.add(strings.TrimSpace(from), strings.TrimSpace(size), whole); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
	}
	if err := scan.Err(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSchedule, err)
	}
	if len(s.Changes) == 0 {
		return nil, fmt.Errorf("%w: it has no line FROM,SIZE", ErrSchedule)
	}
	return &s, nil
}

// add appends a change.
func (s *Schedule) add(from, size string, whole units.Bytes) error {
	c, byTime, err := Change{}, false, error(nil)
	if c.From, err = strconv.ParseInt(from, 10, 32); err != nil {
		var at units.Nanos
		if at, err = units.ParseNanos(from); err != nil {
			return fmt.Errorf("%w: %.40q is neither the number of a token nor a time with a unit",
				ErrSchedule, from)
		}
		c.From, byTime = int64(at), true
	}
	if c.Budget, err = sizeOf(size, whole); err != nil {
		return err
	}
	first := len(s.Changes) == 0
	switch {
	case len(s.Changes) == maxChanges:
		return fmt.Errorf("%w: more than %d changes", ErrSchedule, maxChanges)
	case first && c.From != 0:
		return fmt.Errorf("%w: it begins at %s; the first budget must begin at 0", ErrSchedule,
			from)
	case !first && byTime != s.ByTime:
		return fmt.Errorf("%w: tokens and times are mixed at %s; a time needs a unit, also 0s",
			ErrSchedule, from)
	case !first && c.From <= s.Changes[len(s.Changes)-1].From:
		return fmt.Errorf("%w: %s does not come after the change before it", ErrSchedule, from)
	}
	s.ByTime = byTime
	s.Changes = append(s.Changes, c)
	return nil
}

// sizeOf reads a size or a share of the weights.
func sizeOf(text string, whole units.Bytes) (units.Bytes, error) {
	if share, ok := strings.CutSuffix(text, "%"); ok {
		if v, err := strconv.ParseFloat(share, 64); err == nil && v > 0 && v <= 1000 {
			return units.Bytes(math.Round(v / 100 * float64(whole))), nil
		}
	} else if b, err := units.ParseBytes(text); err == nil && b > 0 {
		return b, nil
	}
	return 0, fmt.Errorf("%w: %.40q is neither a size like 6GiB nor a share like 52%%", ErrSchedule,
		text)
}

// phase is the index of the change in force when a token begins.
func (s *Schedule) phase(token int, now units.Nanos) int {
	at := int64(token)
	if s.ByTime {
		at = int64(now)
	}
	next, found := slices.BinarySearchFunc(s.Changes, at, func(c Change, at int64) int {
		return cmp.Compare(c.From, at)
	})
	if !found {
		next-- // the first change is at 0
	}
	return next
}

package flash

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/windrow-sim/windrow/internal/units"
)

// Histogram counts durations in log-linear bins, as fio does: every power of two is cut into
// subBins equal parts, so that a bin is at most 1/16 as wide as its lower edge. The zero value is
// empty and ready. It prints as "52us:310 56us:1201 …", lower edges and counts.
type Histogram struct {
	counts []int64 // by bin, up to the last that is not empty
	total  int64
}

const (
	subBits = 4
	subBins = 1 << subBits
	// longest is the largest duration with a bin of its own: 146 years.
	longest = 1<<62 - 1
	maxBins = 64 * subBins
)

// binOf returns the bin of a duration.
func binOf(t units.Nanos) int {
	v := uint64(min(max(t, 0), longest))
	if v < subBins {
		return int(v)
	}
	octave := bits.Len64(v) - 1 - subBits // 0 for [16, 32)
	return (octave+1)*subBins + int(v>>octave) - subBins
}

// edge is the smallest duration of a bin.
func edge(bin int) units.Nanos {
	if bin < subBins {
		return units.Nanos(bin)
	}
	octave := bin/subBins - 1
	return units.Nanos(subBins+bin%subBins) << octave
}

// Add counts a duration n times. Durations below 0 count as 0, and n below 1 is ignored.
func (h *Histogram) Add(t units.Nanos, n int64) {
	if n < 1 {
		return
	}
	bin := binOf(t)
	if bin >= len(h.counts) {
		h.counts = append(h.counts, make([]int64, bin+1-len(h.counts))...)
	}
	h.counts[bin] += n
	h.total += n
}

// Total is the number of counted durations.
func (h *Histogram) Total() int64 { return h.total }

// middle represents all durations of a bin.
func middle(bin int) float64 { return float64(edge(bin)+edge(bin+1)-1) / 2 }

// All yields the middle of every bin that is not empty, with its count, in order.
func (h *Histogram) All() iter.Seq2[units.Nanos, int64] {
	return func(yield func(units.Nanos, int64) bool) {
		for bin, n := range h.counts {
			if n > 0 && !yield(units.Nanos(middle(bin)), n) {
				return
			}
		}
	}
}

// Moments returns the mean in nanoseconds and the squared coefficient of variation; 0, 0 when
// empty.
func (h *Histogram) Moments() (mean, cv2 float64) {
	if h.total == 0 {
		return 0, 0
	}
	var sum, squares float64
	for bin, n := range h.counts {
		sum += float64(n) * middle(bin)
		squares += float64(n) * middle(bin) * middle(bin)
	}
	mean = sum / float64(h.total)
	if mean == 0 {
		return 0, 0
	}
	return mean, max(squares/float64(h.total)/mean/mean-1, 0)
}

// Quantile returns the duration that the share q of the counted durations are below, interpolated
// inside its bin; 0 when empty.
func (h *Histogram) Quantile(q float64) units.Nanos {
	if h.total == 0 {
		return 0
	}
	rank := min(max(q, 0), 1) * float64(h.total)
	for bin, n := range h.counts {
		if n > 0 && rank <= float64(n) {
			low, high := edge(bin), edge(bin+1)
			return low + units.Nanos(float64(high-low)*rank/float64(n))
		}
		rank -= float64(n)
	}
	return edge(len(h.counts))
}

// Clone returns an independent copy.
func (h Histogram) Clone() Histogram { return Histogram{slices.Clone(h.counts), h.total} }

// Equal reports whether both have the same counts.
func (h Histogram) Equal(other Histogram) bool { return slices.Equal(h.counts, other.counts) }

// IsZero tells the encoders to leave an empty histogram out.
func (h Histogram) IsZero() bool { return h.total == 0 }

// String is the text form.
func (h Histogram) String() string {
	var b strings.Builder
	for bin, n := range h.counts {
		if n > 0 {
			if b.Len() > 0 {
				b.WriteByte(' ')
			}
			text, _ := edge(bin).MarshalText() // cannot fail
			b.Write(text)
			b.WriteByte(':')
			b.WriteString(strconv.FormatInt(n, 10))
		}
	}
	return b.String()
}

// MarshalText implements encoding.TextMarshaler, for YAML.
func (h Histogram) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (h *Histogram) UnmarshalText(text []byte) error {
	var out Histogram
	for pair := range strings.FieldsSeq(string(text)) {
		at, count, ok := strings.Cut(pair, ":")
		t, err := units.ParseNanos(at)
		n, errCount := strconv.ParseInt(count, 10, 64)
		if !ok || err != nil || errCount != nil || t < 0 || n < 1 || n > math.MaxInt64/maxBins {
			return fmt.Errorf("histogram: %q is not a duration and a count like 52us:310", pair)
		}
		out.Add(t, n)
		if out.total < 0 {
			return errors.New("histogram: the counts add up to more than fits")
		}
	}
	*h = out
	return nil
}

// MarshalJSON writes the text form.
func (h Histogram) MarshalJSON() ([]byte, error) { return json.Marshal(h.String()) }

// UnmarshalJSON reads it.
func (h *Histogram) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return fmt.Errorf("histogram: %w", err)
	}
	return h.UnmarshalText([]byte(text))
}

// sampler draws durations of a histogram's shape with a given mean.
type sampler struct {
	below []float64 // share of the durations below the end of each bin that is not empty
	low   []float64 // ns, scaled
	width []float64
}

// newSampler returns a sampler whose draws have the given mean in nanoseconds.
func newSampler(h *Histogram, mean float64) *sampler {
	own, _ := h.Moments()
	if own == 0 {
		return nil
	}
	scale := mean / own
	s := &sampler{}
	done := int64(0)
	for bin, n := range h.counts {
		if n == 0 {
			continue
		}
		done += n
		s.below = append(s.below, float64(done)/float64(h.total))
		s.low = append(s.low, scale*float64(edge(bin)))
		s.width = append(s.width, scale*float64(edge(bin+1)-1-edge(bin)))
	}
	return s
}

// at returns the quantile u in [0, 1).
func (s *sampler) at(u float64) units.Nanos {
	i, _ := slices.BinarySearch(s.below, u)
	i = min(i, len(s.below)-1)
	before := 0.0
	if i > 0 {
		before = s.below[i-1]
	}
	inside := min(max((u-before)/(s.below[i]-before), 0), 1)
	return units.Nanos(math.Round(s.low[i] + s.width[i]*inside))
}

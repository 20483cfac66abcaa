package report

import (
	"fmt"

	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/traces"
)

// Sanity is the calculation that people do in their heads, gigabytes per token over gigabytes per
// second, beside what the Run says after its warm-up. It bounds a run from below: reads are not
// faster than the device, and everything else comes on top.
type Sanity struct {
	Run           string     `json:"run"`
	BytesPerToken float64    `json:"flash_bytes_per_token"`
	Rate          units.Rate `json:"-"`
	RateBytesPerS int64      `json:"flash_rate_bytes_per_s"`
	NanosPerToken float64    `json:"back_of_envelope_ns_per_token"`
	IONanos       float64    `json:"io_ns_per_token"` // what the Run says
	TokensPerS    float64    `json:"tokens_per_s"`    // what the Run says
	Bound         bool       `json:"bound"`           // the Run's rate is one from above
}

func (d *Data) sanity(runs []series) []Sanity {
	out := []Sanity{}
	if d.FlashRate <= 0 {
		return out
	}
	for i := range runs {
		t := sum(runs[i].tokens[d.warmUp(&runs[i]):], 0)
		s := Sanity{Run: runs[i].name(), Rate: d.FlashRate, RateBytesPerS: int64(d.FlashRate)}
		s.BytesPerToken = t.perToken(float64(t.bytes))
		s.NanosPerToken = s.BytesPerToken / float64(d.FlashRate) * 1e9
		s.IONanos = t.perToken(float64(t.parts[traces.PartIO]))
		// its rows hold only what compute waited for
		if ahead := runs[i].run.Meta.Prefetches; ahead != nil {
			s.IONanos += float64(ahead.Hidden) / float64(len(runs[i].tokens))
		}
		if t.wall > 0 {
			s.TokensPerS = t.rate()
			s.Bound = runs[i].estimate(s.TokensPerS).Bound
		}
		out = append(out, s)
	}
	return out
}

func (s *Sanity) line() string {
	if s.BytesPerToken == 0 {
		return fmt.Sprintf("%s: nothing is read from flash.", s.Run)
	}
	least, most := "", ""
	if s.Bound {
		least, most = "at least ", "at most "
	}
	return fmt.Sprintf("%s: %s GB/token / %s GB/s = %s ms of reading per token by hand, %s ms "+
		"in the run; at most %s tokens/s by hand, %s in the run.",
		s.Run, Sig3(s.BytesPerToken/1e9), Sig3(float64(s.Rate)/1e9), ms(s.NanosPerToken),
		least+ms(s.IONanos), Sig3(1e9/s.NanosPerToken), most+Sig3(s.TokensPerS))
}

// warning is for reads that were faster than the device: a page cache, or a device model that is
// not of this device. One percent is left for the rounding of published rates.
func (s *Sanity) warning() string {
	if s.IONanos >= 0.99*s.NanosPerToken {
		return ""
	}
	return fmt.Sprintf("%s: reads at %s, which is more than the %s of the device: was the page "+
		"cache cold, is this its device model?",
		s.Run, SI(s.BytesPerToken/s.IONanos*1e9, "B/s"), SI(float64(s.Rate), "B/s"))
}

package fio

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/windrow-sim/windrow/internal/units"
)

// Log holds the reads of one job as a log of fio (write_bw_log) has them.
type Log struct {
	Plateaus []Plateau // one or more, in the order of time
}

// Plateau is a part of a job with one rate: those before and after it differ by more than noise.
type Plateau struct {
	From, To units.Nanos // since the job began
	Rate     units.Rate  // mean
}

// Falls returns the first plateau after which the rate is lower, and the one after it.
func (l *Log) Falls() (before, after Plateau, falls bool) {
	for i := 1; i < len(l.Plateaus); i++ {
		if l.Plateaus[i].Rate < l.Plateaus[i-1].Rate {
			return l.Plateaus[i-1], l.Plateaus[i], true
		}
	}
	return Plateau{}, Plateau{}, false
}

// A row is "time in ms, value, direction, block size", since fio 3 with the offset and more behind
// it. In an averaged log (log_avg_msec) a row is the mean of the time since the row before; its
// block size is 0 since fio 3. In any other log a row is one request, and its value is that of this
// request alone.
var logRow = regexp.MustCompile(`^\s*\d+,\s*\d+,\s*[0-9],\s*\d+\s*(,[\s0-9a-fx,]*)?$`)

const (
	maxWindows  = 512
	maxPlateaus = 8
	readsOfLog  = 0 // direction of a row
)

// logName finds what a log is of in its name: "x_bw.1.log".
var logName = regexp.MustCompile(`_(bw|iops|lat|clat|slat)(\.\d+)?\.log`)

// readLog reads a log of fio.
func readLog(f *File, data []byte) (mine bool, err error) {
	if !logRow.Match(firstLine(data)) {
		return false, nil
	}
	kind := logName.FindStringSubmatch(filepath.Base(f.Name))
	if kind == nil {
		return true, errors.New("is a log of fio whose name does not say of what; name it as fio " +
			"does, for example x_bw.1.log")
	}
	s, err := surveyLog(data)
	if err != nil {
		return true, err
	}
	averaged := !s.sized || kind[1] == "bw" && s.averagedOfFio2()
	if averaged && kind[1] != "bw" {
		return true, fmt.Errorf("is an averaged log (%s), which has no bytes; give the bandwidth "+
			"log: write_bw_log=NAME", kind[1])
	}
	if averaged && s.jumbled {
		return true, errors.New("holds rows of several jobs, which cannot be told apart; run fio " +
			"with per_job_logs=1")
	}
	rates, start, step := s.windows(data, averaged)
	f.Log = &Log{}
	for _, part := range plateaus(rates) {
		f.Log.Plateaus = append(f.Log.Plateaus, Plateau{From: start + units.Nanos(part.from)*step,
			To: start + units.Nanos(part.to)*step, Rate: units.Rate(math.Round(part.mean))})
	}
	if before, after, falls := f.Log.Falls(); falls {
		f.warn("the rate fell from %v to %v after %v: a measurement that goes on beyond it is a "+
			"mean of both; flash.sustained of a device file says so (cliff: %v, factor: %.3g)",
			before.Rate, after.Rate, before.To, before.To,
			float64(after.Rate)/float64(before.Rate))
	}
	return true, nil
}

// survey sums up the reads of a log, in a first pass.
type survey struct {
	rows        int
	first, last float64 // ms
	bytes       float64 // sum of the block sizes
	asRates     float64 // sum of the values as KiB/s over the time since the row before
	sized       bool    // every row has a block size
	jumbled     bool    // rows of an averaged log that are not one after the other
}

// averagedOfFio2 reports an averaged log of rates whose rows have a block size: they are far apart,
// and stand for more than one request each.
func (s *survey) averagedOfFio2() bool {
	const apart = 50 // ms
	return s.last-s.first >= apart*float64(s.rows-1) && s.asRates > 1.5*s.bytes
}

// eachRead calls do for every read of a log.
func eachRead(data []byte, do func(ms, value, block float64)) error {
	number := 0
	for raw := range bytes.Lines(data) {
		number++
		raw = bytes.TrimSpace(raw)
		if len(raw) == 0 {
			continue
		}
		var v [4]float64
		rest := string(raw[:min(len(raw), 200)])
		for i := range v {
			field, tail, _ := strings.Cut(rest, ",")
			n, err := strconv.ParseUint(strings.TrimSpace(field), 10, 63)
			if err != nil || n > maxCount {
				return fmt.Errorf("line %d of the log is %s, not \"time, value, direction, block "+
					"size\"", number, quote(string(raw)))
			}
			v[i], rest = float64(n), tail
		}
		if v[2] == readsOfLog {
			do(v[0], v[1], v[3])
		}
	}
	return nil
}

func surveyLog(data []byte) (survey, error) {
	s := survey{sized: true}
	err := eachRead(data, func(ms, value, block float64) {
		if s.rows++; s.rows == 1 {
			s.first, s.last = ms, ms
		} else if ms <= s.last {
			s.jumbled = true
		}
		s.asRates += value * 1024 * max(ms-s.last, 0) / 1000
		s.first, s.last = min(s.first, ms), max(s.last, ms)
		s.bytes += block
		s.sized = s.sized && block > 0
	})
	switch {
	case err != nil:
		return s, err
	case s.rows == 0:
		return s, errors.New("is a log of fio without a read")
	case s.rows < 2 || s.last == s.first:
		return s, errors.New("is a log of fio with one moment alone; run the job longer")
	}
	return s, nil
}

// windows returns the rates of windows of equal length, where they begin and their length.
func (s *survey) windows(data []byte, averaged bool) (rates []float64, start, step units.Nanos) {
	from, to := s.first, s.last
	n := maxWindows
	if averaged {
		// the first row is the mean of the time before it
		from = max(0, s.first-(s.last-s.first)/float64(s.rows-1))
		n = min(n, s.rows)
	} else {
		const shortest = 100 // ms: single requests are not a rate
		n = max(1, min(n, int((to-from)/shortest)))
	}
	length := (to - from) / float64(n)
	sum, count := make([]float64, n), make([]float64, n)
	// The first pass has read the same rows.
	_ = eachRead(data, func(ms, value, block float64) {
		at := int((ms - from) / length)
		if averaged { // a row ends its window
			at = int(math.Ceil((ms-from)/length)) - 1
			value *= 1024
		} else {
			value = block
		}
		at = min(max(at, 0), n-1)
		sum[at] += value
		count[at]++
	})
	rates = make([]float64, n)
	for i := range rates {
		switch {
		case !averaged:
			rates[i] = sum[i] / length * 1000
		case count[i] > 0:
			rates[i] = sum[i] / count[i]
		case i > 0:
			rates[i] = rates[i-1]
		}
		rates[i] = min(rates[i], maxCount)
	}
	return rates, millisToNanos(from), max(1, millisToNanos(length))
}

// millisToNanos converts a time, up to half of the range so that sums fit.
func millisToNanos(ms float64) units.Nanos { return units.Nanos(min(ms*1e6, 1<<50)) }

// part is a run of windows with one rate.
type part struct {
	from, to int
	mean     float64
}

// plateaus cuts rates into the parts whose means explain them best: the Bayesian information
// criterion weighs every further part, which also has to change the mean by a fifth. All cuts
// together explain half of the variance or more, so that noise is not cut.
func plateaus(rates []float64) []part {
	n := len(rates)
	sums, squares := make([]float64, n+1), make([]float64, n+1)
	scale := 0.0
	for _, r := range rates {
		scale = max(scale, r)
	}
	for i, r := range rates {
		if scale > 0 {
			r /= scale
		}
		sums[i+1], squares[i+1] = sums[i]+r, squares[i]+r*r
	}
	mean := func(a, b int) float64 { return (sums[b] - sums[a]) / float64(b-a) }
	spread := func(a, b int) float64 { // sum of squared deviations
		return max(0, squares[b]-squares[a]-(sums[b]-sums[a])*mean(a, b))
	}
	const (
		shortest = 3    // windows of a plateau
		explains = 0.5  // of the variance
		changes  = 0.2  // of the larger mean
		price    = 3    // parameters of a part: windows are not independent
		exact    = 1e-9 // of the largest rate; less is rounding
	)
	best := []int{0, n}
	least := math.Inf(1)
	cost := make([]float64, n+1) // of the first windows in k parts
	for b := range cost {
		if b > 0 {
			cost[b] = spread(0, b)
		}
	}
	whole := cost[n]
	var from [][]int // by the number of parts, where the last of them begins
	for k := 1; k <= maxPlateaus; k++ {
		if k > 1 {
			next, begins := make([]float64, n+1), make([]int, n+1)
			for b := range next {
				next[b] = math.Inf(1)
				for a := (k - 1) * shortest; a+shortest <= b; a++ {
					if c := cost[a] + spread(a, b); c < next[b] {
						next[b], begins[b] = c, a
					}
				}
			}
			cost, from = next, append(from, begins)
		}
		cuts := []int{n}
		for i := len(from) - 1; i >= 0; i-- {
			cuts = append([]int{from[i][cuts[0]]}, cuts...)
		}
		cuts = append([]int{0}, cuts...)
		score := float64(n)*math.Log(max(cost[n]/float64(n), exact*exact)) +
			price*float64(k)*math.Log(float64(n))
		fits := k == 1 || cost[n] <= (1-explains)*whole
		for i := 1; i+1 < len(cuts) && fits; i++ {
			before, after := mean(cuts[i-1], cuts[i]), mean(cuts[i], cuts[i+1])
			fits = math.Abs(before-after) >= changes*max(before, after)
		}
		if fits && score < least {
			best, least = cuts, score
		}
	}
	var parts []part
	for i := range len(best) - 1 {
		a, b := best[i], best[i+1]
		parts = append(parts, part{a, b, mean(a, b) * scale})
	}
	return parts
}

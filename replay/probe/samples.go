package probe

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/windrow-sim/windrow/devicemodels/flash"
	"github.com/windrow-sim/windrow/engine/flashio"
	"github.com/windrow-sim/windrow/internal/bounds"
	"github.com/windrow-sim/windrow/internal/input"
	"github.com/windrow-sim/windrow/internal/output"
	"github.com/windrow-sim/windrow/internal/units"
)

// samplesVersion is that of the file of samples: JSON, one object a line. The first line is a
// header, then follow batches as they were measured and a line for each loop that is whole, which
// is what a resumed probe does not measure again.
const samplesVersion = 1

// sampleLine is one line; one of its fields is set.
type sampleLine struct {
	Header *sampleHeader `json:"header,omitempty"`
	Batch  *sampleBatch  `json:"batch,omitempty"`
	Cell   *result       `json:"cell,omitempty"`
	Limit  *limitFound   `json:"limit,omitempty"`
	Cost   *sampleCost   `json:"batch_cost,omitempty"`
	Mapped *mappedFound  `json:"mapped,omitempty"`
}

// sampleHeader says what was measured. Samples of another header are not gone on with.
type sampleHeader struct {
	Version int              `json:"version"`
	Host    string           `json:"host"`
	Path    string           `json:"path"`
	Size    units.Bytes      `json:"size"`
	Changed int64            `json:"changed"` // modification time of a given file, ns since 1970
	Mode    string           `json:"mode"`
	Engines []flashio.Engine `json:"engines"`
	Chunks  []units.Bytes    `json:"chunks"`
	Depths  []int            `json:"depths"`
	Span    units.Bytes      `json:"span"`
	Seed    uint64           `json:"seed"`
}

// sampleBatch is one measured batch.
type sampleBatch struct {
	loop
	Start  units.Nanos `json:"start_ns"` // since the probe started
	Took   units.Nanos `json:"took_ns"`
	Reads  int         `json:"reads"`
	Served int64       `json:"served"` // bytes, by storage; 0 where nobody counts
	CPU    units.Nanos `json:"cpu_ns"`
}

// sampleCost is what a batch costs besides its reads.
type sampleCost struct {
	Engine flashio.Engine `json:"engine"`
	Cost   units.Nanos    `json:"cost_ns"`
}

// samples writes a file of samples, and holds what an earlier one had. A nil samples keeps nothing.
type samples struct {
	f     *output.Journal
	w     *bufio.Writer
	path  string
	cells map[loop][]result
	lim   *limitFound
	costs map[flashio.Engine]units.Nanos
	maps  *mappedFound
}

// openSamples begins the file of cfg.Samples, or goes on with it. It never writes to a file that
// holds anything else.
func openSamples(cfg Config, header sampleHeader) (*samples, error) {
	if cfg.Samples == "" {
		return nil, nil
	}
	s := &samples{path: cfg.Samples, cells: map[loop][]result{},
		costs: map[flashio.Engine]units.Nanos{}}
	f, err := output.OpenJournal(cfg.Samples, true)
	fresh := err == nil
	if errors.Is(err, fs.ErrExist) && cfg.Resume {
		f, err = output.OpenJournal(cfg.Samples, false)
	}
	if errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("probe: samples: %s exists already; give another name, or resume "+
			"it: %w", cfg.Samples, err)
	}
	if err != nil {
		return nil, fmt.Errorf("probe: samples: %w", err)
	}
	s.f, s.w = f, bufio.NewWriter(f)
	if !fresh {
		if fresh, err = s.load(header); err != nil {
			return nil, errors.Join(err, f.Close())
		}
	}
	if fresh {
		if err := s.write(sampleLine{Header: &header}, true); err != nil {
			return nil, errors.Join(err, f.Close())
		}
	}
	return s, nil
}

// load reads an earlier file up to its last whole line, and cuts off what is behind it. It is fresh
// when there is no line.
func (s *samples) load(want sampleHeader) (fresh bool, err error) {
	r := bufio.NewReader(s.f)
	var whole int64
	for n := 1; ; n++ {
		text, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			break // a line without an end was cut while it was written
		}
		if err != nil {
			return false, fmt.Errorf("probe: samples: %w", err)
		}
		if err := s.take1(text, n, want); err != nil {
			return false, fmt.Errorf("probe: samples: %s: %w", s.path, err)
		}
		whole += int64(len(text))
	}
	if err := s.f.Truncate(whole); err != nil {
		return false, fmt.Errorf("probe: samples: %w", err)
	}
	_, err = s.f.Seek(whole, io.SeekStart)
	return whole == 0, err
}

// take1 keeps what a line says.
func (s *samples) take1(text []byte, n int, want sampleHeader) error {
	var line sampleLine
	if err := input.DecodeJSON(text, &line); err != nil {
		return fmt.Errorf("not a line of samples: %w; give a file that a probe wrote",
			input.Below(err, n-1))
	}
	if n == 1 {
		have, _ := json.Marshal(line.Header)
		if wanted, _ := json.Marshal(want); line.Header == nil || !bytes.Equal(have, wanted) {
			return fmt.Errorf("line 1: these are samples of %s and not of %s; probe as before, "+
				"or give another name", have, wanted)
		}
	}
	if f := line.check(); f.Path != "" {
		return fmt.Errorf("%w; give a file that a probe wrote",
			input.Below(input.RefuseJSON(text, f.Path, f.Why), n-1))
	}
	switch {
	case line.Cell != nil:
		s.cells[line.Cell.loop] = append(s.cells[line.Cell.loop], *line.Cell)
	case line.Limit != nil:
		s.lim = line.Limit
	case line.Cost != nil:
		s.costs[line.Cost.Engine] = line.Cost.Cost
	case line.Mapped != nil:
		s.maps = line.Mapped
	}
	return nil
}

// The ranges of numbers that a probe finds, as devices have them.
var (
	chunkRange = bounds.Range[units.Bytes]{Least: 1, Most: 1 << 40, Why: "no read is larger"}
	depthRange = bounds.Range[int]{Least: 1, Most: 1 << 20, Why: "no device holds more requests"}
	readsRange = bounds.Range[int]{Least: 1, Most: 1 << 50, Why: "no probe makes more"}
	rateRange  = bounds.Range[units.Rate]{Least: 1, Most: 100_000 * units.GBps,
		Why: "no drive is as fast"}
	anyRateRange = bounds.Range[units.Rate]{Least: 0, Most: rateRange.Most, Why: rateRange.Why}
	timeRange    = bounds.Range[units.Nanos]{Least: 0, Most: 24 * 3600 * units.Second,
		Why: "no read takes longer"}
	sizeRange  = bounds.Range[units.Bytes]{Least: 0, Most: 1 << 59, Why: "no device is larger"}
	countRange = bounds.Range[int64]{Least: 0, Most: 1 << 59, Why: "no probe counts more"}
	iopsRange  = bounds.Range[int64]{Least: 0, Most: 1e9, Why: "no drive answers more"}
)

// check finds numbers that no probe finds: what was measured is not measured again, so they would
// go into the device. The header is compared whole.
func (l *sampleLine) check() (f bounds.First) {
	if b := l.Batch; b != nil {
		b.check(&f, "batch")
		bounds.Want(&f, "batch.reads", b.Reads, readsRange)
		bounds.Want(&f, "batch.start_ns", int64(b.Start), countRange)
		bounds.Want(&f, "batch.took_ns", b.Took, timeRange)
		bounds.Want(&f, "batch.served", b.Served, countRange)
		bounds.Want(&f, "batch.cpu_ns", b.CPU, timeRange)
	}
	if c := l.Cell; c != nil {
		c.check(&f, "cell")
		bounds.Want(&f, "cell.reads", c.Reads, readsRange)
		bounds.Want(&f, "cell.rate", c.Rate, rateRange)
		bounds.Want(&f, "cell.rate_low", c.RateLow, anyRateRange)
		bounds.Want(&f, "cell.rate_high", c.RateHigh, anyRateRange)
		if f.Path == "" && c.RateLow > c.RateHigh {
			f = bounds.First{Path: "cell.rate_low", Value: c.RateLow,
				Why: fmt.Sprintf("is more than rate_high, %d", c.RateHigh)}
		}
		bounds.Want(&f, "cell.cpu_per_read", c.CPUPerRead, timeRange)
	}
	if found := l.Limit; found != nil && found.Limit != nil {
		bounds.Want(&f, "limit.limit.rate", found.Limit.Rate, anyRateRange)
		bounds.Want(&f, "limit.limit.iops", found.Limit.IOPS, iopsRange)
		bounds.Want(&f, "limit.limit.interval", found.Limit.Interval, timeRange)
		bounds.Want(&f, "limit.limit.burst", found.Limit.Burst, sizeRange)
	}
	if c := l.Cost; c != nil {
		bounds.Want(&f, "batch_cost.cost_ns", c.Cost, timeRange)
	}
	if m := l.Mapped; m != nil {
		bounds.Want(&f, "mapped.read_ahead", m.ReadAhead, sizeRange)
		bounds.Want(&f, "mapped.hit_fixed_ns", m.HitFixed, timeRange)
		bounds.Want(&f, "mapped.hit_rate", m.HitRate, anyRateRange)
		bounds.Want(&f, "mapped.capacity", m.Capacity, sizeRange)
		m.Gap.check(&f, "mapped.gap")
		for i := range m.Cold {
			m.Cold[i].check(&f, fmt.Sprintf("mapped.cold[%d]", i))
		}
	}
	return f
}

func (l *loop) check(f *bounds.First, path string) {
	bounds.Want(f, path+".chunk", l.Chunk, chunkRange)
	bounds.Want(f, path+".depth", l.Depth, depthRange)
}

func (c *coldResult) check(f *bounds.First, path string) {
	bounds.Want(f, path+".chunk", c.Chunk, sizeRange)
	bounds.Want(f, path+".requests", int64(c.Requests), countRange)
	bounds.Want(f, path+".fetched", c.Fetched, sizeRange)
	bounds.Want(f, path+".took_ns", c.Took, timeRange)
}

// take returns the next earlier result of a loop.
func (s *samples) take(l loop) (result, bool) {
	if s == nil || len(s.cells[l]) == 0 {
		return result{}, false
	}
	r := s.cells[l][0]
	s.cells[l] = s.cells[l][1:]
	return r, true
}

// limit returns what an earlier search for a limit found.
func (s *samples) limit() (*flash.Limit, bool) {
	if s == nil || s.lim == nil {
		return nil, false
	}
	return s.lim.Limit, true
}

// cost returns an earlier batch cost.
func (s *samples) cost(engine flashio.Engine) (units.Nanos, bool) {
	if s == nil {
		return 0, false
	}
	c, ok := s.costs[engine]
	return c, ok
}

// mappedFile returns what an earlier probe found of mapped files.
func (s *samples) mappedFile() (*mappedFound, bool) {
	if s == nil || s.maps == nil {
		return nil, false
	}
	return s.maps, true
}

func (s *samples) batch(b sampleBatch) error { return s.write(sampleLine{Batch: &b}, false) }

func (s *samples) cell(r *result) error { return s.write(sampleLine{Cell: r}, true) }

func (s *samples) found(l limitFound) error { return s.write(sampleLine{Limit: &l}, true) }

func (s *samples) batchCost(c sampleCost) error { return s.write(sampleLine{Cost: &c}, true) }

func (s *samples) mapped(f *mappedFound) error { return s.write(sampleLine{Mapped: f}, true) }

func (s *samples) write(line sampleLine, flush bool) error {
	if s == nil {
		return nil
	}
	text, err := json.Marshal(line)
	if err != nil {
		return fmt.Errorf("probe: samples: %w", err)
	}
	_, err = s.w.Write(append(text, '\n'))
	if err == nil && flush {
		err = s.w.Flush()
	}
	if err != nil {
		return fmt.Errorf("probe: samples: %w", err)
	}
	return nil
}

func (s *samples) close() error {
	if s == nil {
		return nil
	}
	if err := errors.Join(s.w.Flush(), s.f.Sync(), s.f.Close()); err != nil {
		return fmt.Errorf("probe: samples: %w", err)
	}
	return nil
}

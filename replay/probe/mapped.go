package probe

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/windrow-sim/windrow/engine/flashio"
	"github.com/windrow-sim/windrow/internal/rng"
	"github.com/windrow-sim/windrow/internal/units"
)

// The path of a mapped file is measured by the reader that the engine has for it: single requests
// at random places of a file that is not in memory, of the size of a page and of records; touches
// of pages between two stretches that are in memory, which fetch little; and requests of two sizes
// within a stretch that is in memory. The system's count of bytes fetched tells what a fault
// brings.
const (
	mappedLeast  = 64 * units.MiB // size of the file
	mappedShare  = 1.0 / 8        // of the flash's time
	mappedMost   = 3 * units.Second
	coldPart     = 0.9 // of that time is for the cold requests
	coldRequests = 100 // of each kind
	// of the file is fetched at most before it is dropped from memory again, so that windows rarely
	// meet
	coldFetched = 0.5
	touched     = 4 * units.KiB
	gapShare    = 8              // a gap is this part of a window
	gapLeast    = 64 * units.KiB // window that has gaps to measure
	hitStretch  = 64 * units.MiB
	hitBatch    = 64
	hitPasses   = 5
	smallHit    = 4 * units.KiB
	largeHit    = 64 * units.KiB
)

// coldChunks are a page, and small and large records.
func coldChunks() []units.Bytes { return []units.Bytes{touched, 16 * units.KiB, 64 * units.KiB} }

// mappedFound is what was found of mapped files, as it is written with the samples.
type mappedFound struct {
	Missing string `json:"missing,omitempty"` // why there is nothing else
	// that a touch of a page brings in: the median
	ReadAhead units.Bytes  `json:"read_ahead"`
	Cold      []coldResult `json:"cold"` // by size of request
	// touches that fetched a gap; none where windows are too small for it
	Gap      coldResult  `json:"gap"`
	HitFixed units.Nanos `json:"hit_fixed_ns"` // of a request whose bytes are in memory
	HitRate  units.Rate  `json:"hit_rate"`
	Capacity units.Bytes `json:"capacity"` // 0 = no limit is known
}

// coldResult are the requests of one size that fetched what they should.
type coldResult struct {
	Chunk    units.Bytes `json:"chunk"`
	Requests int         `json:"requests"`
	Fetched  units.Bytes `json:"fetched"` // mean
	// median: one hiccup weighs as much as all others in the mean of so few
	Took units.Nanos `json:"took_ns"`
}

// coldRead is one request to a mapping.
type coldRead struct {
	at, fetched units.Bytes
	took        units.Nanos
}

// mappedFile measures the path of mapped files until end, unless the samples have it.
func (g *grid) mappedFile(ctx context.Context, p *prober, seed uint64,
	end units.Nanos) (err error) {
	found, ok := p.samples.mappedFile()
	if !ok {
		if found, err = p.mapped(ctx, rng.Stream(seed, "probe/mapped"), end); err != nil {
			return err
		}
		if err := p.samples.mapped(found); err != nil {
			return err
		}
	}
	g.mapped = found
	return nil
}

// missing says why mapped files are not measured; empty when they are.
func (g *grid) missing() string {
	if g.mapped == nil {
		return ""
	}
	return g.mapped.Missing
}

// mapped measures, and says in Missing why it cannot.
func (p *prober) mapped(ctx context.Context, random *rand.Rand, end units.Nanos) (*mappedFound,
	error) {
	_, counted := p.m.readBytes()
	switch {
	case p.t.note != "":
		return &mappedFound{Missing: p.t.note}, nil
	case !counted:
		return &mappedFound{Missing: "This system does not count bytes read from storage."}, nil
	case p.t.size < mappedLeast:
		return &mappedFound{Missing: fmt.Sprintf("The file has less than %v.", mappedLeast)}, nil
	}
	found := &mappedFound{Capacity: p.m.cacheMemory()}
	now := p.m.now()
	part := units.Nanos(coldPart*float64(end-now)) / units.Nanos(len(coldChunks())+1)
	for i, chunk := range coldChunks() {
		rounds, err := p.cold(ctx, chunk, p.anywhere(random, chunk), now+units.Nanos(i+1)*part)
		if err != nil {
			return nil, err
		}
		if i == 0 {
			found.ReadAhead = medianFetched(rounds)
		}
		if found.ReadAhead == 0 || !served(rounds, chunk) {
			return &mappedFound{Missing: "Of the bytes asked for, storage served too few: the " +
				"file did not leave memory when it was asked to, " +
				"as when another program maps it."}, nil
		}
		found.Cold = append(found.Cold, summary(rounds, chunk, found.ReadAhead, oneWindow(chunk,
			found.ReadAhead), p.limit))
	}
	if found.Cold[0].Requests == 0 {
		return &mappedFound{Missing: "Every fault waited for a limit."}, nil
	}
	if gap := found.ReadAhead / gapShare / touched * touched; found.ReadAhead >= gapLeast &&
		4*found.ReadAhead <= p.t.size {
		coldEnd := now + units.Nanos(len(coldChunks())+1)*part
		// of three requests, in half of the time
		pairs := min(coldRequests/3, int((coldEnd-p.m.now())/max(2*3*found.Cold[0].Took, 1)))
		rounds, err := p.cold(ctx, touched, p.gaps(random, pairs, found.ReadAhead, gap), coldEnd)
		if err != nil {
			return nil, err
		}
		found.Gap = summary(rounds, touched, gap, true, p.limit)
	}
	return found, p.hits(ctx, random, found)
}

// anywhere returns the random places of a round.
func (p *prober) anywhere(random *rand.Rand, chunk units.Bytes) func() []units.Bytes {
	return func() []units.Bytes {
		places := make([]units.Bytes, coldRequests)
		for i := range places {
			places[i] = units.Bytes(random.Int64N(int64(p.t.size/chunk))) * chunk
		}
		return places
	}
}

// gaps returns the places of a round: at most so many pairs whose windows leave a gap between them,
// and then one in each gap, when the drive is done with the windows.
func (p *prober) gaps(random *rand.Rand, pairs int, window, gap units.Bytes) func() []units.Bytes {
	behind := window - window/touched/2*touched // from the touched page to the end of its window
	pairs = max(min(pairs, int(coldFetched*float64(p.t.size))/int(2*window+gap)), 1)
	return func() []units.Bytes {
		var around, between []units.Bytes
		for range pairs {
			first := window + units.Bytes(random.Int64N(int64((p.t.size-3*window)/touched)))*touched
			around = append(around, first, first+window+gap)
			between = append(between, first+behind+gap/2/touched*touched)
		}
		return append(around, between...)
	}
}

// cold makes rounds of requests of one size until there are enough or the time is end: one round at
// least.
func (p *prober) cold(ctx context.Context, chunk units.Bytes, places func() []units.Bytes,
	end units.Nanos) (rounds [][]coldRead, err error) {
	for n := 0; n < coldRequests && (n == 0 || p.m.now() < end); {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("probe: %w", err)
		}
		round, err := p.coldRound(chunk, places(), end)
		if err != nil {
			return nil, err
		}
		rounds = append(rounds, round)
		n += len(round)
	}
	return rounds, nil
}

// coldRound drops the file from memory and makes requests, one after the other, until much of the
// file is fetched or half of the time is over, to see what each fetches; then it does the same
// again without looking, to time them: a drive that rests between two requests answers later.
func (p *prober) coldRound(chunk units.Bytes, places []units.Bytes,
	end units.Nanos) (round []coldRead, err error) {
	half := (p.m.now() + end) / 2
	begin, _ := p.m.readBytes()
	before := begin
	err = p.eachMapped(chunk, places, func(i int, _ units.Nanos) (more bool) {
		after, _ := p.m.readBytes()
		round = append(round, coldRead{at: places[i], fetched: units.Bytes(after - before)})
		before = after
		return units.Bytes(after-begin) < units.Bytes(coldFetched*float64(p.t.size)) &&
			p.m.now() < half
	})
	if err != nil {
		return nil, err
	}
	return round, p.eachMapped(chunk, places[:len(round)], func(i int, took units.Nanos) bool {
		round[i].took = took
		return true
	})
}

// eachMapped makes requests to a file of which nothing is in memory, and tells done how long each
// took, until that has seen enough.
func (p *prober) eachMapped(chunk units.Bytes, places []units.Bytes, done func(i int,
	took units.Nanos) (more bool)) (err error) {
	r, err := p.openMapped()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	request := []flashio.Request{{Buf: p.slab[:chunk:chunk]}}
	for i, at := range places {
		request[0].Offset = int64(at)
		start := p.m.now()
		if err := r.ReadBatch(request); err != nil {
			return fmt.Errorf("probe: %w", err)
		}
		if !done(i, p.m.now()-start) {
			break
		}
	}
	return nil
}

// openMapped maps the file when none of it is in memory.
func (p *prober) openMapped() (flashio.Reader, error) {
	if err := p.m.dropCache(p.t.path); err != nil {
		return nil, fmt.Errorf("probe: %w", err)
	}
	r, err := p.m.open(p.t.path, flashio.Options{Engine: flashio.EngineMmap,
		Direct: flashio.DirectOff, Parallel: 1})
	if err != nil {
		return nil, fmt.Errorf("probe: %w", err)
	}
	return r, nil
}

// hits times requests whose bytes are in memory and mapped: the slope between two sizes is the
// rate, and the rest a request's own.
func (p *prober) hits(ctx context.Context, random *rand.Rand, found *mappedFound) (err error) {
	r, err := p.openMapped()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close(), p.m.dropCache(p.t.path)) }()
	stretch := min(p.t.size, hitStretch)
	all := make([]units.Bytes, stretch/largeHit)
	for i := range all {
		all[i] = units.Bytes(i) * largeHit
	}
	if _, err := p.copies(r, all, largeHit); err != nil {
		return err
	}
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	before, _ := p.m.readBytes()
	var small, large []units.Nanos
	for range hitPasses {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("probe: %w", err)
		}
		for _, pass := range []struct {
			chunk units.Bytes
			into  *[]units.Nanos
		}{{largeHit, &large}, {smallHit, &small}} {
			took, err := p.copies(r, all, pass.chunk)
			if err != nil {
				return err
			}
			*pass.into = append(*pass.into, took/units.Nanos(len(all)))
		}
	}
	if after, _ := p.m.readBytes(); after > before {
		*found = mappedFound{Missing: fmt.Sprintf("Memory did not hold the %v that were to be "+
			"copied from it.", stretch)}
		return nil
	}
	found.HitFixed, found.HitRate = slope(median(small), median(large))
	return nil
}

// copies requests chunk bytes at every place, in batches, and returns how long they took.
func (p *prober) copies(r flashio.Reader, places []units.Bytes,
	chunk units.Bytes) (took units.Nanos, err error) {
	for batch := range slices.Chunk(places, hitBatch) {
		p.reqs = p.reqs[:0]
		for i, at := range batch {
			lo := units.Bytes(i) * chunk
			p.reqs = append(p.reqs, flashio.Request{Offset: int64(at),
				Buf: p.slab[lo : lo+chunk : lo+chunk]})
		}
		start := p.m.now()
		if err := r.ReadBatch(p.reqs); err != nil {
			return 0, fmt.Errorf("probe: %w", err)
		}
		took += p.m.now() - start
	}
	return took, nil
}

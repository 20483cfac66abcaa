package probe

import (
	"context"

	"github.com/windrow-sim/windrow/devicemodels/flash"
	"github.com/windrow-sim/windrow/engine/flashio"
	"github.com/windrow-sim/windrow/internal/units"
)

// A drive that keeps a part of its mapping table in memory is faster within a short stretch of
// addresses than all over. The same shallow loop of small reads, which waits for latency and
// nothing else, is measured within narrowSpan and all over the file, in turns, when the file is
// spanFactor times as large.
const (
	narrowSpan  = 64 * units.MiB
	spanFactor  = 4
	spanDepth   = 4
	spanTurns   = 3
	spanShare   = 1.0 / 20 // of the flash's time
	spanMost    = units.Second
	spanAtLeast = 0.02 // a smaller effect is none
)

// spanEffect returns what a read takes longer when reads are spread over the file, 0 when that is
// within the noise.
func (p *prober) spanEffect(ctx context.Context, engine flashio.Engine, chunk units.Bytes,
	share units.Nanos) (units.Nanos, error) {
	if p.t.size < spanFactor*narrowSpan || p.limit != nil {
		return 0, nil
	}
	begin := p.m.now()
	var narrow, wide []units.Nanos // times of a read, by turn
	for turn := range units.Nanos(2 * spanTurns) {
		l := loop{Kind: kindNarrow, Engine: engine, Chunk: chunk, Depth: spanDepth}
		into := &narrow
		if turn%2 == 1 {
			l.Kind, into = kindWide, &wide
		}
		r, err := p.measure(ctx, l, begin+(turn+1)*share/(2*spanTurns))
		if err != nil {
			return 0, err
		}
		if r.Rate > 0 {
			*into = append(*into, spanDepth*r.Rate.Time(chunk))
		}
	}
	if len(narrow) < 2 || len(wide) < 2 {
		return 0, nil
	}
	in, inHalf := interval(narrow)
	all, allHalf := interval(wide)
	if extra := all - in; extra > inHalf+allHalf && extra > spanAtLeast*in {
		return digits4(units.Nanos(extra)), nil
	}
	return 0, nil
}

// spans writes the effect as a device has it; the latency itself is that within the stretch.
func spans(extra units.Nanos) []flash.Span {
	if extra <= 0 {
		return nil
	}
	return []flash.Span{{Within: narrowSpan}, {ExtraLTFB: extra}}
}

package compare

import (
	"errors"
	"fmt"

	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/traces"
)

// Token is one token of a Run, its rows added up.
type Token struct {
	Index uint32 // in the trace
	Seq   uint32
	Pos   uint32
	Phase traces.Phase
	// completion of all earlier tokens; the start of the run for the first token
	Begin units.Nanos
	// time from Begin to the completion of the last row; 0 if an earlier token completed later
	Latency   units.Nanos
	Parts     [traces.Parts]units.Nanos // time by traces.Part; parts may overlap
	Bytes     units.Bytes               // requested from flash
	Requests  int64
	Hits      int64
	Misses    int64
	Evictions int64
	// Depth is the time-weighted mean number of requests in flight during the token's reads.
	Depth float64
}

func (t *Token) name() string {
	phase := "prefill"
	if t.Phase == traces.Decode {
		phase = "decode"
	}
	return fmt.Sprintf("token %d (sequence %d, position %d, %s)", t.Index, t.Seq, t.Pos, phase)
}

// Tokens adds up the rows of a run by token, in the order of the run. It returns an error if the
// run has no rows, if rows are not ordered by (token, layer), or if a row is impossible: an unknown
// part, or a negative or absurd time or number of bytes.
func Tokens(r *traces.Run) ([]Token, error) {
	if r == nil || len(r.Rows) == 0 {
		return nil, errors.New("compare: the run has no rows")
	}
	var out []Token
	for i := range r.Rows {
		row := &r.Rows[i]
		if err := checkRow(row); err != nil {
			return nil, fmt.Errorf("compare: row %d: %w", i, err)
		}
		if i > 0 {
			if err := checkOrder(&r.Rows[i-1], row); err != nil {
				return nil, fmt.Errorf("compare: row %d: %w", i, err)
			}
		}
		if i == 0 || r.Rows[i-1].Token != row.Token {
			out = append(out, Token{Index: row.Token, Seq: row.Seq, Pos: row.Pos, Phase: row.Phase})
		}
		out[len(out)-1].add(row)
	}
	latencies(out, r.Rows)
	return out, nil
}

// exact is the largest integer below which a float64 holds every integer: 104 days in nanoseconds,
// 8 PiB in bytes.
const exact = 1 << 53

func checkRow(r *traces.RunRow) error {
	switch {
	case r.Part >= traces.Parts:
		return fmt.Errorf("part %d: want 0 to %d", r.Part, traces.Parts-1)
	case r.Phase > traces.Decode:
		return fmt.Errorf("phase %d: want 0 (prefill) or 1 (decode)", r.Phase)
	case r.Start < 0 || r.Dur < 0 || r.Start > exact || r.Dur > exact:
		return fmt.Errorf("start %d ns, duration %d ns: out of range", r.Start, r.Dur)
	case r.Bytes < 0 || r.Bytes > exact:
		return fmt.Errorf("%d bytes: out of range", r.Bytes)
	case !(r.Depth >= 0 && r.Depth <= 1<<24):
		return fmt.Errorf("queue depth %v: out of range", r.Depth)
	}
	return nil
}

func checkOrder(prev, r *traces.RunRow) error {
	if r.Token < prev.Token || r.Token == prev.Token && r.Layer < prev.Layer {
		return fmt.Errorf("token %d layer %d follows token %d layer %d: rows must be ordered",
			r.Token, r.Layer, prev.Token, prev.Layer)
	}
	if r.Token == prev.Token && (r.Seq != prev.Seq || r.Pos != prev.Pos || r.Phase != prev.Phase) {
		return fmt.Errorf("token %d has two sequences, positions or phases", r.Token)
	}
	return nil
}

func (t *Token) add(r *traces.RunRow) {
	t.Parts[r.Part] += r.Dur
	t.Requests += int64(r.Requests)
	t.Hits += int64(r.Hits)
	t.Misses += int64(r.Misses)
	t.Evictions += int64(r.Evictions)
	if r.Part == traces.PartIO {
		t.Bytes += r.Bytes
		t.Depth += float64(r.Depth) * float64(r.Dur) // divided by the time at the end
	}
}

// latencies fills in Begin and Latency, and turns Depth into a mean.
func latencies(ts []Token, rows []traces.RunRow) {
	done := rows[0].Start
	for i := range rows {
		done = min(done, rows[i].Start)
	}
	i := 0
	for k := range ts {
		t := &ts[k]
		t.Begin = done
		for ; i < len(rows) && rows[i].Token == t.Index; i++ {
			done = max(done, rows[i].Start+rows[i].Dur)
		}
		t.Latency = done - t.Begin
		if io := t.Parts[traces.PartIO]; io > 0 {
			t.Depth /= float64(io)
		}
	}
}

package traces

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
)

// WriteRunCSV prints the rows of a Run with the column names of the file. Phase and part are words.
// The layer of token-level rows is empty.
func WriteRunCSV(w io.Writer, r *Run) error {
	out := bufio.NewWriterSize(w, 1<<16)
	var b []byte
	for i, c := range runColumns(r.Meta.Phases != nil) {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, c.Name...)
	}
	b = append(b, '\n')
	for i := range r.Rows {
		if _, err := out.Write(b); err != nil {
			return fmt.Errorf("traces: run csv: %w", err)
		}
		b = appendRunCSV(b[:0], &r.Rows[i], r.Meta.Phases != nil)
	}
	if _, err := out.Write(b); err != nil {
		return fmt.Errorf("traces: run csv: %w", err)
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("traces: run csv: %w", err)
	}
	return nil
}

func appendRunCSV(b []byte, r *RunRow, phases bool) []byte {
	for _, v := range [...]uint32{r.Token, r.Seq, r.Pos} {
		b = append(strconv.AppendUint(b, uint64(v), 10), ',')
	}
	b = append(append(b, r.Phase.String()...), ',')
	if r.Layer != NoLayer {
		b = strconv.AppendUint(b, uint64(r.Layer), 10)
	}
	b = append(append(append(b, ','), r.partName()...), ',')
	for _, v := range [...]int64{int64(r.Start), int64(r.Dur), int64(r.Bytes), int64(r.Requests),
		int64(r.Hits),
		int64(r.Misses), int64(r.Evictions)} {
		b = append(strconv.AppendInt(b, v, 10), ',')
	}
	b = strconv.AppendFloat(b, float64(r.Depth), 'g', -1, 32)
	if phases {
		b = strconv.AppendInt(append(b, ','), int64(r.Device), 10)
		b = strconv.AppendInt(append(b, ','), int64(r.Wait), 10)
	}
	return append(b, '\n')
}

// partName is Part.String for unchecked rows.
func (r *RunRow) partName() string {
	if r.Part < Parts {
		return r.Part.String()
	}
	return "part " + strconv.Itoa(int(r.Part))
}

// runLine is one row of a Run as JSON.
type runLine struct {
	Token     uint32  `json:"token"`
	Seq       uint32  `json:"seq"`
	Pos       uint32  `json:"pos"`
	Phase     string  `json:"phase"`
	Layer     *uint16 `json:"layer"` // null for token-level rows
	Part      string  `json:"part"`
	Start     int64   `json:"start_ns"`
	Dur       int64   `json:"dur_ns"`
	Bytes     int64   `json:"bytes"`
	Requests  uint32  `json:"requests"`
	Hits      uint32  `json:"hits"`
	Misses    uint32  `json:"misses"`
	Evictions uint32  `json:"evictions"`
	Depth     float32 `json:"depth"`
	Device    *int64  `json:"device_ns,omitempty"` // of runs with phases
	Wait      *int64  `json:"wait_ns,omitempty"`
}

// WriteRunJSONL prints the rows of a Run as one JSON object per line.
func WriteRunJSONL(w io.Writer, r *Run) error {
	out := bufio.NewWriterSize(w, 1<<16)
	enc := json.NewEncoder(out)
	for i := range r.Rows {
		row := &r.Rows[i]
		line := runLine{
			Token: row.Token, Seq: row.Seq, Pos: row.Pos, Phase: row.Phase.String(),
			Part:  row.partName(),
			Start: int64(row.Start), Dur: int64(row.Dur), Bytes: int64(row.Bytes),
			Requests: row.Requests,
			Hits:     row.Hits, Misses: row.Misses, Evictions: row.Evictions, Depth: row.Depth,
		}
		if row.Layer != NoLayer {
			line.Layer = &row.Layer
		}
		if r.Meta.Phases != nil {
			line.Device, line.Wait = (*int64)(&row.Device), (*int64)(&row.Wait)
		}
		if err := enc.Encode(&line); err != nil {
			return fmt.Errorf("traces: run jsonl: row %d: %w", i, err)
		}
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("traces: run jsonl: %w", err)
	}
	return nil
}

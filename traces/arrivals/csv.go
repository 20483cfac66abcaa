package arrivals

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/windrow-sim/windrow/internal/units"
)

// columns are the column names of a format. A file may lack session.
type columns struct {
	time, prompt, output, session string
}

func columnsOf(f Format) columns {
	switch f {
	case BurstGPT:
		return columns{"Timestamp", "Request tokens", "Response tokens", "Session ID"}
	case Vidur:
		return columns{"arrived_at", "num_prefill_tokens", "num_decode_tokens", ""}
	}
	return columns{"TIMESTAMP", "ContextTokens", "GeneratedTokens", ""}
}

// csv reads the formats that are CSV tables.
type csv struct {
	in                            *lines
	names                         columns
	clock                         func([]byte) (units.Nanos, Reason)
	width                         int // fields of a line
	time, prompt, output, session int // indices of the columns; session -1 if there is none
	fields                        [][]byte
}

// newCSV reads the header and returns the unused columns.
func newCSV(in *lines, f Format) (c *csv, ignored []string, err error) {
	c = &csv{in: in, names: columnsOf(f), clock: clockOf(f), time: -1, prompt: -1, output: -1,
		session: -1}
	line, err := in.next()
	if err == io.EOF {
		return nil, nil, fmt.Errorf("the file is empty: %w", ErrFormat)
	}
	if err != nil {
		return nil, nil, err
	}
	header, ok := split(line, nil)
	if !ok {
		return nil, nil, in.bad(OpenQuote)
	}
	c.width, c.fields = len(header), header
	for at, raw := range header {
		name := string(raw)
		place := c.place(name)
		switch {
		case place == nil:
			ignored = append(ignored, name)
		case *place >= 0:
			return nil, nil, fmt.Errorf("line 1: the column %s is there twice: %w", name, ErrFormat)
		default:
			*place = at
		}
	}
	for _, name := range []string{c.names.time, c.names.prompt, c.names.output} {
		if *c.place(name) < 0 {
			return nil, nil, fmt.Errorf("line 1: there is no column %s, which %s has; the columns "+
				"are %s: %w", name, f, listed(header), ErrFormat)
		}
	}
	return c, ignored, nil
}

// place returns the variable with the index of a column; nil for an unused column.
func (c *csv) place(name string) *int {
	switch name {
	case "":
		return nil
	case c.names.time:
		return &c.time
	case c.names.prompt:
		return &c.prompt
	case c.names.output:
		return &c.output
	case c.names.session:
		return &c.session
	}
	return nil
}

func (c *csv) line() int64 { return c.in.n }

func (c *csv) next(req *Request, stats *Stats) error {
	line, err := c.in.next()
	if err == nil || errors.Is(err, ErrFormat) {
		stats.Lines++
	}
	if err != nil {
		return err
	}
	if bad := c.parse(line, req); bad != nil {
		return bad
	}
	return nil
}

func (c *csv) parse(line []byte, req *Request) *LineError {
	var ok bool
	if c.fields, ok = split(line, c.fields[:0]); !ok {
		return c.in.bad(OpenQuote)
	}
	if len(c.fields) != c.width {
		bad := c.in.bad(Fields)
		bad.Detail = fmt.Sprintf("%d, and %d in the header", len(c.fields), c.width)
		return bad
	}
	*req = Request{}
	var why Reason
	if req.At, why = c.clock(c.fields[c.time]); why != "" {
		return c.in.badField(c.names.time, c.fields[c.time], why)
	}
	if req.Prompt, why = parseCount(c.fields[c.prompt]); why != "" {
		return c.in.badField(c.names.prompt, c.fields[c.prompt], why)
	}
	if req.Output, why = parseCount(c.fields[c.output]); why != "" {
		return c.in.badField(c.names.output, c.fields[c.output], why)
	}
	if c.session >= 0 {
		req.Session = string(c.fields[c.session])
	}
	return nil
}

// split appends the fields of a line to fields. It removes the quotes around a field. A quote
// inside quotes stays doubled: no used field has one. It reports false if text follows a closing
// quote within a field, or if the quote does not close.
func split(line []byte, fields [][]byte) ([][]byte, bool) {
	for {
		if len(line) > 0 && line[0] == '"' {
			end := closing(line)
			if end < 0 {
				return fields, false
			}
			fields = append(fields, line[1:end])
			if end+1 == len(line) {
				return fields, true
			}
			if line[end+1] != ',' {
				return fields, false
			}
			line = line[end+2:]
			continue
		}
		comma := bytes.IndexByte(line, ',')
		if comma < 0 {
			return append(fields, line), true
		}
		fields = append(fields, line[:comma])
		line = line[comma+1:]
	}
}

// closing returns the index of the closing quote of a field that begins b, or -1. Two quotes inside
// stand for one.
func closing(b []byte) int {
	for i := 1; i < len(b); i++ {
		if b[i] != '"' {
			continue
		}
		if i+1 < len(b) && b[i+1] == '"' {
			i++
			continue
		}
		return i
	}
	return -1
}

package compare

import (
	"cmp"
	"fmt"

	"github.com/windrow-sim/windrow/traces"
)

// TokenLevel is the Layer of a Difference that belongs to a token and to no single layer.
const TokenLevel = -1

// Difference is one counter that differs between the runs.
type Difference struct {
	Token     uint32 `json:"token"`
	Layer     int    `json:"layer"`   // or TokenLevel
	Counter   string `json:"counter"` // hits, misses, evictions, requests or flash_bytes
	Simulated int64  `json:"simulated"`
	Measured  int64  `json:"measured"`
}

// The counters of a cell, in the order in which differences are listed. Bytes copied in memory are
// not a counter: they depend on how an insertion is carried out, not on a decision.
const (
	hits = iota
	misses
	evictions
	requests
	flashBytes
	numCounters
)

func counterName(i int) string {
	return [...]string{"hits", "misses", "evictions", "requests", "flash_bytes"}[i]
}

// cell holds the counters of one token in one layer.
type cell struct {
	token uint32
	layer uint16
	n     [numCounters]int64
}

func (c cell) before(d cell) bool {
	return cmp.Or(cmp.Compare(c.token, d.token), cmp.Compare(c.layer, d.layer)) < 0
}

// cells adds up ordered rows by (token, layer).
func cells(rows []traces.RunRow) []cell {
	var out []cell
	for i := range rows {
		r := &rows[i]
		if i == 0 || rows[i-1].Token != r.Token || rows[i-1].Layer != r.Layer {
			out = append(out, cell{token: r.Token, layer: r.Layer})
		}
		n := &out[len(out)-1].n
		n[hits] += int64(r.Hits)
		n[misses] += int64(r.Misses)
		n[evictions] += int64(r.Evictions)
		n[requests] += int64(r.Requests)
		if r.Part == traces.PartIO {
			n[flashBytes] += int64(r.Bytes)
		}
	}
	return out
}

// counters compares the cells of both runs in order. A layer that only one run has is an error.
// Rows of the whole token are optional; missing ones count as zeros.
func (c *Comparison) counters(s, m []cell, limit int) error {
	c.CountersEqual, c.BytesEqual = true, true
	for len(s) > 0 || len(m) > 0 {
		switch {
		case len(m) == 0 || len(s) > 0 && s[0].before(m[0]):
			if s[0].layer != traces.NoLayer {
				return fmt.Errorf("compare: token %d layer %d is missing from the measured run; "+
					"run both on the same layers", s[0].token, s[0].layer)
			}
			c.cell(s[0], cell{}, limit)
			s = s[1:]
		case len(s) == 0 || m[0].before(s[0]):
			if m[0].layer != traces.NoLayer {
				return fmt.Errorf("compare: token %d layer %d is missing from the simulated "+
					"run; run both on the same layers", m[0].token, m[0].layer)
			}
			c.cell(cell{token: m[0].token, layer: m[0].layer}, m[0], limit)
			m = m[1:]
		default:
			c.cell(s[0], m[0], limit)
			s, m = s[1:], m[1:]
		}
	}
	return nil
}

// cell compares the counters of one token and layer, named by s.
func (c *Comparison) cell(s, m cell, limit int) {
	for i := range s.n {
		if s.n[i] == m.n[i] {
			continue
		}
		if i == flashBytes {
			c.BytesEqual = false
		} else {
			c.CountersEqual = false
		}
		c.DifferencesTotal++
		if len(c.Differences) >= limit {
			continue
		}
		layer := int(s.layer)
		if s.layer == traces.NoLayer {
			layer = TokenLevel
		}
		c.Differences = append(c.Differences, Difference{s.token, layer, counterName(i), s.n[i],
			m.n[i]})
	}
}

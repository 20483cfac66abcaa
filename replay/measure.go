package replay

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/windrow-sim/windrow/engine/flashio"
	"github.com/windrow-sim/windrow/engine/session"
	"github.com/windrow-sim/windrow/traces"
)

// MeasureConfig says how to replay a trace on the image of a session. Backend, Store, Bundles and
// Layout of its Config are set by Measure.
type MeasureConfig struct {
	Config
	Reads session.Reads
	// DRAM, as Session.Budget reads it, bounds all memory: the largest window that fits is taken in
	// place of Policy. "" = no bound.
	DRAM string
	Tool string // program and version, for the Run
}

// Auto leaves Config.ReferenceEvery to Measure: DefaultReferenceEvery, or none for reads through
// the page cache, since the reference pattern would bring the image into memory.
const Auto = -1

// DefaultReferenceEvery is the number of tokens between two readings of the reference pattern.
const DefaultReferenceEvery = 16

// Measure replays a trace on the image of a session and says in the Run how that was done. On
// cancellation it returns what was measured so far, marked as not whole, together with ctx's error.
func Measure(ctx context.Context, s *session.Session, tr *traces.Reader,
	cfg MeasureConfig) (*Result, error) {
	run := cfg.Config
	run.Backend, run.Store, run.Bundles, run.Layout = s.Backend(), s.Store(), s.Bundles,
		cfg.Reads.Layout
	reader, err := cfg.Reads.Open(s)
	if err != nil {
		return nil, err
	}
	mode := reader.Mode()
	s.Note("%s: %v", s.Image.Name, mode)
	if cfg.DRAM != "" {
		tokens := tr.Tokens()
		if run.MaxTokens > 0 {
			tokens = min(tokens, run.MaxTokens)
		}
		sized := run
		sized.Layout.Align = max(sized.Layout.Align, mode.Align)
		if run.Policy, err = windowFor(s, tr, tokens, sized, cfg.DRAM); err != nil {
			reader.Close()
			return nil, err
		}
	}
	state, cached := "", !mode.Direct && !mode.MemoryBacked
	if cached {
		state = coldStart(s.Image.Path)
	}
	if run.ReferenceEvery == Auto {
		if run.ReferenceEvery = DefaultReferenceEvery; cached {
			run.ReferenceEvery = 0
		}
	}
	result, err := Run(ctx, tr, s.Weights, s.Image.Geometry(), reader, run)
	if result == nil {
		return nil, err
	}
	m := &result.Run.Meta
	m.Tool, m.TraceSHA256, m.Device, m.Model = cfg.Tool, tr.SHA256(), mode.String(), s.Image.Name
	m.Warnings = append(m.Warnings, doubts(s, tr.Header(), state)...)
	if errors.Is(err, context.Canceled) && len(result.Run.Rows) > 0 {
		m.Warnings = append(m.Warnings, "interrupted: this run is not whole")
		return result, err
	}
	if err != nil {
		return nil, err
	}
	return result, nil
}

// doubts are what taints the numbers of a replay on this image and device.
func doubts(s *session.Session, h *traces.Header, state string) (list []string) {
	if !h.Synthetic && h.ModelSHA256 != s.Image.Hash {
		list = append(list, fmt.Sprintf("the trace was recorded on %s, replayed on %s of the same "+
			"shape: times hold, values do not", h.Model, s.Image.Name))
	}
	if s.Device != nil {
		text := "computed on " + s.Device.Name()
		if strings.Contains(text, "emulat") {
			text += ": its times mean nothing"
		}
		list = append(list, text)
	}
	if state != "" {
		list = append(list, state)
	}
	return list
}

// coldStart drops the pages of an image that is read through the page cache, and says in which
// state the run begins.
func coldStart(path string) string {
	if err := flashio.DropCache(path); err != nil {
		return fmt.Sprintf("cache state unknown: the pages of the image that are in memory "+
			"stayed there (%v)", err)
	}
	return "cold: the image's pages were dropped from memory before the run; what is read again " +
		"may come from memory"
}

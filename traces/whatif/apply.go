package whatif

import (
	"fmt"

	"github.com/windrow-sim/windrow/traces"
)

// Report holds the shares and rates that Apply reached. Shares are means over the tokens, as
// fractions of the units of a layer.
type Report struct {
	Options Options       `json:"options"`
	Before  float64       `json:"active_share_before"`
	After   float64       `json:"active_share_after"`
	Layers  []LayerReport `json:"layers"`
	// HasMagnitude reports whether the result holds magnitudes. Thickening adds units of unknown
	// activation, so that it has none.
	HasMagnitude bool `json:"has_magnitude"`
	// HasPredicted reports whether the result holds predicted masks. If active masks change, the
	// source's predicted masks are dropped: they predicted other masks.
	HasPredicted bool `json:"has_predicted"`
}

// LayerReport is the Report of one layer.
type LayerReport struct {
	Before float64 `json:"active_share_before"`
	Target float64 `json:"target_share"`
	After  float64 `json:"active_share_after"`
	// Method is the way to choose units: "same", "magnitude", "thin" or "thicken".
	Method string `json:"method"`
	// Threshold is the smallest kept |activation|, for the method "magnitude". If the target is a
	// share, some of the units less than 2^(1/8) above it are left out too.
	Threshold float64 `json:"threshold,omitempty"`
	// FalseNegatives and FalsePositives are the rates reached, among active and among inactive
	// units.
	FalseNegatives float64 `json:"false_negatives,omitempty"`
	FalsePositives float64 `json:"false_positives,omitempty"`
}

// Apply returns src changed as opt says, and a Report of it. It reads src up to four times and
// needs 1 MiB per layer for that. The result reads src on every read, so that src must stay open.
// It is safe for concurrent use if src is. It is src itself if opt changes nothing. Errors wrap
// ErrOptions or traces.ErrFormat, or are those of src.
func Apply(src traces.Source, opt Options) (traces.Source, Report, error) {
	if err := opt.Check(); err != nil {
		return nil, Report{}, err
	}
	h := src.Header()
	if h.Layers < 1 || h.Units < 1 {
		return nil, Report{}, fmt.Errorf("whatif: a trace of %d layers of %d units: %w", h.Layers,
			h.Units, traces.ErrFormat)
	}
	if opt.SmallFirst && !h.HasMagnitude {
		return nil, Report{}, fmt.Errorf("whatif: small-first: the trace holds no magnitudes; "+
			"record it with --magnitudes: %w", ErrOptions)
	}
	rep := Report{Options: opt, Layers: make([]LayerReport, h.Layers)}
	out, err := applySparsity(src, opt, &rep)
	if err != nil {
		return nil, Report{}, err
	}
	if opt.Predicts() {
		if opt.SmallFirst && !out.Header().HasMagnitude {
			return nil, Report{}, fmt.Errorf("whatif: small-first: a thicker trace has units "+
				"without magnitudes: %w", ErrOptions)
		}
		p, err := newPredictor(out, opt, &rep)
		if err != nil {
			return nil, Report{}, err
		}
		derive(&p.head, src, opt)
		out = p
	}
	for _, l := range rep.Layers {
		rep.Before += l.Before / float64(h.Layers)
		rep.After += l.After / float64(h.Layers)
	}
	rep.HasMagnitude, rep.HasPredicted = out.Header().HasMagnitude, out.Header().HasPredicted
	return out, rep, nil
}

// applySparsity changes the active units if opt asks for it. It always reports their shares.
func applySparsity(src traces.Source, opt Options, rep *Report) (traces.Source, error) {
	h := src.Header()
	if opt.Share == 0 && opt.LayerShare == 0 && opt.Threshold == 0 {
		c, err := takeCensus(src)
		if err != nil {
			return nil, err
		}
		for l, n := range c.active {
			share := c.share(n, h)
			rep.Layers[l] = LayerReport{Before: share, Target: share, After: share, Method: same}
		}
		return src, nil
	}
	s, err := newSparser(src, opt, rep)
	if err != nil {
		return nil, err
	}
	for l := range s.rules {
		if s.rules[l].method != same {
			s.head.HasPredicted = false
			derive(&s.head, src, opt)
			return s, nil
		}
	}
	return src, nil
}

// derive records the source of a trace in its header. Files have a hash; other sources have none.
func derive(h *traces.Header, src traces.Source, opt Options) {
	from := src.Header()
	h.SchemaVersion = traces.SchemaVersion
	h.DerivedFrom = ""
	if f, ok := src.(interface{ SHA256() string }); ok {
		h.DerivedFrom = f.SHA256()
	}
	h.DerivedBy = "whatif " + opt.String()
	if from.DerivedBy != "" {
		h.DerivedBy = from.DerivedBy + "; " + h.DerivedBy
	}
}

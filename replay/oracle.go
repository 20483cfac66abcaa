package replay

import (
	"fmt"

	"github.com/windrow-sim/windrow/engine"
	"github.com/windrow-sim/windrow/engine/session"
	"github.com/windrow-sim/windrow/internal/decisions/policy"
	"github.com/windrow-sim/windrow/internal/mask"
	"github.com/windrow-sim/windrow/internal/refusal"
	"github.com/windrow-sim/windrow/traces"
)

// OracleConfig says how to run one recorded sequence from flash.
type OracleConfig struct {
	session.Reads
	Sequence int    // of the trace
	Window   int    // tokens whose rows stay in memory
	DRAM     string // as Session.Budget reads it: in place of Window, the largest that fits
}

// OpenOracle opens rows on flash whose masks come from a recorded sequence, with as much memory as
// the trace needs. The trace must be of the same weights and hold every position of the sequence;
// it stays the caller's and is read while the text is written. Close the rows.
func OpenOracle(s *session.Session, tr *traces.Reader, cfg OracleConfig) (*session.Recorded,
	error) {
	o := &oracle{trace: tr, first: -1}
	if err := o.find(uint32(cfg.Sequence), s); err != nil {
		return nil, err
	}
	rows, err := o.open(s, &cfg)
	if err != nil {
		return nil, err
	}
	return &session.Recorded{Rows: rows, Prompt: o.prompt, Masks: o.masks, Expect: o.check,
		Most: len(o.ids) - len(o.prompt) + 1}, nil
}

// oracle is one recorded sequence.
type oracle struct {
	trace  *traces.Reader
	ids    []uint32 // of the sequence
	prompt []uint32
	first  int // index of the sequence's first token in the trace
	token  traces.Token
}

// find reads the ids of the sequence and refuses a trace of another model.
func (o *oracle) find(seq uint32, s *session.Session) error {
	h := o.trace.Header()
	if h.ModelSHA256 != s.Image.Hash {
		return refusal.Config("the trace was recorded on %s (%.12s), the image is %s (%.12s): "+
			"oracle masks must be of the same weights",
			h.Model, h.ModelSHA256, s.Image.Name, s.Image.Hash)
	}
	last := uint32(0)
	for i := range o.trace.Tokens() {
		if err := o.trace.Token(i, &o.token); err != nil {
			return err
		}
		last = max(last, o.token.Seq)
		if o.token.Seq != seq {
			continue
		}
		if o.first < 0 {
			o.first = i
		}
		if int(o.token.Pos) != i-o.first {
			return refusal.Input("%s: sequence %d has position %d where %d should be; oracle "+
				"masks need every position from 0", h.Model, seq, o.token.Pos, i-o.first)
		}
		o.ids = append(o.ids, o.token.ID)
		if o.token.Phase == traces.Prefill {
			o.prompt = append(o.prompt, o.token.ID)
		}
	}
	if len(o.prompt) == 0 {
		return refusal.Config("{Sequence} %d: the trace has no such sequence with a prompt; its "+
			"sequences are 0 to %d", seq, last)
	}
	return nil
}

// open opens the image for reading rows with as much memory as the trace needs.
func (o *oracle) open(s *session.Session, cfg *OracleConfig) (*engine.Flash, error) {
	reader, err := cfg.Open(s)
	if err != nil {
		return nil, err
	}
	run := Config{Layout: cfg.Layout, Store: s.Store(), Policy: policy.SlidingWindow(cfg.Window)}
	run.Layout.Align = max(run.Layout.Align, reader.Mode().Align)
	if cfg.DRAM != "" {
		if run.Policy, err = windowFor(s, o.trace, o.trace.Tokens(), run, cfg.DRAM); err != nil {
			reader.Close()
			return nil, err
		}
	}
	flash, _, err := NewFlash(o.trace, o.trace.Tokens(), s.Weights, s.Image.Geometry(), reader, run)
	if err != nil {
		reader.Close()
		return nil, err
	}
	s.NoteMode(reader.Mode())
	return flash, nil
}

// windowFor is the largest window that a budget allows for the first tokens of a trace.
func windowFor(s *session.Session, src traces.Source, tokens int, cfg Config,
	dram string) (spec policy.Spec, err error) {
	budget, err := s.Budget(dram)
	if err != nil {
		return spec, err
	}
	best, err := LargestWindow(src, tokens, s.Weights, s.Image.Geometry(), cfg, budget)
	if err != nil {
		return spec, err
	}
	s.Note("window %d: %v of %v (%v)", best.Window, best.Total, budget, best)
	s.KeepWithin(best.Total)
	return policy.SlidingWindow(best.Window), nil
}

// masks are those of the token at a position.
func (o *oracle) masks(_, pos int) ([]mask.Mask, error) {
	if err := o.trace.Token(o.first+pos, &o.token); err != nil {
		return nil, err
	}
	return o.token.Active, nil
}

// check compares a chosen token with the recorded one.
func (o *oracle) check(i int, id uint32) error {
	at := len(o.prompt) + i
	if at < len(o.ids) && o.ids[at] != id {
		if id == session.EndOfText {
			return fmt.Errorf("the text ends at position %d, where the trace has token %d; use "+
				"the sampling the trace was recorded with (%s)",
				at, o.ids[at], o.trace.Header().Sampling)
		}
		return fmt.Errorf("the text departs from the trace at position %d: it has token %d, the "+
			"engine chose %d; use the sampling the trace was recorded with (%s)",
			at, o.ids[at], id, o.trace.Header().Sampling)
	}
	return nil
}

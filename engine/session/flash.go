package session

import (
	"slices"
	"strings"

	"github.com/windrow-sim/windrow/engine"
	"github.com/windrow-sim/windrow/engine/flashio"
	"github.com/windrow-sim/windrow/internal/decisions/layout"
	"github.com/windrow-sim/windrow/internal/decisions/memory"
	"github.com/windrow-sim/windrow/internal/decisions/policy"
	"github.com/windrow-sim/windrow/internal/decisions/schedule"
	"github.com/windrow-sim/windrow/internal/ioengine"
	"github.com/windrow-sim/windrow/internal/refusal"
	"github.com/windrow-sim/windrow/internal/units"
)

// Reads says how rows are read from flash. The zero value lets the host choose and reads every
// record by a request of its own.
type Reads struct {
	IO       flashio.Engine // that reads; "" = auto
	Direct   flashio.Direct // whether reads bypass the page cache; "" = auto
	Parallel int            // threads or depth; 0 = the engine's default
	Layout   layout.Options
}

// Check refuses engines that there are not.
func (r *Reads) Check() error {
	if r.IO != "" && !slices.Contains(ioengine.Names(), string(r.IO)) {
		return refusal.Config("{IO} %q: known engines are %s", r.IO,
			strings.Join(ioengine.Names(), ", "))
	}
	switch r.Direct {
	case "", flashio.DirectAuto, flashio.DirectOn, flashio.DirectOff:
		return nil
	}
	return refusal.Config("{Direct} %q: it is auto, on or off", r.Direct)
}

// Open opens the image of a session for reading.
func (r *Reads) Open(s *Session) (flashio.Reader, error) {
	if err := r.Check(); err != nil {
		return nil, err
	}
	return flashio.Open(s.Image.Path, flashio.Options{Engine: r.IO, Direct: r.Direct,
		Parallel: r.Parallel})
}

// Budget reads an amount of memory: a size (2GiB), or a percentage of the model (52%). An empty
// text is no budget, which is 0.
func (s *Session) Budget(text string) (units.Bytes, error) {
	if text == "" {
		return 0, nil
	}
	budget, err := memory.ParseBudget(text, s.Image.WeightBytes())
	if err != nil {
		return 0, refusal.Config("{DRAM} %q: %v", text, err)
	}
	return budget, nil
}

// Auto leaves FlashConfig.DensePrefix to the predictor.
const Auto = -1

// FlashConfig says how to keep rows on flash that a predictor names.
type FlashConfig struct {
	Reads
	Window int // tokens whose rows stay in memory
	// DRAM bounds all memory of the run, as Session.Budget reads it; "" = room for every row.
	DRAM string
	// DensePrefix is the number of first layers whose rows are all in memory. Auto is 1 for a
	// predictor that looks ahead, since no prediction names what the first layer needs, and else 0.
	DensePrefix int
	Positions   int // of the longest sequence
	Batch       int // tokens of a step
}

// FlashRows opens rows on flash for a predictor, whose needs are not known beforehand: half of the
// room of each layer is for what the window keeps, the other half for what a token needs at once.
func (s *Session) FlashRows(p *Predictor, cfg FlashConfig) (*engine.Flash, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	dense := cfg.DensePrefix
	if dense == Auto {
		if dense = 0; p.Schedule != schedule.Demand {
			dense = 1
		}
	}
	shape, geo := s.Weights.Shape, s.Image.Geometry()
	if dense < 0 || dense > shape.Layers || p.Schedule != schedule.Demand && dense < 1 {
		return nil, refusal.Config("{DensePrefix} %d: the model has %d layers, and a predictor "+
			"that looks ahead needs the first to be dense", dense, shape.Layers)
	}
	rowsPerLayer, err := s.rowRoom(p, &cfg, dense)
	if err != nil {
		return nil, err
	}
	rows := engine.FlashConfig{Layout: cfg.Layout, Store: s.Store(),
		Policy: cfg.policy(), Capacity: make([]int, shape.Layers)}
	for l := range rows.Capacity {
		rows.Capacity[l] = min(rowsPerLayer, geo.Units)
	}
	if rowsPerLayer < geo.Units {
		kept := rowsPerLayer / 2
		rows.Room = rowsPerLayer - kept
		if rows.Policy.Window > 0 {
			rows.Policy.Capacity = kept
		}
	}
	for l := range dense {
		data, err := s.Bundles(l)
		if err != nil {
			return nil, err
		}
		rows.Dense = append(rows.Dense, data)
	}
	reader, err := cfg.Open(s)
	if err != nil {
		return nil, err
	}
	flash, err := engine.NewFlash(s.Weights, geo, reader, rows)
	if err != nil {
		reader.Close()
		return nil, err
	}
	s.NoteMode(reader.Mode())
	return flash, nil
}

// NoteMode tells the fallbacks that a reader took.
func (s *Session) NoteMode(m flashio.Mode) {
	for _, n := range m.Notes {
		s.Note("note: %s", n)
	}
}

// rowRoom is how many rows per layer there is memory for.
func (s *Session) rowRoom(p *Predictor, cfg *FlashConfig, dense int) (int, error) {
	geo := s.Image.Geometry()
	budget, err := s.Budget(cfg.DRAM)
	if err != nil || budget == 0 {
		return geo.Units, err
	}
	run := engine.Config{Context: cfg.Positions, Batch: cfg.Batch, FeatureKind: p.Feature,
		Schedule: p.Schedule}
	parts := run.Memory(s.Weights.Shape)
	parts.Predictor, parts.Dense, parts.Policy = p.Bytes, dense, cfg.policy()
	const block = 4096 // that direct reads are rounded to at most
	room, account, err := memory.RoomForRows(engine.MemoryModel(s.Weights, geo), parts, block,
		budget)
	if err != nil {
		return 0, refusal.Config("{DRAM} %s: %v", cfg.DRAM, err)
	}
	s.Note("%d rows per layer in %v (%v)", room, budget, account)
	s.KeepWithin(account.Total)
	return room, nil
}

// policy keeps the rows of the window.
func (c *FlashConfig) policy() policy.Spec {
	return policy.SlidingWindow(c.Window)
}

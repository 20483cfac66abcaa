package engine

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"time"

	"github.com/windrow-sim/windrow/engine/model"
	"github.com/windrow-sim/windrow/internal/decisions/schedule"
	"github.com/windrow-sim/windrow/internal/mask"
	"github.com/windrow-sim/windrow/internal/refusal"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/kernels/cpu"
)

// MaxStep is the largest number of tokens in a step.
const MaxStep = 4096

// Config configures an engine. The zero value is usable.
type Config struct {
	Threads   int      // compute threads; 0 = all cores
	Context   int      // positions per sequence in the KV cache; 0 = the model's maximum
	Sequences int      // sequences that run side by side; 0 = 1
	Batch     int      // largest number of tokens in a step; 0 = Sequences
	Observer  Observer // may be nil
	// FeatureKind is the kind of LayerEvent.Feature.
	FeatureKind FeatureKind
	// Thresholds, by layer, drop neurons with a value (the factor of the down row) of at most this
	// magnitude. They make a model without exact zeros sparse, at a loss, as CATS and TEAL do. nil
	// = no neuron is dropped.
	Thresholds []float32
	// Schedule says when rows on flash are read.
	Schedule schedule.Kind
	// Predictors makes the predictors, which may use the engine's threads. nil = tokens carry their
	// masks. With all rows in memory, only predicted units are computed.
	Predictors func(pool *cpu.Pool) (Predictors, error)
	// Backend does the arithmetic; nil = this machine's CPU. It must also be the Store of rows on
	// flash (FlashConfig.Store). The caller closes it, after the engine and the rows.
	Backend Backend
	// Check holds all rows of the model. The engine computes them in addition, and observers get
	// the true masks.
	Check *Resident
}

// Token is one input of the model.
type Token struct {
	Seq     int    // the sequence's number in traces
	SeqID   int    // the engine's sequence (its part of the KV cache), from 0
	Pos     int    // position in the sequence, from 0
	ID      uint32 // vocabulary id
	Prefill bool   // part of the prompt
	// Masks are the active units by layer. Flash rows need them unless there are predictors.
	Masks []mask.Mask
}

// Engine holds the state of its sequences. It is not safe for concurrent use.
type Engine struct {
	w        *model.Weights
	arch     *model.Arch
	shape    model.Shape
	rows     Rows
	schedule schedule.Kind
	predict  Predictors
	checked  bool
	pool     *cpu.Pool
	backend  Backend
	observer Observer
	timed    bool // the observer wants times
	shown    bool // the observer wants masks, values and features
	feature  FeatureKind
	kept     [FeatureKinds]bool // features that are copied by Keep
	began    time.Time

	entries []entry // one for each token of the largest step
	next    []int   // the next position, by sequence
	context int
	unions  []mask.Mask // of the tokens' masks in a step, by layer
	masks   []mask.Mask // of the prefetches, by layer
	dropped []int       // units of a step that there was no room for, by layer
	logits  [][]float32
}

// entry is the state of one token of a step (a batch entry).
type entry struct {
	need   []mask.Mask // by layer: units to compute; nil = all
	own    []mask.Mask // memory of predicted masks
	mask   mask.Mask   // units with a value other than zero
	values []float32   // of the rows to add up
	active []int32     // indices of these rows in Step.Rows
	truth  mask.Mask   // with Config.Check: the true mask over all units
}

// New returns an engine over the resident weights and the given rows. Close the engine first, then
// the rows.
func New(w *model.Weights, rows Rows, cfg Config) (*Engine, error) {
	s := w.Shape
	cfg.Sequences = max(cfg.Sequences, 1)
	cfg.Batch = max(cfg.Batch, cfg.Sequences)
	if cfg.Context == 0 {
		cfg.Context = s.MaxPos
	}
	// More threads only take time to wake; more tokens only take memory.
	const mostThreads = 1024
	switch {
	case cfg.Context < 1 || cfg.Context > s.MaxPos:
		return nil, refusal.Config("engine: {Context} of %d positions: the model has 1 to %d",
			cfg.Context, s.MaxPos)
	case cfg.Threads < 0 || cfg.Threads > mostThreads:
		return nil, refusal.Config("engine: {Threads} %d: it must be 0 (all cores) to %d",
			cfg.Threads, mostThreads)
	case cfg.Batch > MaxStep:
		return nil, refusal.Config("engine: %d tokens in a step: at most %d are possible; use a "+
			"smaller {Batch} or {PrefillChunk}", cfg.Batch, MaxStep)
	case cfg.Thresholds != nil && len(cfg.Thresholds) != s.Layers:
		return nil, fmt.Errorf("engine: thresholds for %d layers: the model has %d",
			len(cfg.Thresholds), s.Layers)
	}
	if err := cfg.Schedule.Check(); err != nil {
		return nil, fmt.Errorf("engine: %w", err)
	}
	if cfg.Threads == 0 {
		cfg.Threads = runtime.GOMAXPROCS(0)
	}
	e := &Engine{
		w: w, arch: &w.Arch, shape: s, rows: rows, schedule: cfg.Schedule,
		checked: cfg.Check != nil, feature: cfg.FeatureKind, pool: cpu.NewPool(cfg.Threads),
		backend: cfg.Backend,
		began:   time.Now(), entries: make([]entry, cfg.Batch), next: make([]int, cfg.Sequences),
		context: cfg.Context,
		unions:  mask.NewLayers(s.Layers, s.DFFN), masks: make([]mask.Mask, s.Layers),
		dropped: make([]int, s.Layers), logits: make([][]float32, cfg.Batch),
	}
	for i := range e.entries {
		e.entries[i] = entry{need: make([]mask.Mask, s.Layers), own: mask.NewLayers(s.Layers,
			s.DFFN),
			mask: mask.New(s.DFFN), truth: mask.New(s.DFFN)}
	}
	if err := e.prepare(&cfg); err != nil {
		e.pool.Close()
		return nil, err
	}
	return e, nil
}

// prepare sets up the backend and the predictors.
func (e *Engine) prepare(cfg *Config) (err error) {
	if flash, ok := e.rows.(*Flash); ok && flash.elsewhere(cfg.Backend) {
		return fmt.Errorf("engine: rows on flash are kept where the backend does not compute: " +
			"give FlashConfig.Store and Config.Backend the same one")
	}
	if cfg.Predictors != nil {
		if e.predict, err = cfg.Predictors(e.pool); err != nil {
			return err
		}
	}
	if e.backend == nil {
		e.backend = &processor{pool: e.pool}
	}
	if err := errors.Join(e.feature.In(e.arch), e.predict.FeatureKind.In(e.arch)); err != nil {
		return err
	}
	setup := &Setup{Weights: e.w, Context: cfg.Context, Sequences: cfg.Sequences, Batch: cfg.Batch,
		Thresholds: cfg.Thresholds, Resident: e.rows.resident()}
	setup.Kept[e.feature], setup.Kept[e.predict.FeatureKind], setup.Kept[FFNInput] = true, true,
		false
	if cfg.Check != nil {
		setup.Check = cfg.Check.rows
	}
	if err := e.backend.Prepare(setup); err != nil {
		return err
	}
	if flash, ok := e.rows.(*Flash); ok && e.schedule != schedule.Demand {
		if err := flash.startPrefetcher(); err != nil {
			return err
		}
	}
	e.Observe(cfg.Observer)
	return nil
}

// Close stops the worker threads and frees the backend's memory for this engine.
func (e *Engine) Close() {
	e.pool.Close()
	// Close of the backend returns the same error again
	_ = e.backend.Release()
}

// Reset starts all sequences anew: positions begin at 0 and no row is resident.
func (e *Engine) Reset() {
	clear(e.next)
	e.rows.Reset()
	e.backend.Reset()
}

// Rewind forgets the positions of a sequence from pos on, for example after a rejected draft.
// Resident rows stay.
func (e *Engine) Rewind(seqID, pos int) { e.next[seqID] = min(e.next[seqID], pos) }

// Observe replaces the observer.
func (e *Engine) Observe(o Observer) {
	e.observer = o
	_, counting := o.(Counting)
	_, timing := o.(Timing)
	e.timed, e.shown = o != nil && !counting, o != nil && (!counting && !timing || e.checked)
	e.kept = [FeatureKinds]bool{}
	e.kept[e.feature], e.kept[e.predict.FeatureKind] = e.shown, true
	e.kept[FFNInput] = false // H itself is the feature
	e.backend.Clock(e.timed)
}

// now returns the monotonic time since the engine was made.
func (e *Engine) now() units.Nanos { return units.Nanos(time.Since(e.began)) }

// Forward runs one token through the model and returns the logits over the vocabulary, valid until
// the next call. The tokens of a sequence must be in order of position. After an error the sequence
// must start again with Reset.
func (e *Engine) Forward(t Token) ([]float32, error) {
	logits, err := e.Step([]Token{t})
	if err != nil {
		return nil, err
	}
	return logits[0], nil
}

// Step runs tokens through the model together: one of each of several sequences, or several of one
// in order of position, or both. A layer's rows are read from flash once for all tokens. Step
// returns the logits of each token, valid until the next call; they are bit-equal to those of
// single steps.
func (e *Engine) Step(tokens []Token) ([][]float32, error) {
	if err := e.check(tokens); err != nil {
		return nil, err
	}
	s := &Step{Tokens: tokens, entries: e.entries[:len(tokens)], lap: e.now()}
	for i := range s.entries {
		clear(s.entries[i].need)
	}
	clear(e.dropped)
	e.backend.Embed(s)
	for l := range e.w.Layers {
		s.Layer, s.ev = l, LayerEvent{Layer: l, Attention: Span{Start: s.lap}}
		if err := e.layer(s); err != nil {
			t := tokens[0]
			return nil, fmt.Errorf("engine: sequence %d, position %d, layer %d: %w", t.Seq, t.Pos,
				l, err)
		}
		if err := e.synchronise(&s.ev.Wait.FFN); err != nil {
			return nil, fmt.Errorf("engine: sequence %d, position %d, layer %d: %w", tokens[0].Seq,
				tokens[0].Pos, l, err)
		}
		s.ev.FFN.Dur = e.now() - s.ev.FFN.Start
		if e.timed {
			s.ev.Device = e.backend.Times()
		}
		if err := e.prefetchToken(s); err != nil {
			return nil, fmt.Errorf("engine: sequence %d, position %d: %w", tokens[0].Seq,
				tokens[0].Pos, err)
		}
		s.lap = e.now()
		if err := e.observeLayer(s); err != nil {
			return nil, err
		}
	}
	e.backend.Head(s)
	for i, t := range tokens {
		var err error
		if e.logits[i], err = e.backend.Logits(s, i); err != nil {
			return nil, fmt.Errorf("engine: sequence %d, position %d: %w", t.Seq, t.Pos, err)
		}
		if err := checkLogits(e.logits[i]); err != nil {
			return nil, fmt.Errorf("engine: sequence %d, position %d: %w", t.Seq, t.Pos, err)
		}
		e.next[t.SeqID]++
	}
	return e.logits[:len(tokens)], e.observeTokens(s)
}

// ErrNotFinite is the error of logits of which one is infinite or not a number.
var ErrNotFinite = refusal.Kind(refusal.ErrInput, "not finite")

// checkLogits demands finite logits: from others every choice and every measure would be wrong.
func checkLogits(logits []float32) error {
	for id, v := range logits {
		if math.Float32bits(v)&0x7f800000 == 0x7f800000 {
			return fmt.Errorf("the logit of id %d is %v, %w: the model's weights overflow float32 "+
				"on this text; check where they come from", id, v, ErrNotFinite)
		}
	}
	return nil
}

// check refuses tokens that do not continue their sequences.
func (e *Engine) check(tokens []Token) error {
	if len(tokens) == 0 || len(tokens) > len(e.entries) {
		return fmt.Errorf("engine: a step of %d tokens: 1 to %d are possible; make the engine "+
			"with a larger Batch", len(tokens), len(e.entries))
	}
	for i, t := range tokens {
		if t.SeqID < 0 || t.SeqID >= len(e.next) {
			return fmt.Errorf("engine: sequence %d with id %d: ids are below %d", t.Seq, t.SeqID,
				len(e.next))
		}
		next := e.next[t.SeqID]
		for _, before := range tokens[:i] {
			if before.SeqID == t.SeqID {
				next++
			}
		}
		switch {
		case t.Pos != next:
			return fmt.Errorf("engine: token at position %d, but the sequence is at %d", t.Pos,
				next)
		case t.Pos >= e.context:
			return fmt.Errorf("engine: position %d is beyond the context of %d; ask for fewer "+
				"tokens or a larger context", t.Pos, e.context)
		case int(t.ID) >= e.shape.Vocab:
			return fmt.Errorf("engine: token id %d is outside the vocabulary of %d; the prompt "+
				"was made for another tokenizer", t.ID, e.shape.Vocab)
		}
	}
	return nil
}

// observeLayer passes a layer's event to the observer, once per token. The times and counters
// belong to the step and are in the first token's event.
func (e *Engine) observeLayer(s *Step) error {
	if e.observer == nil {
		return nil
	}
	if e.shown {
		if err := e.backend.Collect(s); err != nil {
			return err
		}
	}
	s.ev.Dropped = e.dropped[s.Layer]
	for i := range s.entries {
		if i > 0 {
			s.ev = LayerEvent{Layer: s.Layer, Entry: i}
		}
		if err := e.show(s, i); err != nil {
			return err
		}
		if err := e.observer.Layer(&s.ev); err != nil {
			return err
		}
	}
	s.lap = e.now()
	return nil
}

// show fills in the masks, values and features of a token.
func (e *Engine) show(s *Step, i int) (err error) {
	a := &s.entries[i]
	s.ev.Need = a.need[s.Layer]
	if !e.shown {
		return nil
	}
	s.ev.Active, s.ev.Values = a.mask, a.values
	if e.checked {
		s.ev.True = a.truth
	}
	s.ev.FeatureKind = e.feature
	s.ev.Feature, err = e.backend.Feature(s, i, e.feature)
	return err
}

// synchronise waits for the backend if the observer wants times, and measures the wait.
func (e *Engine) synchronise(took *units.Nanos) error {
	if !e.timed {
		return nil
	}
	start := e.now()
	err := e.backend.Wait()
	*took = e.now() - start
	return err
}

func (e *Engine) observeTokens(s *Step) error {
	if e.observer == nil {
		return nil
	}
	other, device := Span{s.lap, e.now() - s.lap}, DeviceTimes{}
	if e.timed {
		device = e.backend.Times()
	}
	for i, t := range s.Tokens {
		if err := e.observer.Token(&TokenEvent{Token: t, Entry: i, Other: other,
			Device: device}); err != nil {
			return err
		}
		other, device = Span{}, DeviceTimes{}
	}
	return nil
}

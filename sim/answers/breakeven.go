package answers

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/windrow-sim/windrow/devicemodels"
	"github.com/windrow-sim/windrow/devicemodels/flash"
	"github.com/windrow-sim/windrow/internal/decisions/layout"
	"github.com/windrow-sim/windrow/internal/decisions/memory"
	"github.com/windrow-sim/windrow/internal/document"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/traces"
	"github.com/windrow-sim/windrow/traces/stats"
	"github.com/windrow-sim/windrow/traces/synth"
)

// BreakEvenConfig asks for the active share, and the batch, at which selective reads cost as much
// as hybrid reads.
//
// Hybrid reads the weights that do not fit into Budget for every token, in large consecutive reads.
// Selective keeps all but the FFN in memory and reads the rows of active units that are not in the
// window. Both read between computations, so that the times of the reads are compared. Compute is
// taken as equal on both sides, although selective computes less and pays for a predictor. Memory
// that selective does not need stays unused. KV cache and staging are outside the budget on both
// sides.
type BreakEvenConfig struct {
	Model    Model
	Device   *devicemodels.Device
	Engine   string // of both kinds of reads, a key of the device's flash.engines
	Parallel int    // of both
	// of selective reads; Align 0 = the device's; Gap must be 0, because the closed form has none
	Layout layout.Options
	// tokens of the sliding window of the second pair of results; 0 = results without a window only
	Window int
	Budget units.Bytes // of weights in memory
	// SequentialChunk is the size of hybrid's reads; 0 = 1 MiB.
	SequentialChunk units.Bytes

	// Like names the model whose process (package synth) describes how activity repeats from token
	// to token.
	Like string
	// Measured replaces that process in the closed form by measurements of a trace, at the trace's
	// own share. For other shares, independent copies of the trace are superposed; see activity.
	Measured *stats.Stats
	// Share is the active share of the batch; 0 = the measured or published one.
	Share float64

	// Layers is the number of simulated layers, spread over the image. Their time is scaled to all
	// layers. 0 = 4.
	Layers int
	// Tokens is the number of simulated tokens after the window is full. 0 = 4.
	Tokens int
	// MostBatch is the largest batch of the search. 0 = 64.
	MostBatch int
	Seed      uint64
	Progress  func(done, total int) // total is an estimate of the number of simulations
}

// Limits are the shares or batches at which selective reads stop being faster, by three methods.
// nil = nowhere in the searched range: shares up to MostShare, batches up to MostBatch.
type Limits struct {
	Closed    *float64 `json:"closed_form"`
	Simulated *float64 `json:"simulated"`
	// also nil if the device's copies are not known
	WithCopies *float64 `json:"simulated_with_row_copies"`
	// Fits is the largest share (or batch) whose mean rows fit into the budget beside the resident
	// weights. Beyond it, selective has more memory than hybrid in this comparison. 0 = none.
	Fits float64 `json:"largest_that_fits"`
}

// BreakEven is the result of FindBreakEven.
type BreakEven struct {
	Model      string      `json:"model"`
	Device     string      `json:"device"`
	Engine     string      `json:"engine"`
	Parallel   int         `json:"parallel"`
	Window     int         `json:"window_tokens"`
	ModelBytes units.Bytes `json:"model_bytes"`
	Budget     units.Bytes `json:"budget_bytes"`
	// Fits says that the weights besides the FFN, Resident, fit into the budget. Where they do not,
	// nothing below is computed.
	Fits           bool        `json:"fits_budget"`
	Resident       units.Bytes `json:"resident_bytes"`
	Missing        units.Bytes `json:"hybrid_bytes_per_token"` // what does not fit
	SequentialRate units.Rate  `json:"sequential_bytes_per_s"` // closed form
	RecordRate     units.Rate  `json:"record_bytes_per_s"`     // closed form, of single records
	HybridClosed   units.Nanos `json:"hybrid_closed_ns"`       // per token
	HybridSim      units.Nanos `json:"hybrid_simulated_ns"`
	// HybridEstimate is HybridSim with its interval: the reads alone, without the host. nil = not
	// computed.
	HybridEstimate *document.Estimate `json:"hybrid_simulated_estimate_ms"`
	// Basis says what shares and batches rest on. How far they may be off is not known.
	Basis       string  `json:"basis"`
	MostShare   float64 `json:"most_share"`
	MostBatch   int     `json:"most_batch"`
	ActiveShare float64 `json:"active_share"` // of the batch
	Share       Limits  `json:"share"`
	ShareWindow *Limits `json:"share_with_window,omitempty"`
	Batch       Limits  `json:"batch"` // sequences; union of their units
	BatchWindow *Limits `json:"batch_with_window,omitempty"`
	// Fitted says that the flash is fitted to measurements and not known by published limits alone.
	// Outside says that the large reads of hybrid, or the reads in flight, are outside the range of
	// the fit.
	Fitted  bool `json:"fitted"`
	Outside bool `json:"outside_fit"`
	// CopiesKnown says that the device model has the cost of row copies.
	CopiesKnown bool     `json:"row_copies_known"`
	Notes       []string `json:"notes"`
}

// mostShare is the largest active share of the search, the limit of the synthetic process.
const mostShare = 0.9

// The resolution of the searches in closed form.
const (
	closedSteps     = 18
	closedTolerance = 1e-4
)

// FindBreakEven answers a BreakEvenConfig. A budget below the resident weights is an answer. Errors
// are of kind ErrInput for questions without one, and sim.ErrConfig for configurations that package
// sim refuses.
func FindBreakEven(ctx context.Context, cfg BreakEvenConfig) (*BreakEven, error) {
	b, err := newBreaker(ctx, cfg)
	if errors.Is(err, memory.ErrBudget) {
		return &BreakEven{Model: cfg.Model.Name, Device: cfg.Device.Name, Engine: cfg.Engine,
			Parallel: cfg.Parallel, Window: cfg.Window, ModelBytes: cfg.Model.Bytes(),
			Budget: cfg.Budget, Resident: cfg.Model.ResidentBytes(), Notes: []string{}}, nil
	}
	if err != nil {
		return nil, err
	}
	out := &BreakEven{
		Model: b.Model.Name, Device: b.Device.Name, Engine: b.Engine, Parallel: b.Parallel,
		Window:     b.Window,
		ModelBytes: b.Model.Bytes(), Budget: b.Budget, Fits: true,
		Resident: b.Model.ResidentBytes(), Missing: b.missing,
		SequentialRate: b.rate(b.SequentialChunk, b.Parallel),
		RecordRate:     b.rate(units.Bytes(math.Round(b.length(1))), b.Parallel),
		MostShare:      mostShare, MostBatch: b.MostBatch, ActiveShare: b.Share,
		HybridClosed: units.FromSeconds(b.hybrid()), CopiesKnown: b.copies, Notes: []string{},
	}
	if err := b.simulateHybrid(out); err != nil {
		return nil, err
	}
	if err := b.answer(&out.Share, &out.Batch, 0); err != nil {
		return nil, err
	}
	if b.Window > 0 {
		out.ShareWindow, out.BatchWindow = &Limits{}, &Limits{}
		if err := b.answer(out.ShareWindow, out.BatchWindow, b.Window); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// breaker is a checked BreakEvenConfig.
type breaker struct {
	BreakEvenConfig
	ctx       context.Context
	missing   units.Bytes
	spec      flash.Spec // for reads that are spread over the FFN
	activity  *activity
	hybridIO  float64 // s, simulated
	copies    bool    // the cost of row copies is known
	sims      int
	simOf     map[simKey]cost
	sequences *traces.Memory // of the batch
}

func newBreaker(ctx context.Context, cfg BreakEvenConfig) (*breaker, error) {
	if err := cfg.Model.check(); err != nil {
		return nil, err
	}
	orDefault := func(v *int, n int) {
		if *v == 0 {
			*v = n
		}
	}
	orDefault(&cfg.Layers, 4)
	orDefault(&cfg.Tokens, 4)
	orDefault(&cfg.MostBatch, 64)
	cfg.Layers = min(cfg.Layers, cfg.Model.Shape.Layers)
	if cfg.SequentialChunk == 0 {
		cfg.SequentialChunk = units.MiB
	}
	m, resident := &cfg.Model, cfg.Model.ResidentBytes()
	switch {
	case cfg.Device == nil:
		return nil, fmt.Errorf("answers: break-even: no device model given: %w", ErrInput)
	case cfg.Window < 0 || cfg.Window >= stats.MaxWindow || cfg.Layers < 1 || cfg.Tokens < 1 ||
		cfg.MostBatch < 1 || cfg.Parallel < 1 || cfg.SequentialChunk < 1:
		return nil, fmt.Errorf("answers: break-even: a window of %d tokens (0 to %d), %d "+
			"layers, %d tokens, batches up to %d, %d reads in flight and reads of %v cannot be "+
			"simulated: %w",
			cfg.Window, stats.MaxWindow-1, cfg.Layers, cfg.Tokens, cfg.MostBatch, cfg.Parallel,
			cfg.SequentialChunk, ErrInput)
	case cfg.Layout.Gap != 0:
		return nil, fmt.Errorf("answers: break-even: reads over gaps are not in the closed "+
			"form; ask without a gap: %w", ErrInput)
	case cfg.Budget < resident:
		return nil, fmt.Errorf("answers: break-even: %w: %v for the weights of %s, of which %v "+
			"are not FFN and stay in memory; give it more", memory.ErrBudget, cfg.Budget, m.Name,
			resident)
	case cfg.Budget >= m.Bytes():
		return nil, fmt.Errorf("answers: break-even: all %v of %s fit into %v, so that nothing "+
			"has to be read; give a smaller budget: %w",
			m.Bytes(), m.Name, cfg.Budget, ErrInput)
	}
	if cfg.Layout.Align == 0 {
		cfg.Layout.Align = max(cfg.Device.Flash.Align, 1)
	}
	b := &breaker{BreakEvenConfig: cfg, ctx: ctx, missing: m.Bytes() - cfg.Budget,
		simOf: map[simKey]cost{}}
	b.spec = cfg.Device.Flash.Within(m.FFNBytes())
	b.copies = cfg.Device.Host.At("").Copy.Basis != devicemodels.Unknown
	var err error
	if b.activity, err = newActivity(ctx, &b.BreakEvenConfig); err != nil {
		return nil, err
	}
	if b.Share == 0 {
		if b.Share, err = b.activity.ownShare(); err != nil {
			return nil, err
		}
	}
	if !(b.Share > 0 && b.Share <= mostShare) {
		return nil, fmt.Errorf("answers: break-even: an active share of %g; give one above 0 and "+
			"at most %g: %w", b.Share, mostShare, ErrInput)
	}
	return b, nil
}

// answer finds both limits for a window of k tokens.
func (b *breaker) answer(share, batch *Limits, k int) error {
	at, found, err := b.closedShare(k)
	if err != nil {
		return err
	}
	share.Closed = known(at, found)
	at, found, err = firstCrossing(mostShare, closedSteps, closedTolerance,
		func(s float64) (float64, error) {
			curves, err := b.activity.at(s)
			if err != nil {
				return 0, err
			}
			return mean(curves, k+1) - b.rowsFit(), nil
		})
	if err != nil {
		return err
	}
	share.Fits = mostShare
	if found {
		share.Fits = at
	}
	curves, err := b.activity.at(b.Share)
	if err != nil {
		return err
	}
	for n := 1; n <= b.MostBatch; n++ {
		if b.selective(curves, k, n) > b.hybrid() {
			batch.Closed = known(float64(n-1), true)
			break
		}
	}
	if err := b.batchFits(batch, k); err != nil {
		return err
	}
	return b.simulated(share, batch, k)
}

// closedShare is the first active share at which selective takes longer than hybrid, in closed
// form.
func (b *breaker) closedShare(k int) (float64, bool, error) {
	hybrid := b.hybrid()
	return firstCrossing(mostShare, closedSteps, closedTolerance, func(s float64) (float64, error) {
		curves, err := b.activity.at(s)
		if err != nil {
			return 0, err
		}
		return b.selective(curves, k, 1) - hybrid, nil
	})
}

// rowsFit is the share of all rows that fit into the budget beside the resident weights.
func (b *breaker) rowsFit() float64 {
	return float64(b.Budget-b.Model.ResidentBytes()) / float64(b.Model.FFNBytes())
}

// known returns a pointer to v, or nil if v was not found.
func known(v float64, found bool) *float64 {
	if !found {
		return nil
	}
	return &v
}

// hybrid is the closed form of hybrid's reads, in seconds per token: the missing bytes divided by
// the rate of a closed loop of large reads.
func (b *breaker) hybrid() float64 {
	return float64(b.missing) / float64(b.rate(b.SequentialChunk, b.Parallel))
}

// selective is the closed form of selective reads, in seconds per token, for n sequences with a
// window of k tokens. Units are taken as independent, and sequences as independent and alike. With
// S = s_agg as a share of a layer's units, the share
//
//	(1 − S(k))^n − (1 − S(k+1))^n          Δ(k) for one sequence
//
// is needed now and was not needed in the k tokens before. In truth some units are popular, in all
// sequences. The union of a batch is therefore an upper bound.
func (b *breaker) selective(curves [][]float64, k, n int) float64 {
	sum := 0.0
	for _, curve := range curves {
		sum += b.layer(math.Pow(1-curve[k], float64(n)) - math.Pow(1-curve[k+1], float64(n)))
	}
	return sum
}

// layer is the time of reading a share of one layer's units, scattered independently. Neighbours
// join: a share (1−load) of the records begins an extent, which is 1/(1−load) records long on
// average; see length for its ends. The reads are one batch, a closed loop of at most Parallel of
// them. The time to fill and drain the loop is left out.
func (b *breaker) layer(load float64) float64 {
	records := load * float64(b.Model.Units)
	if records < 1e-9 {
		return 0
	}
	extents := records
	if b.Layout.Coalesce {
		extents = max(records*(1-load), min(records, 1))
	}
	bytes := b.length(records / extents)
	requests := extents
	if limit := float64(b.Layout.MaxRequest); limit > 0 && bytes > limit {
		pieces := math.Ceil(bytes / limit)
		requests, bytes = requests*pieces, bytes/pieces
	}
	depth := min(b.Parallel, max(int(math.Ceil(requests)), 1))
	rate := b.rate(units.Bytes(math.Round(bytes)), depth)
	if rate == 0 {
		return math.Inf(1)
	}
	return b.spec.Engines[b.Engine].Batch.Seconds() + requests*bytes/float64(rate)
}

// length is the mean length of a read of some records, with its ends rounded out to multiples of
// the alignment a. Records of r bytes start at multiples of g = gcd(r, a), all equally likely. A
// read of b bytes therefore has b + a − g bytes.
func (b *breaker) length(records float64) float64 {
	r, a := int64(b.Model.UnitBytes), int64(b.Layout.Align)
	return records*float64(r) + float64(a-gcd(r, a))
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// rate is the closed form of the flash for reads that are spread over the FFN.
func (b *breaker) rate(chunk units.Bytes, depth int) units.Rate {
	return b.spec.Throughput(b.Engine, b.Device.Host.Cores, chunk, depth)
}

// activity gives s_agg(k) of each layer, as a share of its units, for a mean active share. It uses
// the closed form of the synthetic process, or superposes measured curves S. A layer in which x
// independent copies of the trace are active at once has
//
//	s_agg(k) = 1 − (1 − S(k))^x
//
// as a batch of x sequences has. x follows from the mean active share and need not be whole.
type activity struct {
	ctx      context.Context // ends the search
	like     string
	layers   int
	measured [][]float64
	memo     map[float64][][]float64
}

func newActivity(ctx context.Context, cfg *BreakEvenConfig) (*activity, error) {
	a := &activity{ctx: ctx, like: cfg.Like, layers: cfg.Model.Shape.Layers,
		memo: map[float64][][]float64{}}
	s := cfg.Measured
	if s == nil {
		return a, nil
	}
	if s.LongestSeq < cfg.Window+1 {
		return a, fmt.Errorf("answers: break-even: the longest sequence of the trace has %d "+
			"tokens, too few for a window of %d; take a smaller window: %w",
			s.LongestSeq, cfg.Window, ErrInput)
	}
	for l := range s.PerLayer {
		curve := make([]float64, 0, stats.MaxWindow+1)
		for _, v := range s.PerLayer[l].Window.SAgg {
			curve = append(curve, v/float64(s.Units))
		}
		a.measured = append(a.measured, curve)
	}
	if one := mean(a.measured, 1); !(one > 0 && one < 1) {
		return a, fmt.Errorf("answers: break-even: %g %% of the units of the trace are active, "+
			"which cannot be scaled to other shares: %w", 100*one, ErrInput)
	}
	return a, nil
}

// mean is the mean of the layers' curves at k.
func mean(curves [][]float64, k int) float64 {
	sum := 0.0
	for _, c := range curves {
		sum += c[k]
	}
	return sum / float64(len(curves))
}

// ownShare is the active share before any scaling.
func (a *activity) ownShare() (float64, error) {
	curves, err := a.at(0)
	if err != nil {
		return 0, err
	}
	return mean(curves, 1), nil
}

// at returns s_agg(k) for k = 0 … stats.MaxWindow of every layer at a mean active share; as
// measured or published for 0.
func (a *activity) at(share float64) ([][]float64, error) {
	if err := a.ctx.Err(); err != nil {
		return nil, err
	}
	if curves, done := a.memo[share]; done {
		return curves, nil
	}
	var curves [][]float64
	var err error
	switch {
	case a.measured == nil:
		curves, err = a.process(share)
	case share == 0:
		curves = a.measured
	default:
		curves = a.superposed(share)
	}
	if err != nil {
		return nil, fmt.Errorf("answers: break-even: %w: %w", err, ErrInput)
	}
	a.memo[share] = curves
	return curves, nil
}

// process evaluates the closed form for every layer by itself, because it gives s_agg as a mean
// over the layers.
func (a *activity) process(share float64) ([][]float64, error) {
	all, err := synth.Expect(synth.Options{Like: a.like, Layers: a.layers, Tokens: 1,
		ActiveShare: share})
	if err != nil {
		return nil, err
	}
	curves := make([][]float64, len(all.ActiveShare))
	for l, own := range all.ActiveShare {
		one, err := synth.Expect(synth.Options{Like: a.like, Layers: 1, Tokens: 1,
			ActiveShare: min(own, mostShare)})
		if err != nil {
			return nil, err
		}
		curves[l] = one.ActiveSAgg
	}
	return curves, nil
}

// superposed finds the number of copies with the wanted share, and superposes so many.
func (a *activity) superposed(share float64) [][]float64 {
	copiesOf := func(x float64) [][]float64 {
		curves := make([][]float64, len(a.measured))
		for l, measured := range a.measured {
			for _, v := range measured {
				curves[l] = append(curves[l], 1-math.Pow(1-v, x))
			}
		}
		return curves
	}
	// The share rises with x, so that the search cannot fail. A layer that is never active keeps
	// the mean below 1 at its upper end.
	x, _, _ := least(1e-6, 1e6, 1e-9, func(x float64) (bool, error) {
		return mean(copiesOf(x),
			1) >= share, nil
	})
	return copiesOf(x)
}

package cli

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/windrow-sim/windrow/cmd/windrow/report"
	"github.com/windrow-sim/windrow/devicemodels"
	"github.com/windrow-sim/windrow/engine"
	"github.com/windrow-sim/windrow/engine/eval"
	"github.com/windrow-sim/windrow/engine/session"
	"github.com/windrow-sim/windrow/internal/decisions/layout"
	"github.com/windrow-sim/windrow/internal/decisions/policy"
	"github.com/windrow-sim/windrow/internal/document"
	"github.com/windrow-sim/windrow/internal/ioengine"
	"github.com/windrow-sim/windrow/internal/mask"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/record"
	"github.com/windrow-sim/windrow/sim"
	"github.com/windrow-sim/windrow/traces"
)

func evalCommand(e *env) *cli.Command {
	return &cli.Command{
		Name:  "eval",
		Usage: "perplexity of a text, and what dropping small activations costs and saves",
		Description: "Every token of the text is predicted once, in windows of --context tokens " +
			"that start --stride tokens apart. With --shares the model also runs\n" +
			"with only so many of its neurons: in each layer those whose value is largest, by a " +
			"threshold that is found on the same text (as CATS and TEAL\n" +
			"do). Each share gets its perplexity, how often its most likely token is the dense " +
			"model's, and the bytes that a window of --window tokens reads\n" +
			"per token; with --device also the simulated time. This is lossy: a share is a " +
			"trade, and the table shows its price.\n\n" +
			examples("windrow eval -m tales.flash.safetensors --text examples/prompts/scenes.txt",
				"windrow eval -m tales.flash.safetensors --text examples/prompts/scenes.txt "+
					"--shares 5%,2%,1% --max-tokens 256 -d m1-max --plot pareto.svg"),
		Flags: append(take("model!", "no-bos", "max-tokens", "window", "device", "predictor",
			"k-max", "backend", "device-memory", "threads"),
			&cli.StringFlag{Name: "text", Required: true, Usage: "`FILE` of text to predict"},
			defaulting(shared("context"), "512, or as many as the model has"),
			&cli.IntFlag{Name: "stride", Usage: "from one window to the next, `N` tokens",
				DefaultText: "the context"},
			&cli.BoolFlag{Name: "begin", Usage: "begin every window as texts begin: with the " +
				"tokenizer's first token in place of its own, if it has one"},
			defaulting(shared("prefill-chunk"), 32),
			&cli.StringFlag{Name: "shares", Usage: "also with these shares of the neurons, " +
				"`S,S,…`, for example 20%,5%"},
			&cli.StringFlag{Name: "plot", Usage: "draw perplexity over bytes per token to this " +
				"`FILE.svg`"}),
		Action: e.eval,
	}
}

// evaluation is the document of --json.
type evaluation struct {
	Tool      string    `json:"tool"`
	Model     string    `json:"model"`
	Text      string    `json:"text"`
	Context   int       `json:"context_tokens"`
	Stride    int       `json:"stride_tokens"`
	Predicted int       `json:"predicted_tokens"`
	Window    int       `json:"window_tokens"`
	Device    string    `json:"device,omitempty"`
	Rows      []evalRow `json:"rows"`
}

// evalRow is one share of the neurons.
type evalRow struct {
	Share      float64      `json:"target_share,omitempty"` // 0 = dense
	Active     float64      `json:"active_share"`           // that was reached
	Perplexity float64      `json:"perplexity"`
	NLL        float64      `json:"nll_per_token"`
	Agreement  float64      `json:"argmax_agreement"` // with the dense model
	Bytes      float64      `json:"flash_bytes_per_token"`
	PerToken   *units.Nanos `json:"simulated_ns_per_token,omitempty"`
	Cut        []float32    `json:"thresholds,omitempty"` // by layer
	Lossy      bool         `json:"lossy"`
	// Of a predictor: its kind, the active units that it did not name, the others that it did, and
	// named over active.
	Predictor      string      `json:"predictor,omitempty"`
	PredictorBytes units.Bytes `json:"predictor_bytes,omitempty"`
	FalseNegatives *float64    `json:"false_negatives,omitempty"`
	FalsePositives *float64    `json:"false_positives,omitempty"`
	Ratio          *float64    `json:"named_over_active,omitempty"`
}

func (e *env) eval(c *cli.Context) error {
	shares, err := parseShares(c.String("shares"))
	if err != nil {
		return err
	}
	var device *devicemodels.Device
	if name := c.String("device"); name != "" {
		if device, err = loadDevice(name); err != nil {
			return err
		}
	}
	if c.IsSet("plot") {
		if err := checkOutput(c.String("plot"), ".svg"); err != nil {
			return err
		}
	}
	m, err := e.openSession(c)
	if err != nil {
		return err
	}
	defer m.Close()
	ids, begin, err := evalTokens(c, m)
	if err != nil {
		return err
	}
	named, err := openPredictor(c, m)
	if err != nil {
		return err
	}
	rows, err := m.Resident()
	if err != nil {
		return err
	}
	defer rows.Close()
	run := &evaluator{e: e, c: c, m: m, named: named, rows: rows, ids: ids, device: device,
		window: c.Int("window")}
	run.opt = eval.Options{Context: c.Int("context"), Stride: c.Int("stride"),
		Chunk: c.Int("prefill-chunk"), Begin: begin}
	if run.opt.Context == 0 {
		run.opt.Context = min(512, m.Weights.Shape.MaxPos)
	}
	if run.opt.Stride == 0 {
		run.opt.Stride = run.opt.Context
	}
	if run.window < 0 || run.opt.Chunk < 1 {
		return usageError("--window %d, --prefill-chunk %d: a window of 0 or more and a chunk "+
			"of 1 or "+
			"more are wanted", run.window, run.opt.Chunk)
	}
	doc := &evaluation{Tool: Tool, Model: m.Image.Name, Text: c.String("text"),
		Context: run.opt.Context, Stride: run.opt.Stride, Window: run.window}
	if device != nil {
		doc.Device = device.Name
	}
	if err := run.all(doc, shares); err != nil {
		return err
	}
	if c.IsSet("plot") {
		if err := plotEval(c.String("plot"), doc); err != nil {
			return err
		}
	}
	if c.Bool("json") {
		return printJSON(e.stdout, doc)
	}
	e.note("%d tokens predicted, context %d, stride %d", doc.Predicted, doc.Context, doc.Stride)
	for _, r := range doc.Rows {
		if r.Predictor != "" {
			e.note("the predictor (%v) misses %s of the active neurons, names %s of the others, "+
				"%.3g times as many as are active",
				r.PredictorBytes, shareText(*r.FalseNegatives), shareText(*r.FalsePositives),
				*r.Ratio)
		}
	}
	return report.TableText(e.stdout, evalTable(doc))
}

// parseShares reads "5%,2%" into shares above 0 and below 1, descending.
func parseShares(text string) (list []float64, err error) {
	if text == "" {
		return nil, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		number, percent := strings.CutSuffix(strings.TrimSpace(part), "%")
		v, err := strconv.ParseFloat(number, 64)
		if percent {
			v /= 100
		}
		if err != nil || !(v > 0 && v < 1) {
			return nil, usageError("--shares %q: shares between 0 and 1, or percents, are "+
				"wanted, with commas between them", text)
		}
		list = append(list, v)
	}
	slices.SortFunc(list, func(a, b float64) int { return int(math.Copysign(1, b-a)) })
	return slices.Compact(list), nil
}

// evalTokens reads the text of the flags, and with --begin what texts begin with.
func evalTokens(c *cli.Context, m *session.Session) (ids, begin []uint32, err error) {
	tok, err := m.Text()
	if err != nil {
		return nil, nil, err
	}
	lines, err := session.ReadText(c.String("text"))
	if err != nil {
		return nil, nil, err
	}
	if ids, err = m.Encode(lines, c.Bool("no-bos")); err != nil {
		return nil, nil, err
	}
	if c.Bool("begin") {
		begin = tok.Encode("")
	}
	if n := c.Int("max-tokens"); n > 0 {
		ids = ids[:min(n, len(ids))]
	}
	return ids, begin, nil
}

// evaluator runs one model on one text, dense and with thresholds.
type evaluator struct {
	e      *env
	c      *cli.Context
	m      *session.Session
	named  *session.Predictor // nil = none
	rows   *engine.Resident
	ids    []uint32
	opt    eval.Options
	device *devicemodels.Device
	window int
}

// all fills the rows: the dense one, then the shares.
func (r *evaluator) all(doc *evaluation, shares []float64) error {
	dense := newCounts(r.m)
	row, result, err := r.run("eval (dense)", dense, engine.Config{})
	if err != nil {
		return err
	}
	row.Agreement = 1
	doc.Predicted, doc.Rows = result.Predicted, append(doc.Rows, row)
	r.opt.Against = result.Argmax
	if r.named != nil {
		if err := r.predicted(doc); err != nil {
			return err
		}
	}
	for _, share := range shares {
		cut := dense.cut(share)
		row, result, err := r.run(fmt.Sprintf("eval (%s)", shareText(share)), newCounts(r.m),
			engine.Config{Thresholds: cut})
		if err != nil {
			return err
		}
		row.Share, row.Cut, row.Lossy = share, cut, true
		row.Agreement = float64(result.Agreed) / float64(result.Predicted)
		doc.Rows = append(doc.Rows, row)
	}
	return nil
}

// predicted adds the row of a predictor: only what it names is computed, and what it should have
// named is counted beside.
func (r *evaluator) predicted(doc *evaluation) error {
	counts := newCounts(r.m)
	row, result, err := r.run("eval (predictor)", counts, engine.Config{Predictors: r.named.Make,
		Schedule: r.named.Schedule, Check: r.rows})
	if err != nil {
		return err
	}
	row.Lossy, row.Predictor, row.PredictorBytes = true, r.named.Kind, r.named.Bytes
	row.Agreement = float64(result.Agreed) / float64(result.Predicted)
	ratio := func(a, b int64) *float64 {
		v := 0.0
		if b > 0 {
			v = float64(a) / float64(b)
		}
		return &v
	}
	row.FalseNegatives, row.FalsePositives = ratio(counts.missed, counts.truly),
		ratio(counts.spurious, counts.asked-counts.truly)
	row.Ratio = ratio(counts.truly-counts.missed+counts.spurious, counts.truly)
	doc.Rows = append(doc.Rows, row)
	return nil
}

// run measures one setting; counts sees what the engine does.
func (r *evaluator) run(label string, counts *counts, cfg engine.Config) (evalRow, *eval.Result,
	error) {
	cfg.Threads, cfg.Context, cfg.Batch, cfg.Observer = r.c.Int("threads"), r.opt.Context,
		r.opt.Chunk, counts
	cfg.Backend = r.m.Backend()
	eng, err := engine.New(r.m.Weights, r.rows, cfg)
	if err != nil {
		return evalRow{}, nil, r.m.Refused(err)
	}
	defer eng.Close()
	p := r.e.startProgress(label)
	opt := r.opt
	opt.Progress = p.update
	result, err := eval.Run(r.c.Context, eng, r.ids, opt)
	p.done()
	if err != nil {
		return evalRow{}, nil, err
	}
	row := evalRow{Perplexity: result.Perplexity, NLL: result.NLL / float64(result.Predicted),
		Active: counts.share()}
	return row, result, r.cost(&row, counts)
}

// cost adds what the window reads, and the time of a device.
func (r *evaluator) cost(row *evalRow, counts *counts) error {
	src := &traces.Memory{Head: record.HeaderOf(r.m.Image, engine.Sampling{}, Tool),
		List: counts.tokens}
	loads := 0
	layers := make([]policy.Policy, src.Head.Layers)
	for l := range layers {
		layers[l] = policy.NewWindow(src.Head.Units, r.window)
	}
	var d policy.Decision
	for i := range counts.tokens {
		for l, mask := range counts.tokens[i].Active {
			if counts.tokens[i].Pos == 0 {
				layers[l].Reset()
			}
			layers[l].Step(mask, &d)
			loads += len(d.Load)
		}
	}
	row.Bytes = float64(loads) * float64(src.Head.UnitBytes) / float64(len(counts.tokens))
	if r.device == nil {
		return nil
	}
	cfg := sim.Config{Policy: policy.SlidingWindow(r.window), Device: r.device,
		Layout:   layout.Options{Coalesce: true},
		Geometry: r.m.Image.Geometry()}
	var err error
	if cfg.Engine, err = r.device.ReadEngine("auto"); err != nil {
		return err
	}
	cfg.Parallel = ioengine.DefaultParallel(cfg.Engine)
	simulated, err := sim.Run(src, cfg)
	if err != nil {
		return err
	}
	t := simulated.Meta.Totals.Wall / units.Nanos(len(counts.tokens))
	row.PerToken = &t
	return nil
}

// counts is an observer that keeps the masks, and how large the values are.
type counts struct {
	*record.Recorder
	tokens []traces.Token
	seq    int // windows so far
	units  int
	layers []([256]int64) // values by magnitude code
	active int64

	// of a predictor: units that could be named, that were active, and its errors
	asked, truly, missed, spurious int64
}

func newCounts(m *session.Session) *counts {
	s := m.Weights.Shape
	n := &counts{seq: -1, units: s.DFFN, layers: make([][256]int64, s.Layers)}
	n.Recorder = record.New(n, s.Layers, mask.Words(s.DFFN))
	return n
}

// Layer implements engine.Observer.
func (n *counts) Layer(ev *engine.LayerEvent) error {
	for _, v := range ev.Values {
		if v != 0 {
			n.layers[ev.Layer][traces.MagnitudeCode(v)]++
			n.active++
		}
	}
	if ev.Need == nil || ev.True == nil {
		return n.Recorder.Layer(ev)
	}
	n.asked += int64(n.units)
	n.truly += int64(ev.True.Count())
	n.missed += int64(ev.True.CountAndNot(ev.Need))
	n.spurious += int64(ev.Need.CountAndNot(ev.True))
	// What is read is what was named.
	named := *ev
	named.Active = ev.Need
	return n.Recorder.Layer(&named)
}

// Append implements record.Appender: every window of the text is a sequence.
func (n *counts) Append(t *traces.Token) error {
	if t.Pos == 0 {
		n.seq++
	}
	own := traces.Token{Seq: uint32(n.seq), Pos: t.Pos, Phase: t.Phase, ID: t.ID,
		Active: make([]mask.Mask, len(t.Active))}
	for l, mask := range t.Active {
		own.Active[l] = slices.Clone(mask)
	}
	n.tokens = append(n.tokens, own)
	return nil
}

// share is the mean share of active units.
func (n *counts) share() float64 {
	return float64(n.active) / float64(len(n.tokens)*len(n.layers)*n.units)
}

// cut returns, for each layer, the threshold that leaves at most a share of the units, at the
// resolution of the codes (a factor of 2^(1/8)).
func (n *counts) cut(share float64) []float32 {
	list := make([]float32, len(n.layers))
	most := int64(share * float64(len(n.tokens)*n.units))
	for l := range n.layers {
		kept, code := int64(0), 255
		for ; code >= 0 && kept+n.layers[l][code] <= most; code-- {
			kept += n.layers[l][code]
		}
		if code >= 0 { // codes above this one stay; values of code c are below the floor of c+1
			list[l] = math.Nextafter32(float32(traces.MagnitudeFloor(uint8(min(code+1, 255)))), 0)
		}
	}
	return list
}

func shareText(share float64) string { return document.Sig3(100*share) + " %" }

// evalTable is the table of a terminal.
func evalTable(doc *evaluation) *document.Table {
	t := &document.Table{Columns: []document.Column{
		{Name: "neurons"}, {Name: "active", Align: document.Right}, {Name: "perplexity",
			Align: document.Right}, {Name: "change", Align: document.Right},
		{Name: "same token", Align: document.Right}, {Name: "MB/token", Align: document.Right},
	}}
	if doc.Device != "" {
		t.Columns = append(t.Columns, document.Column{Name: "ms/token, simulated",
			Align: document.Right})
	}
	for _, r := range doc.Rows {
		name := "all that are not zero"
		switch {
		case r.Predictor != "":
			name = "named by a " + r.Predictor + " predictor (lossy)"
		case r.Lossy:
			name = "largest " + shareText(r.Share) + " (lossy)"
		}
		cells := []string{
			name, shareText(r.Active), strconv.FormatFloat(r.Perplexity, 'f', 3, 64),
			fmt.Sprintf("%+.2f %%", 100*(r.Perplexity/doc.Rows[0].Perplexity-1)),
			shareText(r.Agreement), document.Sig3(r.Bytes / 1e6),
		}
		if r.PerToken != nil {
			cells = append(cells, document.Sig3(float64(*r.PerToken)/1e6))
		}
		t.Add(cells...)
	}
	return t
}

// plotEval draws perplexity over bytes per token.
func plotEval(path string, doc *evaluation) error {
	var points []report.Point
	for _, r := range doc.Rows {
		label := "dense"
		if r.Predictor != "" {
			label = "predictor"
		} else if r.Lossy {
			label = shareText(r.Share)
		}
		points = append(points, report.Point{X: r.Bytes / 1e6, Y: r.Perplexity, Label: label})
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	err = report.WriteParetoSVG(f, fmt.Sprintf("MB read per token, window of %d", doc.Window),
		"perplexity", points)
	if closed := f.Close(); err == nil {
		err = closed
	}
	return err
}

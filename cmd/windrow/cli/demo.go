package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/windrow-sim/windrow/cmd/windrow/report"
	"github.com/windrow-sim/windrow/devicemodels"
	"github.com/windrow-sim/windrow/engine"
	"github.com/windrow-sim/windrow/engine/flashio"
	"github.com/windrow-sim/windrow/engine/model"
	"github.com/windrow-sim/windrow/engine/session"
	"github.com/windrow-sim/windrow/engine/tokenizer"
	"github.com/windrow-sim/windrow/internal/decisions/layout"
	"github.com/windrow-sim/windrow/internal/decisions/policy"
	"github.com/windrow-sim/windrow/internal/document"
	"github.com/windrow-sim/windrow/internal/ioengine"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/record"
	"github.com/windrow-sim/windrow/replay"
	"github.com/windrow-sim/windrow/replay/probe"
	"github.com/windrow-sim/windrow/sim"
	"github.com/windrow-sim/windrow/traces"
	"github.com/windrow-sim/windrow/traces/compare"
	"github.com/windrow-sim/windrow/traces/shapes"
	"github.com/windrow-sim/windrow/traces/synth"
)

// demoPrompts are recorded when no others are named.
const demoPrompts = "examples/prompts/tales.txt"

func demoCommand(e *env) *cli.Command {
	return &cli.Command{
		Name:  "demo",
		Usage: "the whole loop on the shipped model and this machine's own disk",
		Description: "Packs and runs the shipped model, records its trace, and checks that a " +
			"flash-resident run equals the dense one bit by bit. Then makes a\n" +
			"random model of OPT-1.3B's shape (fewer layers where space or write speed is " +
			"short; removed at the end), measures the disk,\n" +
			"predicts how a trace runs on it, runs it for real, and compares. About a minute.\n\n" +
			examples("windrow demo --like opt-125m --measure-tokens 12 --budget 1s --dir "+
				"demo-small"),
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "source", Value: "examples/models/tales",
				Usage: "Hugging Face `DIR` of the model that runs"},
			preset(shared("prompts"), demoPrompts),
			&cli.StringFlag{Name: "dir", Value: "demo", Usage: "`DIR` on the disk to measure, " +
				"for everything that the demo makes"},
			preset(shared("like"), "opt-1.3b"),
			shared("measure-tokens"),
			shared("window"),
			defaulting(shared("budget"), 8*time.Second),
			shared("seed"),
		},
		Action: e.demo,
	}
}

// demo is the state of one demonstration; its methods are the stages, in order.
type demo struct {
	e      *env
	c      *cli.Context
	ctx    context.Context
	dir    string
	seed   uint64
	window int
	tokens int

	text      string // what the shipped model wrote
	stats     *report.TraceStats
	image     *model.Image // of the large model
	trace     *traces.Memory
	device    *devicemodels.Device
	engine    flashio.Engine
	simulated *traces.Run
	measured  *replay.Result

	result demoResult
}

// demoResult is the document of --json.
type demoResult struct {
	Model         string          `json:"model"`
	Large         string          `json:"large_model"`
	Tokens        int             `json:"tokens"`
	DenseEqual    bool            `json:"dense_equal"`
	CountersEqual bool            `json:"counters_equal"`
	BytesEqual    bool            `json:"bytes_equal"`
	Measured      demoRate        `json:"measured"`
	Simulated     demoRate        `json:"simulated"`
	ErrorPercent  float64         `json:"error_percent"`
	DriftPercent  float64         `json:"drift_percent"`
	Verdict       compare.Verdict `json:"verdict"`
	Reasons       []string        `json:"reasons"`
	Mode          string          `json:"io_mode"`
	Report        string          `json:"report"`
}

type demoRate struct {
	TokensPerS float64 `json:"tokens_per_s"`
}

func (e *env) demo(c *cli.Context) error {
	d := &demo{e: e, c: c, ctx: c.Context, dir: c.String("dir"), seed: c.Uint64("seed"),
		window: c.Int("window"), tokens: c.Int("measure-tokens")}
	if d.tokens < calibrationTokens+1 {
		return usageError("--measure-tokens %d: it must be above %d", d.tokens, calibrationTokens)
	}
	if _, _, err := shapes.Lookup(c.String("like")); err != nil {
		return usageError("--like: %v", err)
	}
	if err := d.small(c.String("source"), cmp.Or(c.String("prompts"), demoPrompts)); err != nil {
		return err
	}
	if !d.result.DenseEqual { // before anything that the host may refuse
		return errors.New("demo: flash-resident logits differ from dense ones; every bit must " +
			"be equal")
	}
	large := filepath.Join(d.dir, "large.flash.safetensors")
	defer os.Remove(large)
	if err := d.large(c.String("like"), large); err != nil {
		return err
	}
	defer d.image.Close()
	if err := d.measure(c.Duration("budget")); err != nil {
		return err
	}
	if err := d.predictAndRun(); err != nil {
		return err
	}
	if err := d.report(); err != nil {
		return err
	}
	return d.print(c.Bool("json"))
}

// small packs and runs the shipped model, records its trace, and compares flash-resident with dense
// logits.
func (d *demo) small(source, prompts string) error {
	tok, err := tokenizer.Load(source)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("demo: there is no model in %s; run the demo in the repository's "+
			"folder, or name a model with --source: %w", source, fs.ErrNotExist)
	} else if err != nil {
		return err
	}
	text, err := tok.MarshalText()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(d.dir, 0o755); err != nil {
		return usageError("--dir: %v", err)
	}
	image := filepath.Join(d.dir, "tales.flash.safetensors")
	d.e.note("pack %s", source)
	if _, err := model.Pack(d.ctx, source, image, model.PackOptions{Name: filepath.Base(source),
		Tokenizer: text}); err != nil {
		return err
	}
	m, err := session.Open(session.Config{Model: image})
	if err != nil {
		return err
	}
	defer m.Close()
	d.result.Model = m.Image.Name
	list, err := session.ReadPrompts(prompts, 4)
	if err != nil {
		return err
	}
	out := filepath.Join(d.dir, "tales.trace.arrow")
	d.e.note("record %d prompts", len(list))
	p := d.e.startProgress("record (prompts)")
	cfg := record.DefaultConfig()
	cfg.Prompts, cfg.N, cfg.Out, cfg.Tool, cfg.Progress = list, 48, out, Tool, p.update
	cfg.Sampling = engine.Sampling{Temperature: 0.7, TopP: 0.9, Seed: d.seed}
	_, err = record.Run(d.ctx, m, cfg)
	p.done()
	if err != nil {
		return err
	}
	return d.checkExact(m, out)
}

// checkExact runs the recorded tokens densely and from flash and compares every logit.
func (d *demo) checkExact(m *session.Session, path string) error {
	tr, err := d.e.openTrace(path)
	if err != nil {
		return err
	}
	defer tr.Close()
	if d.stats, err = summarise(tr); err != nil {
		return err
	}
	dense, err := m.Resident()
	if err != nil {
		return err
	}
	reader, err := flashio.Open(m.Image.Path, flashio.Options{})
	if err != nil {
		return err
	}
	flash, _, err := replay.NewFlash(tr, tr.Tokens(), m.Weights, m.Image.Geometry(), reader,
		replay.Config{Policy: policy.SlidingWindow(d.window), Layout: layout.Options{
			Coalesce: true}})
	if err != nil {
		reader.Close()
		return err
	}
	defer flash.Close()
	d.e.note("compare flash-resident with dense logits: %s", flash.Mode().String())
	a, err := engine.New(m.Weights, dense, engine.Config{})
	if err != nil {
		return err
	}
	defer a.Close()
	b, err := engine.New(m.Weights, flash, engine.Config{})
	if err != nil {
		return err
	}
	defer b.Close()
	d.result.DenseEqual, d.text, err = sameLogits(d.ctx, tr, a, b, m.Tokenizer)
	return err
}

// sameLogits runs a trace's tokens through both engines and reports whether all logits are
// bit-equal, and the text of the first sequence.
func sameLogits(ctx context.Context, tr *traces.Reader, a, b *engine.Engine,
	tok *tokenizer.Tokenizer) (bool, string, error) {
	var t traces.Token
	var ids []uint32
	for i := range tr.Tokens() {
		if err := errors.Join(ctx.Err(), tr.Token(i, &t)); err != nil {
			return false, "", err
		}
		if t.Pos == 0 {
			a.Reset()
			b.Reset()
		}
		if t.Seq == 0 {
			ids = append(ids, t.ID)
		}
		token := engine.Token{Seq: int(t.Seq), Pos: int(t.Pos), ID: t.ID, Masks: t.Active}
		x, err := a.Forward(token)
		if err != nil {
			return false, "", err
		}
		y, err := b.Forward(token)
		if err != nil {
			return false, "", err
		}
		for j := range x {
			if math.Float32bits(x[j]) != math.Float32bits(y[j]) {
				return false, "", nil
			}
		}
	}
	return true, tok.DecodeText(ids), nil
}

// large makes the random model and its trace.
func (d *demo) large(like, path string) error {
	shape, info, err := shapes.Lookup(like)
	if err != nil {
		return err
	}
	layers, why, err := affordableLayers(d.dir, shape)
	if err != nil {
		return err
	}
	if layers < 1 && info.Name != smallestShape {
		d.e.note("%s is too large here, since %s: taking %s", info.Name, why, smallestShape)
		return d.large(smallestShape, path)
	}
	if layers < 1 {
		return fmt.Errorf("demo: %w: there is no room for one layer of %s, since %s; name a "+
			"folder on another disk with --dir", flashio.ErrEnvironment, info.Name, why)
	}
	if layers < shape.Layers {
		d.e.note("%s: %d of %d layers, since %s", info.Name, layers, shape.Layers, why)
	}
	shape.Layers = layers
	if d.image, err = d.e.synthImage(d.ctx, shape, info.Name, d.seed, path); err != nil {
		return err
	}
	d.result.Large = fmt.Sprintf("%s, %d layers", d.image.Name, layers)
	d.e.note("%s: %s on flash", d.result.Large, d.image.BundleBytes())
	opt := synth.Options{Like: info.Name, Layers: layers, Tokens: d.tokens, Seed: d.seed}
	if d.trace, err = synth.Collect(opt); err != nil {
		opt.ActiveShare = assumedShare
		d.e.note("note: no active share is published for %s; its trace has %.3g %%, as OPT-6.7B",
			info.Name, 100*assumedShare)
		d.trace, err = synth.Collect(opt)
	}
	return err
}

// assumedShare is the active share of OPT-6.7B (LLM in a flash, Table 6, mean over the layers), for
// shapes without a published one.
const assumedShare = 0.033

// affordableLayers bounds the size of the large model by space and by what can be written in a few
// seconds; why says which of the two. Less than one means that not even a layer fits.
func affordableLayers(dir string, s traces.Shape) (layers int, why string, err error) {
	rate, err := writeRate(dir)
	if err != nil {
		return 0, "", err
	}
	const patience = 12 * units.Second
	limit, why := units.Bytes(float64(rate)*patience.Seconds()), fmt.Sprintf("the disk writes %v",
		rate)
	if free, ok := freeSpace(dir); ok && free/3 < limit {
		limit, why = free/3, fmt.Sprintf("%v are free", free)
	}
	perLayer := units.Bytes(s.DFFN)*s.RecordBytes() + s.AttentionBytes()
	fixed := s.HeadBytes() + units.Bytes(s.MaxPos*s.DModel*s.DTypeSize)
	return min(int((limit-fixed)/perLayer), s.Layers), why, nil
}

// smallestShape is taken when the disk has no room, or no patience, for the large one.
const smallestShape = "OPT-125M"

// writeRate writes and syncs a little to see how fast the disk takes it.
func writeRate(dir string) (units.Rate, error) {
	f, err := os.CreateTemp(dir, ".windrow-demo-*")
	if err != nil {
		return 0, fmt.Errorf("demo: %w", err)
	}
	defer os.Remove(f.Name())
	defer f.Close()
	block := make([]byte, 32*units.MiB)
	begin := time.Now()
	if _, err := f.Write(block); err != nil {
		return 0, fmt.Errorf("demo: %w", err)
	}
	if err := f.Sync(); err != nil {
		return 0, fmt.Errorf("demo: %w", err)
	}
	return units.Bytes(len(block)).Over(units.Nanos(time.Since(begin))), nil
}

// measure probes the disk on the large image, which is only read.
func (d *demo) measure(budget time.Duration) error {
	cfg := probe.DefaultConfig(d.image.Path)
	cfg.Budget, cfg.Seed, cfg.MaxDriftPct = budget, d.seed, anyDrift
	var err error
	if cfg.Chunks, err = chunksAbout(d.image.Path, d.image.Geometry().Record); err != nil {
		return err
	}
	cfg.Depths = []int{1, demoParallel / 4, demoParallel, 2 * demoParallel}
	cfg.Engines = []flashio.Engine{flashio.Best()}
	device, err := d.e.probeDevice(d.ctx, cfg)
	if err != nil {
		return err
	}
	d.device = device
	engineName, err := device.ReadEngine(ioengine.Auto)
	if err != nil {
		return err
	}
	d.engine = flashio.Engine(engineName)
	d.e.note("disk: %s, LTFB %v, link %v, fit within %s %% on average", device.Fit.Mode,
		device.Flash.LTFB, device.Flash.LinkRate, document.Sig3(device.Fit.MeanAbsPct))
	return nil
}

const (
	// anyDrift keeps a restless disk: the demo goes on, and the verdict says what the disk did.
	anyDrift = 1e6
	// demoParallel is the number of threads, or the queue depth, of the demo.
	demoParallel = 32
)

// predictAndRun calibrates the host on a few tokens with another window, simulates, and replays.
func (d *demo) predictAndRun() error {
	w, err := d.image.Weights()
	if err != nil {
		return err
	}
	options := layout.Options{Coalesce: true, Align: 4096}
	window := d.window - 1 // shorter, so that rows leave within the few tokens
	if window < 1 {
		window = d.window + 1
	}
	io := flashio.Options{Engine: d.engine, Parallel: demoParallel}
	if err := calibrateHost(d.ctx, d.device, d.trace, d.image, w, io, window); err != nil {
		return err
	}
	if err := devicemodels.Save(filepath.Join(d.dir, "this.device.yaml"), d.device); err != nil {
		return err
	}
	d.simulated, err = sim.Run(d.trace, sim.Config{
		Policy: policy.SlidingWindow(d.window), Engine: string(d.engine), Parallel: demoParallel,
		Layout: options,
		Device: d.device, Geometry: d.image.Geometry()})
	if err != nil {
		return err
	}
	reader, err := flashio.Open(d.image.Path, io)
	if err != nil {
		return err
	}
	p := d.e.startProgress("replay (tokens)")
	d.measured, err = replay.Run(d.ctx, d.trace, w, d.image.Geometry(), reader, replay.Config{
		Policy: policy.SlidingWindow(d.window), Layout: options, MaxTokens: d.tokens,
		ReferenceEvery: 4, Seed: d.seed,
		Progress: p.update})
	p.done()
	if err != nil {
		return err
	}
	d.simulated.Meta.Tool, d.measured.Run.Meta.Tool = Tool, Tool
	d.measured.Run.Meta.Device = d.measured.Mode.String()
	if err := traces.WriteRun(filepath.Join(d.dir, "simulated.run.arrow"),
		d.simulated); err != nil {
		return err
	}
	return traces.WriteRun(filepath.Join(d.dir, "measured.run.arrow"), d.measured.Run)
}

// report compares and writes report.html with its twins.
func (d *demo) report() error {
	drift := d.measured.Drift.Percent
	comparison, err := compare.Compare(d.simulated, d.measured.Run, compare.Options{SkipTokens: 1})
	if err != nil {
		return err
	}
	r := &d.result
	r.Tokens, r.CountersEqual, r.BytesEqual = comparison.Tokens, comparison.CountersEqual,
		comparison.BytesEqual
	r.Measured.TokensPerS, r.Simulated.TokensPerS = comparison.MeasuredTokensPerS,
		comparison.SimulatedTokensPerS
	r.ErrorPercent, r.DriftPercent, r.Verdict, r.Reasons = comparison.ErrorPercent, drift,
		comparison.Verdict, comparison.Reasons
	r.Mode, r.Report = d.measured.Mode.String(), filepath.Join(d.dir, "report.html")
	data := &report.Data{
		Name: "report", Title: "windrow demo", Comparison: comparison, Trace: d.stats,
		FlashRate: d.device.Flash.LinkRate,
		Warnings:  d.measured.Run.Meta.Warnings,
		Runs: []report.LabeledRun{{Label: "simulated", Run: d.simulated}, {Label: "measured",
			Run: d.measured.Run}},
		Facts: []document.Fact{
			{Key: "trace statistics", Value: "recorded on " + r.Model}, {Key: "model of the runs",
				Value: r.Large},
			{Key: "reads", Value: r.Mode}, {Key: "window", Value: fmt.Sprint(d.window)},
			{Key: "seed", Value: fmt.Sprint(d.seed)},
			{Key: "flash-resident equals dense", Value: fmt.Sprint(r.DenseEqual)},
			{Key: "device model", Value: fmt.Sprintf("%s, mean fit error %s %%, drift during "+
				"the probe %s %%", d.device.Name, document.Sig3(d.device.Fit.MeanAbsPct),
				document.Sig3(d.device.Fit.DriftPct))},
		},
	}
	quiet := *d.e
	quiet.stdout = io.Discard // the path goes to the end of the demo
	for _, name := range []string{"report.html", "report.md", "report.json"} {
		if err := quiet.writeReport(d.c, data, filepath.Join(d.dir, name)); err != nil {
			return err
		}
	}
	return nil
}

// print ends the demo. Counters or bytes that differ are a failure; a noisy disk is none, and
// neither is an error of the simulated time: the verdict says so.
func (d *demo) print(asJSON bool) error {
	r := &d.result
	if asJSON {
		if err := printJSON(d.e.stdout, r); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(d.e.stdout, "\n%s wrote: %s\n\n", r.Model, d.text)
		t := &document.Table{Columns: []document.Column{{Name: "what"}, {Name: "result"}}}
		t.Add("flash-resident logits equal dense", fmt.Sprint(r.DenseEqual))
		t.Add("model of the runs", r.Large)
		t.Add("reads", r.Mode)
		t.Add("measured", document.Sig3(r.Measured.TokensPerS)+" tokens/s")
		t.Add("simulated", document.Sig3(r.Simulated.TokensPerS)+" tokens/s")
		t.Add("error", fmt.Sprintf("%+.1f %%", r.ErrorPercent))
		t.Add("counters and bytes equal", fmt.Sprint(r.CountersEqual && r.BytesEqual))
		t.Add("drift of the disk meanwhile", document.Sig3(r.DriftPercent)+" %")
		t.Add("verdict", string(r.Verdict))
		t.Add("report", r.Report)
		if err := report.TableText(d.e.stdout, t); err != nil {
			return err
		}
	}
	if !r.CountersEqual || !r.BytesEqual {
		return fmt.Errorf("demo: counters equal: %v; bytes equal: %v; simulation and replay must "+
			"agree on both", r.CountersEqual, r.BytesEqual)
	}
	return nil
}

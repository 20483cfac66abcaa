package cli

import (
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/windrow-sim/windrow/engine/tokenizer"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/sim/serving"
	"github.com/windrow-sim/windrow/traces"
	"github.com/windrow-sim/windrow/traces/arrivals"
)

// trafficRequests is how many requests are drawn where there is no file of them.
const trafficRequests = 200

func trafficCommand(e *env) *cli.Command {
	return &cli.Command{
		Name: "traffic",
		Usage: "serve requests as they come: latencies, goodput, and the rate that a device can " +
			"serve",
		Description: "Requests come at the times of --arrivals (Azure, BurstGPT, Mooncake, " +
			"vidur, ShareGPT; see \"windrow trace arrivals\"), or as a Poisson\n" +
			"process of --rate. A step computes one token of every running sequence and up to " +
			"--prefill-chunk prompt tokens, and needs the union of\n" +
			"their masks; requests join between steps, first come, first served. Each request's " +
			"masks come from a place of the trace drawn by its\n" +
			"number. TTFT includes waiting; TPOT is a request's mean gap between tokens, ITL is " +
			"every gap; goodput counts requests that meet\n" +
			"--slo-ttft and --slo-tpot. --find-rate searches the largest Poisson rate at which " +
			"--slo-share of them do. Unless the device states a peak\n" +
			"of arithmetic, or --gflops does, tokens of one step are computed one by one, which " +
			"is a bound from above; --compute once is one from below.\n\n" +
			examples("windrow traffic -t opt.trace.arrow -d m1-max --arrivals azure.csv "+
				"--requests 2 --speedup 10",
				"windrow traffic -t opt.trace.arrow -d m1-max --rate 0.1 --requests 20 "+
					"--prompt-tokens 32 --output-tokens 8 --gflops 1000",
				"windrow traffic -t opt.trace.arrow -d m1-max --find-rate --requests 20 "+
					"--prompt-tokens 32 --output-tokens 8 --compute once"),
		Flags: with(simFlags(), loadFlags(), serverFlags(), []cli.Flag{
			&cli.BoolFlag{Name: "find-rate", Usage: "search the largest Poisson rate that meets " +
				"the objectives"},
			&cli.Float64Flag{Name: "slo-share", Value: 0.9,
				Usage: "`SHARE` of the requests that have to, above 0 up to 1"},
			shared("seed")}),
		Action: e.traffic,
	}
}

// loadFlags say which requests come, and when.
func loadFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "arrivals", Usage: "`FILE` of requests"},
		shared("arrivals-format"),
		shared("sort"),
		shared("skip-bad"),
		shared("tokenizer"),
		&cli.Int64Flag{Name: "requests", Usage: "serve `N` requests",
			DefaultText: fmt.Sprintf("all of a file, else %d", trafficRequests)},
		&cli.Float64Flag{Name: "speedup", Value: 1, Usage: "divide the times of arrival by `X`"},
		&cli.StringFlag{Name: "rate", Usage: "Poisson arrivals, `R` per second on " +
			"average (or 40/h); inf: all at once", DefaultText: "the file's times"},
		&cli.IntFlag{Name: "prompt-tokens", Value: 512, Usage: "without a file: prompts of `N` " +
			"tokens on average"},
		&cli.IntFlag{Name: "output-tokens", Value: 128, Usage: "without a file: outputs of `N` " +
			"tokens on average"},
		&cli.Float64Flag{Name: "length-spread", Usage: "without a file: log-normal lengths with " +
			"a standard deviation of `S` of their logarithm", DefaultText: "all alike"},
	}
}

// serverFlags say how they are served.
func serverFlags() []cli.Flag {
	return []cli.Flag{
		shared("max-batch"),
		defaulting(shared("prefill-chunk"), 256),
		&cli.StringFlag{Name: "kv-memory", Usage: "`SIZE` of the memory for keys and values, " +
			"reserved for a whole request", DefaultText: "no limit"},
		&cli.StringFlag{Name: "slo-ttft", Value: "2s",
			Usage: "a good request has its first token within `TIME`; 0s: whenever"},
		&cli.StringFlag{Name: "slo-tpot", Value: "200ms",
			Usage: "and its others every `TIME` on average; 0s: whenever"},
		&cli.StringFlag{Name: "deadline", Usage: "stop the server at `TIME`",
			DefaultText: "when all are served"},
		&cli.StringFlag{Name: "compute", Usage: "charge the arithmetic of several tokens by " +
			"`WAY`: peak, once or each", DefaultText: "peak where it is known, else each"},
		&cli.Float64Flag{Name: "gflops", Usage: "peak of arithmetic, `N` 10⁹ operations per " +
			"second, in place of the device's"},
		&cli.BoolFlag{Name: "events", Usage: "time every read as an event, also where a table " +
			"is within a hundredth"},
	}
}

// trafficResult is the document of --json.
type trafficResult struct {
	Tool   string          `json:"tool"`
	Trace  string          `json:"trace"`
	SHA256 string          `json:"trace_sha256"`
	Model  string          `json:"model"`
	Device string          `json:"device"`
	Server trafficServer   `json:"server"`
	Load   trafficLoad     `json:"load"`
	Result *serving.Result `json:"result,omitempty"`
	Rate   *serving.Rate   `json:"rate,omitempty"`
}

// trafficServer is how requests are served.
type trafficServer struct {
	Mask     string      `json:"mask"`
	Policy   string      `json:"policy"`
	Engine   string      `json:"engine"`
	Parallel int         `json:"parallel"`
	MaxBatch int         `json:"max_batch"`
	Chunk    int         `json:"prefill_chunk_tokens"`
	KV       units.Bytes `json:"kv_memory_bytes"` // 0 = no limit
	TTFT     units.Nanos `json:"slo_ttft_ns"`     // 0 = none
	TPOT     units.Nanos `json:"slo_tpot_ns"`     // 0 = none
	Deadline units.Nanos `json:"deadline_ns"`     // 0 = none
	Seed     uint64      `json:"seed"`
}

// trafficLoad is which requests come.
type trafficLoad struct {
	File     string          `json:"file,omitempty"`
	Format   arrivals.Format `json:"format,omitempty"`
	Times    string          `json:"times"` // the file's, Poisson, or all at once
	Rate     float64         `json:"requests_per_s,omitempty"`
	Speedup  float64         `json:"speedup"`
	Requests int64           `json:"requests"`
	Prompt   int             `json:"prompt_tokens,omitempty"` // without a file
	Output   int             `json:"output_tokens,omitempty"`
	Spread   float64         `json:"length_spread,omitempty"`

	path string
	opt  arrivals.Options
	seed uint64
	file *arrivals.Reader // open, or nil
}

// The times of a load.
const (
	timesOfFile = "file"
	timesRandom = "poisson"
	timesAtOnce = "all at once"
)

func (e *env) traffic(c *cli.Context) error {
	load, err := trafficLoadOf(c)
	if err != nil {
		return err
	}
	tr, err := e.openTrace(c.String("trace"))
	if err != nil {
		return err
	}
	defer tr.Close()
	cfg, err := e.trafficConfig(c, tr.Header())
	if err != nil {
		return err
	}
	if err := needPredicted(c, tr); err != nil {
		return err
	}
	doc := &trafficResult{Tool: Tool, Trace: filepath.Base(c.String("trace")), SHA256: tr.SHA256(),
		Model: tr.Header().Model, Device: cfg.Sim.Device.Name}
	residency := cfg.Sim.Policy
	doc.Server = trafficServer{
		Mask: maskName(cfg.Sim.Predicted), Policy: residency.String(), Engine: cfg.Sim.Engine,
		Parallel: cfg.Sim.Parallel, MaxBatch: cfg.MaxBatch, Chunk: cfg.Chunk,
		KV: cfg.KV, TTFT: cfg.TTFT, TPOT: cfg.TPOT, Deadline: cfg.Deadline, Seed: cfg.Seed,
	}
	if err := e.countLoad(c, load); err != nil {
		return err
	}
	doc.Load = *load
	defer load.close()
	p := &progress{off: true}
	cfg.Progress = func(done int64) { p.update(int(done), int(load.Requests)) }
	server, err := serving.New(tr, *cfg)
	if err != nil {
		return arrivalsError(err)
	}
	if c.Bool("find-rate") {
		doc.Rate, err = server.FindRate(c.Context, c.Float64("slo-share"),
			func(rate float64) (serving.Source, error) {
				p.done()
				p = e.startProgress(fmt.Sprintf("traffic at %s (requests)", rateText(rate)))
				return load.source(rate)
			})
	} else {
		p = e.startProgress("traffic (requests)")
		var src serving.Source
		if src, err = load.source(load.poisson()); err == nil {
			doc.Result, err = server.Run(c.Context, src)
		}
	}
	p.done()
	if doc.Result == nil && doc.Rate == nil {
		return arrivalsError(err)
	}
	if printed := e.printTraffic(c, doc); printed != nil {
		return printed
	}
	return err // of an interruption, after what there was by then
}

func maskName(predicted bool) string {
	if predicted {
		return "predicted"
	}
	return "true"
}

// trafficConfig reads the flags of the server.
func (e *env) trafficConfig(c *cli.Context, head *traces.Header) (*serving.Config, error) {
	sim, err := e.simConfig(c, head)
	if err != nil {
		return nil, err
	}
	if c.IsSet("gflops") {
		peak := c.Float64("gflops")
		if !(peak > 0) || math.IsInf(peak, 0) {
			return nil, usageError("--gflops %g: it must be above 0", peak)
		}
		sim.Device.Host.ComputeGFLOPS = peak
	}
	cfg := &serving.Config{
		Sim: sim, MaxBatch: c.Int("max-batch"), Chunk: c.Int("prefill-chunk"),
		Compute: serving.Compute(c.String("compute")), Events: c.Bool("events"),
		Seed: c.Uint64("seed"),
	}
	if text := c.String("kv-memory"); text != "" {
		if cfg.KV, err = units.ParseBytes(text); err != nil || cfg.KV < 1 {
			return nil, usageError("--kv-memory %q: a size like 2GiB is wanted", text)
		}
	}
	for _, f := range []struct {
		name string
		to   *units.Nanos
	}{{"slo-ttft", &cfg.TTFT}, {"slo-tpot", &cfg.TPOT}, {"deadline", &cfg.Deadline}} {
		if text := c.String(f.name); text != "" {
			if *f.to, err = units.ParseNanos(text); err != nil || *f.to < 0 {
				return nil, usageError("--%s %q: a time like 200ms is wanted", f.name, text)
			}
		}
	}
	if c.IsSet("deadline") && cfg.Deadline == 0 {
		return nil, usageError("--deadline %s: nothing is served before it", c.String("deadline"))
	}
	return cfg, nil
}

// trafficLoadOf reads the flags of the load.
func trafficLoadOf(c *cli.Context) (*trafficLoad, error) {
	l := &trafficLoad{path: c.String("arrivals"), Speedup: c.Float64("speedup"),
		Requests: c.Int64("requests"), Times: timesOfFile, seed: c.Uint64("seed")}
	var err error
	if l.Rate, err = requestRate(c); err != nil {
		return nil, err
	}
	switch {
	case c.IsSet("requests") && l.Requests < 1:
		return nil, usageError("--requests %d: at least 1 is needed", l.Requests)
	case !(l.Speedup > 0) || math.IsInf(l.Speedup, 0):
		return nil, usageError("--speedup %g: it must be above 0", l.Speedup)
	case c.Bool("find-rate") && (c.IsSet("rate") || c.IsSet("speedup") || c.IsSet("deadline")):
		return nil, usageError("--find-rate searches the rate: leave out --rate, --speedup and " +
			"--deadline")
	case c.IsSet("rate") && c.IsSet("speedup"):
		return nil, usageError("--speedup is about the times of a file, which --rate replaces; " +
			"give one of them")
	case c.IsSet("slo-share") && !c.Bool("find-rate"):
		return nil, usageError("--slo-share is about --find-rate")
	}
	if c.Bool("find-rate") || l.Rate > 0 {
		l.Times = timesRandom
	}
	if math.IsInf(l.Rate, 1) {
		l.Times, l.Rate = timesAtOnce, 0
	}
	if l.path != "" {
		for _, name := range []string{"prompt-tokens", "output-tokens", "length-spread"} {
			if c.IsSet(name) {
				return nil, usageError("--%s: the lengths are those of --arrivals %s", name, l.path)
			}
		}
		return l, l.readOptions(c)
	}
	for _, name := range []string{"arrivals-format", "sort", "skip-bad", "tokenizer", "speedup"} {
		if c.IsSet(name) {
			return nil, usageError("--%s is about a file of requests; give one with --arrivals",
				name)
		}
	}
	if l.Times == timesOfFile {
		return nil, usageError("traffic needs --arrivals FILE, --rate R or --find-rate; see " +
			"\"windrow traffic --help\"")
	}
	l.Prompt, l.Output, l.Spread = c.Int("prompt-tokens"), c.Int("output-tokens"),
		c.Float64("length-spread")
	if l.Requests == 0 {
		l.Requests = trafficRequests
	}
	return l, nil
}

// requestRate reads --rate, in requests per second; 0 when it is not given.
func requestRate(c *cli.Context) (float64, error) {
	text := c.String("rate")
	if text == "" {
		return 0, nil
	}
	number, hourly := strings.CutSuffix(text, "/h")
	rate, err := strconv.ParseFloat(strings.TrimSuffix(number, "/s"), 64)
	if err != nil || !(rate > 0) {
		return 0, usageError("--rate %q: a number of requests above 0 is wanted: 0.5 (per "+
			"second), 40/h or inf", text)
	}
	if hourly {
		rate /= 3600
	}
	return rate, nil
}

// readOptions reads how to read the file.
func (l *trafficLoad) readOptions(c *cli.Context) error {
	l.File, l.opt = filepath.Base(l.path), arrivals.Options{Sort: c.Bool("sort"),
		SkipBad: c.Int("skip-bad")}
	var err error
	if name := c.String("arrivals-format"); name != "" {
		if l.opt.Format, err = arrivals.ParseFormat(name); err != nil {
			return usageError("--arrivals-format: %v", err)
		}
	}
	if folder := c.String("tokenizer"); folder != "" {
		t, err := tokenizer.Load(folder)
		if err != nil {
			return err
		}
		l.opt.Count = func(text string) int { return len(t.EncodePlain(text)) }
	}
	return nil
}

// countLoad reads a file once, to know its format and how far the simulation is, and to refuse a
// bad line before it begins.
func (e *env) countLoad(c *cli.Context, l *trafficLoad) error {
	if l.path == "" {
		return nil
	}
	r, err := arrivals.Open(l.path, l.opt)
	if err != nil {
		return arrivalsError(err)
	}
	defer r.Close()
	l.Format = r.Stats().Format
	if l.Times == timesOfFile && !l.Format.HasTimes() {
		return usageError("--arrivals %s: %s has no times; give --rate R", l.path, l.Format)
	}
	if l.Requests > 0 {
		return nil
	}
	s, err := arrivals.Summarize(c.Context, r)
	if err != nil {
		return arrivalsError(err)
	}
	if l.Requests = s.Requests; l.Requests == 0 {
		return inputError("%s holds no requests that ask for a token", l.path)
	}
	return nil
}

// poisson is the rate of a Poisson process; 0 when times are the file's.
func (l *trafficLoad) poisson() float64 {
	if l.Times == timesAtOnce {
		return math.Inf(1)
	}
	return l.Rate
}

// source opens the load at a rate, from its beginning; 0 for the times of the file. It closes what
// it opened before.
func (l *trafficLoad) source(rate float64) (serving.Source, error) {
	shape := serving.Shape{Requests: l.Requests, Speedup: l.Speedup, Rate: rate, Seed: l.seed}
	if l.path == "" {
		lengths, err := serving.NewLengths(l.Prompt, l.Output, l.Spread, l.seed)
		if err != nil {
			return nil, err
		}
		return serving.NewShaped(lengths, shape)
	}
	if err := l.close(); err != nil {
		return nil, err
	}
	var err error
	if l.file, err = arrivals.Open(l.path, l.opt); err != nil {
		return nil, err
	}
	return serving.NewShaped(l.file, shape)
}

// close closes the file that source opened.
func (l *trafficLoad) close() error {
	if l.file == nil {
		return nil
	}
	file := l.file
	l.file = nil
	return file.Close()
}

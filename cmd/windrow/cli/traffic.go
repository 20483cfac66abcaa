package cli

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/sim/serving"
	"github.com/windrow-sim/windrow/traces"
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
			"is a bound from above; --compute once is one from below. Where\n" +
			"--find-rate finds none, the exit code is 5.\n\n" +
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
		shared("keep-failed"),
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

func (e *env) traffic(c *cli.Context) error {
	load, err := trafficLoad(c)
	if err != nil {
		return err
	}
	tr, err := e.openTrace(c.Context, c.String("trace"))
	if err != nil {
		return err
	}
	defer tr.Close()
	server, err := e.trafficConfig(c, tr.Header())
	if err != nil {
		return err
	}
	to, done := e.tell()
	study, err := serving.Serve(c.Context, tr, serving.StudyConfig{Config: *server, Load: *load,
		FindRate: c.Bool("find-rate"), Share: c.Float64("slo-share"), Tell: to})
	done()
	switch {
	case study == nil:
		return arrivalsError(err)
	case err != nil: // interrupted: print what there was by then
		return errors.Join(e.put(c, study.Document()), err)
	}
	return e.putAnswer(c, study.Document(), study.No())
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

// trafficLoad reads the flags of the load.
func trafficLoad(c *cli.Context) (*serving.Load, error) {
	l := &serving.Load{Path: c.String("arrivals"), Speedup: c.Float64("speedup"),
		Requests: c.Int64("requests"), Times: serving.TimesOfFile, Seed: c.Uint64("seed")}
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
		l.Times = serving.TimesRandom
	}
	if math.IsInf(l.Rate, 1) {
		l.Times, l.Rate = serving.TimesAtOnce, 0
	}
	if l.Path != "" {
		for _, name := range []string{"prompt-tokens", "output-tokens", "length-spread"} {
			if c.IsSet(name) {
				return nil, usageError("--%s: the lengths are those of --arrivals %s", name, l.Path)
			}
		}
		l.Options, err = arrivalsOptions(c)
		return l, err
	}
	for _, name := range []string{"arrivals-format", "sort", "skip-bad", "keep-failed",
		"tokenizer", "speedup"} {
		if c.IsSet(name) {
			return nil, usageError("--%s is about a file of requests; give one with --arrivals",
				name)
		}
	}
	if l.Times == serving.TimesOfFile {
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

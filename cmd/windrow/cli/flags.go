package cli

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/windrow-sim/windrow/engine/session"
	"github.com/windrow-sim/windrow/internal/decisions/memory"
	"github.com/windrow-sim/windrow/internal/ioengine"
	"github.com/windrow-sim/windrow/internal/rng"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/record"
	"github.com/windrow-sim/windrow/replay/validate/demo"
	"github.com/windrow-sim/windrow/traces"
	"github.com/windrow-sim/windrow/traces/arrivals"
)

// take returns the shared flags of these names, in order. A flag
// means the same on every verb that has it: one name, one type, one usage text, one default
// (TestOneFlagOneMeaning). Flags of one verb alone stand with the verb.
func take(names ...string) []cli.Flag {
	var list []cli.Flag
	for _, name := range names {
		list = append(list, shared(name))
	}
	return list
}

// shared returns one shared flag; "trace!" is a required one.
func shared(name string) cli.Flag {
	name, required := strings.CutSuffix(name, "!")
	f := definition(name)
	if s, ok := f.(*cli.StringFlag); ok {
		s.Required = required
	}
	return f
}

// with joins lists of flags.
func with(lists ...[]cli.Flag) []cli.Flag {
	var all []cli.Flag
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

// less leaves flags out.
func less(flags []cli.Flag, names ...string) []cli.Flag {
	return slices.DeleteFunc(flags, func(f cli.Flag) bool {
		return slices.Contains(names, f.Names()[0])
	})
}

// The groups of flags that several verbs share.
var (
	// readingFlags say how rows are read, simulated or real.
	readingFlags = []string{"io", "parallel", "chunk", "gap", "no-coalesce"}
	// scheduleFlags say when reads are submitted in a simulation.
	scheduleFlags = []string{"schedule", "recall", "overfetch", "dense-prefix", "staging", "wait"}
	// engineFlags are those that only real reads know.
	engineFlags = []string{"dram", "direct", "threads"}
	// samplingFlags choose the next token.
	samplingFlags = []string{"temp", "top-k", "top-p", "min-p", "repeat-penalty", "seed"}
)

// definition holds every flag that two verbs or more have.
func definition(name string) cli.Flag {
	text := func(usage, missing string, aliases ...string) cli.Flag {
		return &cli.StringFlag{Name: name, Aliases: aliases, Usage: usage, DefaultText: missing}
	}
	number := func(usage string, value int, missing string, aliases ...string) cli.Flag {
		return &cli.IntFlag{Name: name, Aliases: aliases, Usage: usage, Value: value,
			DefaultText: missing}
	}
	word := func(usage, value string) cli.Flag {
		return &cli.StringFlag{Name: name, Usage: usage, Value: value}
	}
	real := func(usage string, value float64, missing string) cli.Flag {
		return &cli.Float64Flag{Name: name, Usage: usage, Value: value, DefaultText: missing}
	}
	is := func(usage string) cli.Flag { return &cli.BoolFlag{Name: name, Usage: usage} }

	switch name {
	// files
	case "trace":
		return text("`TRACE` to follow (*.trace.arrow)", "", "t")
	case "device":
		return text("`DEVICE` file or preset; \"windrow device list\" names the presets", "", "d")
	case "model":
		return text("flash image `IMG`, made by pack or synth model", "", "m")
	case "verify":
		return is("first compare every byte of the image with its hashes")
	case "prompts":
		return text("`FILE` with one prompt per line", "")
	case "max-input":
		return &cli.StringFlag{Name: name, Value: units.Bytes(session.MaxInput).String(),
			Usage: "read a text of at most `SIZE`, all of which is in memory"}
	case "predictor":
		return text("`FILE` of windrow train that names the neurons to compute: lossy", "")
	case "tokenizer":
		return text("`DIR` or GGUF file with the tokenizer", "")
	case "arrivals-format":
		return text("`FORMAT` of the file of requests: "+
			strings.ReplaceAll(listed(arrivals.Formats()), ",", ", "), "by its first bytes")

	// models
	case "like":
		return word("`MODEL` whose shape to take; \"list\" prints the names", "opt-6.7b")
	case "layers":
		return number("`N` layers", 0, "the model's")
	case "active":
		return real("mean active `SHARE`, for example 0.03", 0, "the trace's, or as published")
	case "context":
		return number("`N` tokens of context, which the KV cache has room for", 0, "")
	case "name":
		return text("`NAME` to write into the file", "that of its source")

	// masks and residency
	case "predicted":
		return is("use the predicted masks instead of the true ones")
	case "predictor-rank":
		return number("charge a low-rank predictor of inner dimension `R`", 0, "masks cost nothing")
	case "window":
		return number("keep the rows of the last `K` tokens in memory; of the last K steps of a "+
			"batch", 5, "", "k")
	case "policy":
		return text("keep rows by `POLICY` in place of a window: window:TOKENS,capacity:N, lru:N, "+
			"lfu:N, delta:N, hot:N+M, pages:N,ahead:M, belady:N, hybrid:N, cyclic:N, "+
			"tensors:LAYERS, all or none; N rows per layer, or a size for all layers "+
			"(lru:1GiB)", "")
	case "dram":
		return text("memory budget of `SIZE`, all parts counted: bytes (4GiB) or a share of the "+
			"model's weights (52%)", "")
	case "dense-prefix":
		return number("keep all units of the first `N` layers in memory", 0,
			"1 if a schedule or predictor looks ahead, else 0")

	// computing
	case "backend":
		return word("compute on `WHERE`: cpu, cuda (an NVIDIA GPU), metal (the GPU of a Mac), "+
			"auto "+
			"(a GPU where there is one)", "cpu")
	case "device-memory":
		return text("with a GPU: take at most `SIZE` of its memory", "all of it")
	case "observed":
		return is("with --backend cuda: wait for the GPU after every part, as replay does to " +
			"time " +
			"it")
	case "threads":
		return number("`N` compute threads", 0, "all cores")
	case "workers":
		return number("`N` worker threads; the result is the same for any number", 0, "all cores")

	// reading
	case "io":
		return word("`ENGINE` that reads: "+ioengine.Choice(), ioengine.Auto)
	case "parallel":
		return number("`N` requests in flight: "+ioengine.DepthChoice(), 0,
			ioengine.DepthDefaults())
	case "chunk":
		return text("largest request, `SIZE`, for example 64KiB; longer extents are split",
			"no limit")
	case "gap":
		return number("read and discard up to `N` records between two wanted ones", 0, "")
	case "no-coalesce":
		return is("one request per neuron, even for neighbours")
	case "align":
		return text("round requests to `SIZE`; 1B for buffered reads", "the device's alignment")
	case "direct":
		return word("bypass the page cache, `WHEN`: auto, on, off", "auto")

	// schedules
	case "schedule":
		return word("submit reads by `SCHEDULE`: demand (a layer's, after its attention), "+
			"lookahead (the next layer's, while one computes) or token (all layers' at once "+
			"after layer 0, in the background)", "demand")
	case "recall":
		return text("prefetch this `SHARE` of the needed units, 0 to 1, or those of the trace's "+
			"predicted masks (trace); the rest is read on demand", "1")
	case "overfetch":
		return real("prefetch this `SHARE` of the other units too, in vain", 0, "0")
	case "staging":
		return text("prefetch into a buffer of `SIZE`: while the rows of one half are scattered "+
			"the other is read; or unlimited, which only a simulation has",
			"the largest layer's reads")
	case "wait":
		return text("with --schedule token, layers wait for the reads of the whole token or of "+
			"their own: `WHAT` is token or layer", "token")

	// sampling
	case "temp":
		return real("`TEMPERATURE`; 0 takes the most likely token", 0, "")
	case "top-k":
		return number("only the `K` most likely tokens", 0, "all")
	case "top-p":
		return real("nucleus: the smallest set of tokens with probability `P`",
			session.DefaultSampling().TopP, "")
	case "min-p":
		return real("only tokens at least `P` times as likely as the most likely one", 0, "")
	case "repeat-penalty":
		return real("divide the logits of tokens that were there before by `R`",
			session.DefaultSampling().Penalty, "")
	case "seed":
		return &cli.Uint64Flag{Name: name, Value: rng.DefaultSeed,
			Usage: "`SEED` of everything random"}

	// generating
	case "n":
		return number("`N` tokens to generate per prompt", record.DefaultConfig().N, "")
	case "batch":
		return number("run `B` prompts side by side", 1, "")
	case "prefill-chunk":
		return number("run `N` tokens of a prompt through the model together", 1, "")
	case "no-bos":
		return is("take a text alone, without the token that begins texts")
	case "k-max":
		return number("`N` units in an active set of a centroid predictor", 0,
			"what its centroids have in common")
	case "lambda":
		return number("draft `N` tokens per verification", session.DefaultGenerate().Lambda, "")
	case "feature-kind":
		return word("`KIND` of the features that predictors learn from: "+
			strings.Join(traces.FeatureKinds(), ", "), traces.FFNInput)

	// how much
	case "max-tokens":
		return number("stop after `N` tokens", 0, "all")
	case "measure-tokens":
		return number("measure `N` tokens", demo.DefaultConfig().MeasureTokens, "")
	case "skip":
		return number("leave the first `N` tokens of every sequence, which fill the window, out "+
			"of speeds", 0, "")
	case "max-batch":
		return number("at most `N` sequences together", 16, "")

	// measuring
	case "budget":
		return &cli.DurationFlag{Name: name, Usage: "measure the disk for `DURATION`"}
	case "max-drift":
		return real("refuse a device that drifts by more than `PERCENT`", 0, "")
	case "chunks":
		return &cli.StringSliceFlag{Name: name, Usage: "read `SIZE`, repeated or with commas"}
	case "depths":
		return &cli.StringFlag{Name: name, Usage: "`N` requests in flight: numbers and ranges, " +
			"1,4 or 1..8"}

	// files to write
	case "compress":
		return word("`CODEC`: none (can be mapped without copies) or zstd", "none")
	case "resume":
		return is("go on with what an interrupted run left")

	// files of requests
	case "sort":
		return is(fmt.Sprintf("sort requests by time, in memory, up to %d of them",
			arrivals.MaxSort))
	case "skip-bad":
		return number("leave out and count up to `N` bad lines", 0, "")
	case "keep-failed":
		return is("keep requests without output tokens, which failed: their prompts are computed")
	}
	panic("cli: no shared flag is called " + name) // a verb's definition is wrong: every test fails
}

// defaulting gives a shared flag another default: a value, or words for a default that has none.
// Every use is an exception that TestOneFlagOneMeaning lists with its reason.
func defaulting(f cli.Flag, value any) cli.Flag {
	words, isWords := value.(string)
	switch f := f.(type) {
	case *cli.StringFlag:
		f.Value, f.DefaultText = "", words
	case *cli.StringSliceFlag:
		f.DefaultText = words
	case *cli.IntFlag:
		if f.DefaultText = words; !isWords {
			f.Value = value.(int)
		}
	case *cli.Float64Flag:
		if f.DefaultText = words; !isWords {
			f.Value = value.(float64)
		}
	case *cli.DurationFlag:
		f.Value = value.(time.Duration)
	}
	return f
}

// preset gives a shared flag of text another value to begin with.
func preset(f cli.Flag, value string) cli.Flag {
	if s, ok := f.(*cli.StringFlag); ok {
		s.Value, s.DefaultText = value, ""
	}
	return f
}

// sizeOrShare reads a flag that is a size (4GiB) or a share of a model's weights (52%).
func sizeOrShare(c *cli.Context, name string, weights units.Bytes) (units.Bytes, error) {
	size, err := memory.ParseBudget(c.String(name), weights)
	if err != nil {
		return 0, usageError("--%s %q: %v", name, c.String(name), err)
	}
	return size, nil
}

// maxInput reads --max-input.
func maxInput(c *cli.Context) (units.Bytes, error) {
	limit, err := units.ParseBytes(c.String("max-input"))
	if err != nil || limit < 1 {
		return 0, usageError("--max-input %q: a size (64MiB) is wanted", c.String("max-input"))
	}
	return limit, nil
}

// depthsOf reads --depths; without it they are the given ones.
func depthsOf(c *cli.Context, missing []int) ([]int, error) {
	if !c.IsSet("depths") {
		return missing, nil
	}
	list, err := units.ParseInts(c.String("depths"))
	if err != nil {
		return nil, usageError("--depths: %v", err)
	}
	if list[0] < 1 {
		return nil, usageError("--depths %s: 1 or more requests are wanted", c.String("depths"))
	}
	return list, nil
}

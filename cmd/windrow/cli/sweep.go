package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/windrow-sim/windrow/devicemodels"
	"github.com/windrow-sim/windrow/internal/decisions/layout"
	"github.com/windrow-sim/windrow/internal/ioengine"
	"github.com/windrow-sim/windrow/internal/output"
	"github.com/windrow-sim/windrow/internal/refusal"
	"github.com/windrow-sim/windrow/sim/sweep"
)

const (
	sweepSuffix = ".jsonl"
	csvSuffix   = ".csv"
	// parquetSuffix is that of the format of DuckDB, pandas and Polars.
	parquetSuffix = ".parquet"
)

func sweepCommand(e *env) *cli.Command {
	return &cli.Command{
		Name:      "sweep",
		Usage:     "simulate many configurations on one trace",
		ArgsUsage: "SCENARIO",
		Description: "A scenario is a YAML file of lists whose every combination is simulated " +
			"on one trace. A list is one value, [a, b], or a range like 1..64\n" +
			"or 1..64/3; max_tokens, image, predictor_rank and headroom have one value. Keys, " +
			"of which trace, devices and windows or policies must be given:\n\n" +
			sweep.Describe() + "\n" +
			"Results are lines of JSON, the first of which holds the whole scenario; the same " +
			"for any number of workers. Until it is whole the file is\n" +
			"called RESULTS.partial, and --resume goes on with it. Reads are timed by a table " +
			"of the event model where that is within a hundredth, else\n" +
			"as events; every result says which. What is printed are the fastest configurations " +
			"of every device.\n\n" +
			"A batch of B is cut from a file as windrow batch does it; of a synthetic trace it " +
			"is the union of B independent sequences, each of so many\n" +
			"tokens. Results count the tokens of all sequences; p50 and p99 are those of a " +
			"step. Compute is charged once per step, keys and values\n" +
			"for every sequence.\n\n" +
			examples("# every window of a scenario, as a table too",
				"windrow sweep examples/scenarios/windows.yaml -o windows.jsonl --csv "+
					"windows.csv",
				"# half of the work, for a second machine to complete",
				"windrow sweep examples/scenarios/windows.yaml -o half.jsonl --shard 1/2 "+
					"--workers 2",
				"# batches, for a notebook",
				"windrow sweep examples/scenarios/batches.yaml -o batches.jsonl --parquet "+
					"batches.parquet"),
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "out", Aliases: []string{"o"}, Required: true,
				Usage: "`RESULTS` to write (*.jsonl)"},
			&cli.StringFlag{Name: "csv", Usage: "also write the results as a table to `FILE` " +
				"(*.csv)"},
			&cli.StringFlag{Name: "parquet", Usage: "also write the results as a Parquet table " +
				"to `FILE` (*.parquet)"},
			shared("workers"),
			&cli.StringFlag{Name: "shard", Usage: "only part `I/N` of the configurations, for " +
				"example 1/4"},
			shared("resume"),
			shared("verify"),
		},
		Action: e.sweep,
	}
}

func (e *env) sweep(c *cli.Context) error {
	if err := needArgs(c, 1, "the scenario"); err != nil {
		return err
	}
	out := c.String("out")
	if err := e.checkSweepOutput(c); err != nil {
		return err
	}
	s, err := readScenario(c.Context, c.Args().First())
	if err != nil {
		return err
	}
	head := &sweep.Header{Format: sweep.FormatVersion, Tool: Tool}
	if text := c.String("shard"); text != "" {
		if head.Shard, err = sweep.ParseShard(text); err != nil {
			return usageError("--shard: %v", err)
		}
	}
	configs, err := s.Configurations(e.resolverFor(c))
	if err != nil {
		return err
	}
	t, sha, err := e.sweepTrace(c.Context, s, c.Args().First())
	if err != nil {
		return err
	}
	if closer, ok := t.Source.(io.Closer); ok {
		defer closer.Close()
	}
	head.Model, head.TraceSHA256, head.Tokens, head.Configurations,
		head.Scenario = t.Header().Model, sha, t.Tokens(), configs.Len(), *s
	if err := e.runSweep(c, head, t, configs); err != nil {
		return err
	}
	for _, t := range sweepTables() {
		if path := c.String(t.flag); path != "" {
			if err := writeSweepTable(out, path, t.write); err != nil {
				return err
			}
		}
	}
	return e.putBest(c, out)
}

// sweepTable is a form in which the results can be had beside the lines of JSON.
type sweepTable struct {
	flag, suffix string
	write        func(w io.Writer, results io.Reader) error
}

func sweepTables() []sweepTable {
	return []sweepTable{{"csv", csvSuffix, sweep.WriteCSV}, {"parquet", parquetSuffix,
		sweep.WriteParquet}}
}

func (e *env) checkSweepOutput(c *cli.Context) error {
	if err := e.claim(c, c.String("out"), sweepSuffix); err != nil {
		return err
	}
	for _, t := range sweepTables() {
		if err := e.claimFlag(c, t.flag, t.suffix); err != nil {
			return err
		}
	}
	if n := c.Int("workers"); c.IsSet("workers") && (n < 1 || n > maxParallel) {
		return usageError("--workers %d: it is 1 to %d", n, maxParallel)
	}
	return nil
}

func readScenario(ctx context.Context, path string) (*sweep.Scenario, error) {
	s, err := sweep.ReadScenario(ctx, path)
	if errors.Is(err, sweep.ErrScenario) {
		return nil, inputError("%v", err)
	}
	return s, err
}

// beside is a path that a scenario names, seen from here.
func beside(scenario, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(scenario), path)
}

// resolverFor finds what a scenario names; devices that are not presets lie beside it.
func (e *env) resolverFor(c *cli.Context) sweep.Resolver {
	scenario := c.Args().First()
	return sweep.Resolver{
		Device: func(name string) (*devicemodels.Device, error) {
			if strings.HasSuffix(name, ".yaml") || strings.ContainsAny(name, "/\\") {
				name = beside(scenario, name)
			}
			d, err := devicemodels.Find(c.Context, name)
			if errors.Is(err, refusal.ErrConfig) { // in a file, what was no usage
				err = inputError("sweep: %s: devices: %v", scenario, err)
			}
			return d, err
		},
		Engine: func(d *devicemodels.Device, name string) (string, error) {
			engine, err := d.ReadEngine(name)
			if err != nil {
				err = inputError("sweep: %s: engines: %s", scenario, strings.TrimPrefix(err.Error(),
					"IO "))
			}
			return engine, err
		},
		Parallel: ioengine.DefaultParallel,
		Image: func(name string) (layout.Geometry, error) {
			image, err := e.openImage(c, beside(scenario, name))
			if err != nil {
				return layout.Geometry{}, err
			}
			return image.Geometry(), image.Close()
		},
	}
}

// sweepTrace opens or describes the trace of a scenario.
func (e *env) sweepTrace(ctx context.Context, s *sweep.Scenario, scenario string) (*sweep.Trace,
	string, error) {
	if s.Trace.File != "" {
		r, err := e.openTrace(ctx, beside(scenario, s.Trace.File))
		if err != nil {
			return nil, "", err
		}
		e.input(s.Trace.File, r.SHA256())
		return sweep.FromSource(r, s.MaxTokens), r.SHA256(), nil
	}
	t, err := sweep.FromSynth(s.Trace.Options(slices.Contains(s.Predicted, true)), s.MaxTokens)
	if err != nil {
		return nil, "", inputError("sweep: %s: trace: %v", scenario, err)
	}
	return t, "", nil
}

// runSweep simulates what the file does not hold yet.
func (e *env) runSweep(c *cli.Context, head *sweep.Header, t *sweep.Trace,
	configs sweep.Configurations) error {
	file, err := sweep.Create(c.String("out"), head, c.Bool("resume"))
	if errors.Is(err, sweep.ErrResults) {
		return usageError("%v", err)
	}
	if err != nil {
		return err
	}
	defer file.Abort()
	from, to := head.Shard.Range(configs.Len())
	p := e.startProgress("sweep (results on disk)")
	opt := sweep.Options{Workers: c.Int("workers"), Base: from, First: file.Done(),
		Headroom: head.Scenario.Headroom,
		Progress: func(done, total int, pass float64) {
			p.label = "sweep (results on disk)"
			if pass > 0 {
				p.label = fmt.Sprintf("sweep (results on disk; the next ones are at %.0f %%)",
					100*pass)
			}
			p.update(done, total)
		}}
	err = sweep.Run(c.Context, t, sweep.Between(configs, from, to), opt, file.Write)
	p.done()
	if errors.Is(err, context.Canceled) && file.Done() > 0 {
		return fmt.Errorf("%s holds %d results; go on with --resume: %w",
			sweep.Partial(c.String("out")), file.Done(), err)
	}
	if errors.Is(err, context.Canceled) {
		return fmt.Errorf("no result is kept; the same command starts anew: %w", err)
	}
	if err != nil {
		return err
	}
	return file.Finish()
}

// writeSweepTable makes a table of a whole file of results.
func writeSweepTable(results, path string, write func(w io.Writer, results io.Reader) error) error {
	in, err := os.Open(results)
	if err != nil {
		return err
	}
	defer in.Close()
	return output.Write(path, func(f *output.File) error { return write(f, in) })
}

// putBest prints the fastest configurations of every device in a file of results.
func (e *env) putBest(c *cli.Context, results string) error {
	in, err := os.Open(results)
	if err != nil {
		return err
	}
	defer in.Close()
	summary, err := sweep.Summarize(filepath.Base(results), in)
	if err != nil {
		return err
	}
	return e.put(c, summary.Document())
}

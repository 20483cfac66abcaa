// Package demo is the whole loop in about a minute: it packs and runs a small model, checks that a
// flash-resident run equals the dense one bit by bit, measures this machine's disk, predicts how a
// trace of a large random model runs on it, runs it for real, and compares.
//
// Start with Run. exact.go is the check of the small model, large.go makes the large one, and
// measure.go probes, predicts and replays.
package demo

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/windrow-sim/windrow/devicemodels"
	"github.com/windrow-sim/windrow/engine/flashio"
	"github.com/windrow-sim/windrow/engine/model"
	"github.com/windrow-sim/windrow/internal/document"
	"github.com/windrow-sim/windrow/internal/refusal"
	"github.com/windrow-sim/windrow/internal/rng"
	"github.com/windrow-sim/windrow/internal/tell"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/replay"
	"github.com/windrow-sim/windrow/replay/validate"
	"github.com/windrow-sim/windrow/traces"
	"github.com/windrow-sim/windrow/traces/compare"
	"github.com/windrow-sim/windrow/traces/shapes"
)

// Config says what to demonstrate.
type Config struct {
	Source  string // Hugging Face folder of the small model
	Prompts string // file of prompts for it
	// MaxInput is the largest file of prompts; 0 = session.MaxInput.
	MaxInput units.Bytes
	Dir      string // on the disk to measure; holds everything that the demo makes
	Like     string // model whose shape the large one has

	MeasureTokens int // of the large model
	Window        int // tokens whose rows stay in memory
	Budget        time.Duration
	Seed          uint64

	Tool string // program and version, for the files
	Tell tell.Tell
}

// DefaultConfig demonstrates the model of this repository, on the working folder's disk.
func DefaultConfig() Config {
	return Config{Source: "examples/models/tales", Prompts: "examples/prompts/tales.txt",
		Dir: "demo", Like: "opt-1.3b", MeasureTokens: 48, Window: 5, Budget: 8 * time.Second,
		Seed: rng.DefaultSeed}
}

// Check refuses values out of range. Tokens beyond those that calibrate the host are compared.
func (c *Config) Check() error {
	if c.MeasureTokens <= validate.CalibrationTokens {
		return refusal.Config("{MeasureTokens} %d: it must be above %d", c.MeasureTokens,
			validate.CalibrationTokens)
	}
	if _, _, err := shapes.Lookup(c.Like); err != nil {
		return refusal.Config("{Like}: %v", err)
	}
	return nil
}

// Result is what the demo found. Its files are in Config.Dir.
type Result struct {
	Model         string `json:"model"`
	Large         string `json:"large_model"`
	Tokens        int    `json:"tokens"`
	DenseEqual    bool   `json:"dense_equal"`
	CountersEqual bool   `json:"counters_equal"`
	BytesEqual    bool   `json:"bytes_equal"`
	Measured      Rate   `json:"measured"`
	Simulated     Rate   `json:"simulated"`
	// Predicted is Simulated with its interval, in tokens/s.
	Predicted    document.Estimate `json:"simulated_estimate"`
	ErrorPercent float64           `json:"error_percent"`
	DriftPercent float64           `json:"drift_percent"`
	Verdict      compare.Verdict   `json:"verdict"`
	Reasons      []string          `json:"reasons"`
	Mode         string            `json:"io_mode"`
	// Report is the page that the program writes; empty until then.
	Report string `json:"report"`

	Text       string               `json:"-"` // of the small model
	Trace      string               `json:"-"` // file of the small model's trace
	Device     *devicemodels.Device `json:"-"` // as it was measured
	Runs       [2]*traces.Run       `json:"-"` // simulated, measured
	Comparison *compare.Comparison  `json:"-"` // of the two
}

// Rate is a speed.
type Rate struct {
	TokensPerS float64 `json:"tokens_per_s"`
}

// demo is the state of one demonstration; its methods are the stages, in order.
type demo struct {
	Config
	image  *model.Image // of the large model
	trace  *traces.Memory
	device *devicemodels.Device
	engine flashio.Engine

	simulated *traces.Run
	measured  *replay.Result
	result    Result
}

// Run demonstrates. Flash-resident logits that differ from dense ones are an error; counters that
// differ, and a verdict on times, are in the result.
func Run(ctx context.Context, cfg Config) (*Result, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	d := &demo{Config: cfg}
	if err := d.small(ctx); err != nil {
		return nil, err
	}
	if !d.result.DenseEqual { // before anything that the host may refuse
		return nil, errors.New("demo: flash-resident logits differ from dense ones; every bit " +
			"must be equal")
	}
	large := filepath.Join(d.Dir, "large.flash.safetensors")
	defer os.Remove(large)
	if err := d.large(ctx, d.Like, large); err != nil {
		return nil, err
	}
	defer d.image.Close()
	if err := d.measure(ctx); err != nil {
		return nil, err
	}
	if err := d.predictAndRun(ctx); err != nil {
		return nil, err
	}
	return &d.result, d.compare()
}

// compare judges the prediction by the measured run, the first token aside, which warms caches up.
func (d *demo) compare() error {
	c, err := compare.Compare(d.simulated, d.measured.Run, compare.Options{SkipTokens: 1})
	if err != nil {
		return err
	}
	r := &d.result
	r.Tokens, r.CountersEqual, r.BytesEqual = c.Tokens, c.CountersEqual, c.BytesEqual
	r.Measured.TokensPerS, r.Simulated.TokensPerS = c.MeasuredTokensPerS, c.SimulatedTokensPerS
	r.ErrorPercent, r.DriftPercent, r.Verdict, r.Reasons = c.ErrorPercent, d.measured.Drift.Percent,
		c.Verdict, c.Reasons
	r.Mode, r.Device, r.Comparison = d.measured.Mode.String(), d.device, c
	r.Runs = [2]*traces.Run{d.simulated, d.measured.Run}
	r.Predicted = d.simulated.Meta.Prediction.Estimate(c.SimulatedTokensPerS,
		d.simulated.Meta.Totals.TokensPerS)
	return nil
}

package probe

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/windrow-sim/windrow/devicemodels"
	"github.com/windrow-sim/windrow/engine/flashio"
	"github.com/windrow-sim/windrow/internal/rng"
	"github.com/windrow-sim/windrow/internal/units"
)

// Config says what to measure. Zero values mean the defaults of DefaultConfig, except for Path.
type Config struct {
	// Path is a file, which is read and never written, or a folder, in which a temporary file is made and removed.
	Path   string
	Engine flashio.Engine // how to read; the device holds the costs of this engine alone

	// Budget is the time for measuring. Writing the temporary file comes on top of it.
	Budget time.Duration
	Chunks []units.Bytes // read sizes; multiples of the device's alignment
	Depths []int         // threads or ring depth
	// Span is the stretch of the file that the reads of one batch lie in: the engine reads one layer at a time. 0 = the whole
	// file, each place once before any comes again.
	Span units.Bytes
	// FileSize is the size of the temporary file. When the disk has less than four times as much space, the file is a quarter of the space.
	FileSize units.Bytes

	Seed        uint64
	MaxDriftPct float64 // refuse a device that drifts more; 0 = the limit of devicemodels.FitFlash

	// Progress, when set, is told of every step: stage is "file", "flash" or "host".
	Progress func(stage string, done, total int)
}

// DefaultConfig returns the configuration that a quarter of a minute is enough for.
func DefaultConfig(path string) Config {
	return Config{
		Path: path, Engine: flashio.EngineAuto, Budget: 15 * time.Second,
		Chunks:   []units.Bytes{4 * units.KiB, 16 * units.KiB, 64 * units.KiB, 256 * units.KiB},
		Depths:   []int{1, 4, 16, 32},
		Span:     64 * units.MiB,
		FileSize: 256 * units.MiB, Seed: rng.DefaultSeed,
	}
}

// hostShare is the part of the budget for the host; the rest is for the flash, which has the noisier half of the numbers.
const hostShare = 0.25

// Run measures this machine. LayerFixed and TokenFixed of the host stay 0: they are costs of the engine's own bookkeeping,
// which only the engine can calibrate.
//
// Errors wrap flashio.ErrEnvironment when this path cannot be measured, devicemodels.ErrFit when the cells make no
// device, and the context's error when it was cancelled. A temporary file is removed in every case.
func Run(ctx context.Context, cfg Config) (*devicemodels.Device, error) {
	return run(ctx, cfg, thisMachine())
}

func run(ctx context.Context, cfg Config, m *machine) (dev *devicemodels.Device, err error) {
	if cfg, err = resolve(cfg); err != nil {
		return nil, err
	}
	t, err := openTarget(ctx, cfg, m)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, t.remove()) }()

	start := m.now()
	budget := units.Nanos(cfg.Budget)
	flashEnd := start + units.Nanos(float64(budget)*(1-hostShare))
	g, err := measureGrid(ctx, cfg, m, t, flashEnd)
	if err != nil {
		return nil, err
	}
	host, err := measureHost(ctx, m, start+budget, cfg.Seed, progress(cfg, "host"))
	if err != nil {
		return nil, err
	}
	return describe(cfg, m, g, host)
}

// resolve fills in defaults and refuses what cannot be measured.
func resolve(cfg Config) (Config, error) {
	def := DefaultConfig(cfg.Path)
	if cfg.Path == "" {
		return cfg, errors.New("probe: path: is empty; give a file or a folder on the drive to measure")
	}
	if cfg.Engine == "" {
		cfg.Engine = def.Engine
	}
	if cfg.Budget == 0 {
		cfg.Budget = def.Budget
	}
	if len(cfg.Chunks) == 0 {
		cfg.Chunks = def.Chunks
	}
	if len(cfg.Depths) == 0 {
		cfg.Depths = def.Depths
	}
	if cfg.FileSize == 0 {
		cfg.FileSize = def.FileSize
	}
	switch {
	case cfg.Budget < 0:
		return cfg, fmt.Errorf("probe: budget: %v is negative", cfg.Budget)
	case cfg.FileSize < 0:
		return cfg, fmt.Errorf("probe: file size: %v is negative", cfg.FileSize)
	case slices.Min(cfg.Chunks) < 1:
		return cfg, fmt.Errorf("probe: chunks: %v is too small; write 512B or more", slices.Min(cfg.Chunks))
	case slices.Max(cfg.Chunks) > maxChunk:
		return cfg, fmt.Errorf("probe: chunks: %v is larger than %v", slices.Max(cfg.Chunks), maxChunk)
	case slices.Min(cfg.Depths) < 1:
		return cfg, fmt.Errorf("probe: depths: %d is too small; write 1 or more", slices.Min(cfg.Depths))
	}
	cfg.Chunks, cfg.Depths = unique(cfg.Chunks), unique(cfg.Depths)
	return cfg, nil
}

func unique[T units.Bytes | int](values []T) []T {
	sorted := slices.Clone(values)
	slices.Sort(sorted)
	return slices.Compact(sorted)
}

// describe fits the cells and puts the device together.
func describe(cfg Config, m *machine, g *grid, host devicemodels.Host) (*devicemodels.Device, error) {
	engine := string(g.mode.Engine)
	when := m.wall().UTC().Format(time.RFC3339)
	opt := devicemodels.FitOptions{
		When: when, Mode: modeText(g.mode), Align: g.mode.Align, Seed: cfg.Seed,
		DriftPct: g.driftPct(), MaxDriftPct: cfg.MaxDriftPct,
	}
	if cost, ok := g.hostCost(host.Cores); ok {
		opt.HostCost = map[string]units.Nanos{engine: cost}
	}
	flash, fit, err := devicemodels.FitFlash(g.cells, host.Cores, opt)
	if err != nil {
		return nil, fmt.Errorf("probe: %s: %w", cfg.Path, g.blame(err))
	}
	cost := flash.Engines[engine]
	cost.Batch = g.batch
	flash.Engines[engine] = cost
	fit.Warnings = append(fit.Warnings, g.warnings()...)

	d := &devicemodels.Device{
		Version: devicemodels.FormatVersion, Name: m.hostname, Source: "measured by windrow probe on " + when,
		Sources: map[string]string{
			"flash": fmt.Sprintf("fit of %d cells, %s, %d reads", len(g.cells), fit.Mode, g.reads()),
			"host":  fmt.Sprintf("medians of timed kernels, %d cores; layer_fixed and token_fixed are not measured by a probe", host.Cores),
		},
		Flash: flash, Host: host, Fit: &fit,
	}
	if err := d.Validate(); err != nil {
		return nil, fmt.Errorf("probe: measured an impossible device: %w", err)
	}
	return d, nil
}

// modeText says how reads were done and, where it differs, how they were asked for.
func modeText(m flashio.Mode) string {
	direct := "buffered"
	if m.Direct {
		direct = "direct"
	}
	text := fmt.Sprintf("%s %s %s", m.Engine, direct, m.FileSystem)
	if m.Requested != m.Engine {
		text += fmt.Sprintf(" (asked for %s)", m.Requested)
	}
	return text
}

// progress returns cfg.Progress for one stage; it may always be called.
func progress(cfg Config, stage string) func(done, total int) {
	if cfg.Progress == nil {
		return func(int, int) {}
	}
	return func(done, total int) { cfg.Progress(stage, done, total) }
}

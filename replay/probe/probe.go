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
	// Path is a file, which is read and never written, or a folder, in which a temporary file is
	// made and removed.
	Path string
	// Engines are the ways to read; the device holds the costs of each. None, or auto, means pread,
	// and uring where it works.
	Engines []flashio.Engine

	// Budget is the time for measuring. Writing the temporary file comes on top of it.
	Budget time.Duration
	// Chunks are read sizes, multiples of the device's alignment, and Depths threads or ring
	// depths. With both given every combination is measured and no other. A list that is not given
	// stands for the powers of two from 4 KiB to 1 MiB, or from 1 to 256, of which the combinations
	// are measured that tell most.
	Chunks []units.Bytes
	Depths []int
	// Span is the stretch of the file that the reads of one batch lie in: the engine reads one
	// layer at a time. 0 = the whole file, each place once before any comes again.
	Span units.Bytes
	// FileSize is the size of the temporary file. When the disk has less than four times as much
	// space, the file is a quarter of the space.
	FileSize units.Bytes

	// Mapped asks for the path of mapped files as well: flash.page_cache and engine mmap. The file
	// is then read through the page cache and dropped from it. What cannot be measured is left out
	// with a warning.
	Mapped bool

	Seed        uint64
	MaxDriftPct float64 // refuse a device that drifts more; 0 = the limit of devicemodels.FitFlash

	// Samples, when set, is a new file for every batch as it was measured (JSON lines). With Resume
	// the file may exist: what is whole in it is not measured again.
	Samples string
	Resume  bool

	// Open, when set, gives the readers, of a file of FileSize bytes or of that at Path: for a
	// device that is not below a file system. Nothing is then refused for being in memory, and
	// nothing proves that storage served the reads.
	Open func(parallel int, engine flashio.Engine) (flashio.Reader, error)

	// Progress, when set, is told of every step: stage is "file", "flash" or "host".
	Progress func(stage string, done, total int)
}

// DefaultConfig returns the configuration that a quarter of a minute is enough for.
func DefaultConfig(path string) Config {
	return Config{
		Path: path, Budget: 15 * time.Second, Span: 64 * units.MiB, FileSize: 256 * units.MiB,
		Seed: rng.DefaultSeed,
	}
}

// The host gets hostShare of the budget and not more than hostMost; the rest is for the flash,
// which has the noisier half of the numbers.
const (
	hostShare = 0.25
	hostMost  = 5 * units.Second
)

// Run measures this machine. LayerFixed and TokenFixed of the host stay 0: they are costs of the
// engine's own bookkeeping, which only the engine can calibrate.
//
// Errors wrap flashio.ErrEnvironment when this path, or this machine as busy as it is, cannot be
// measured, devicemodels.ErrFit when the cells make no device, and the context's error when it was
// cancelled. A temporary file is removed in every case, and Samples holds all that was measured.
func Run(ctx context.Context, cfg Config) (*devicemodels.Device, error) {
	return run(ctx, cfg, thisMachine())
}

func run(ctx context.Context, cfg Config, m *machine) (dev *devicemodels.Device, err error) {
	if cfg, err = resolve(cfg, m); err != nil {
		return nil, err
	}
	t, err := openTarget(ctx, cfg, m)
	if err != nil {
		return nil, err
	}
	defer t.remove()

	start := m.now()
	budget := units.Nanos(cfg.Budget)
	host := min(units.Nanos(float64(budget)*hostShare), hostMost)
	g, err := measureFlash(ctx, cfg, m, t, start+budget-host)
	if err != nil {
		return nil, err
	}
	h, err := measureHost(ctx, m, start+budget, cfg.Seed, progress(cfg, "host"))
	if err != nil {
		return nil, err
	}
	return g.device(cfg, m, h)
}

// resolve fills in defaults and refuses what cannot be measured.
func resolve(cfg Config, m *machine) (Config, error) {
	def := DefaultConfig(cfg.Path)
	if cfg.Path == "" && cfg.Open == nil {
		return cfg, errors.New("probe: path: is empty; give a file or a folder on the drive to " +
			"measure")
	}
	if cfg.Budget == 0 {
		cfg.Budget = def.Budget
	}
	if cfg.FileSize == 0 {
		cfg.FileSize = def.FileSize
	}
	if len(cfg.Engines) == 0 || slices.Contains(cfg.Engines, flashio.EngineAuto) {
		cfg.Engines = m.engines()
		if cfg.Open != nil {
			cfg.Engines = []flashio.Engine{flashio.EngineEmulated}
		}
	}
	switch {
	case cfg.Budget < 0:
		return cfg, fmt.Errorf("probe: budget: %v is negative", cfg.Budget)
	case cfg.FileSize < 0:
		return cfg, fmt.Errorf("probe: file size: %v is negative", cfg.FileSize)
	case cfg.Mapped && cfg.Open != nil:
		return cfg, errors.New("probe: mapped: a device that is not below a file system has no " +
			"mapped files; leave it out")
	case cfg.Resume && cfg.Samples == "":
		return cfg, errors.New("probe: resume: no file of samples is given to go on with")
	}
	cfg.Chunks, cfg.Depths = unique(cfg.Chunks), unique(cfg.Depths)
	if len(cfg.Chunks) > 0 {
		switch least, most := cfg.Chunks[0], cfg.Chunks[len(cfg.Chunks)-1]; {
		case least < 1:
			return cfg, fmt.Errorf("probe: chunks: %v is too small; write 512B or more", least)
		case most > maxChunk:
			return cfg, fmt.Errorf("probe: chunks: %v is larger than %v", most, maxChunk)
		}
	}
	if len(cfg.Depths) > 0 && cfg.Depths[0] < 1 {
		return cfg, fmt.Errorf("probe: depths: %d is too small; write 1 or more", cfg.Depths[0])
	}
	return cfg, nil
}

func unique[T ~int | ~int64](values []T) []T {
	sorted := slices.Clone(values)
	slices.Sort(sorted)
	return slices.Compact(sorted)
}

// progress returns cfg.Progress for one stage; it may always be called.
func progress(cfg Config, stage string) func(done, total int) {
	if cfg.Progress == nil {
		return func(int, int) {}
	}
	return func(done, total int) { cfg.Progress(stage, done, total) }
}

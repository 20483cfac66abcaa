package probe

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"

	"github.com/windrow-sim/windrow/engine/flashio"
	"github.com/windrow-sim/windrow/internal/output"
	"github.com/windrow-sim/windrow/internal/rng"
	"github.com/windrow-sim/windrow/internal/units"
)

// minFileSize is the least a temporary file may hold: with less, a drive's own cache holds it all.
const minFileSize = 16 * units.MiB

// target is the file to read.
type target struct {
	path      string
	size      units.Bytes
	temporary *output.File // nil for a file that was there
	note      string       // why cached pages of it could not be dropped; "" when they were
}

// remove deletes a temporary file. Removing twice, or a file that is gone, is no error.
func (t *target) remove() {
	if t.temporary != nil {
		t.temporary.Abort()
	}
}

// openTarget finds the file of cfg.Path, or makes one when it is a folder.
func openTarget(ctx context.Context, cfg Config, m *machine) (*target, error) {
	if cfg.Open != nil && cfg.Path == "" {
		return &target{size: cfg.FileSize}, nil
	}
	info, err := os.Stat(cfg.Path)
	if err != nil {
		return nil, fmt.Errorf("probe: %w", err)
	}
	if cfg.Open != nil {
		return &target{path: cfg.Path, size: units.Bytes(info.Size())}, nil
	}
	if info.IsDir() {
		return makeFile(ctx, cfg, m)
	}
	about, err := flashio.Describe(cfg.Path)
	if err != nil {
		return nil, fmt.Errorf("probe: %w", err)
	}
	t := &target{path: cfg.Path, size: about.Size}
	return t, t.dropCache(m)
}

// dropCache pushes the file out of memory: pages that a read could be served from hide the device.
// A system that cannot is noted; direct reads do not depend on it.
func (t *target) dropCache(m *machine) error {
	err := m.dropCache(t.path)
	if errors.Is(err, flashio.ErrEnvironment) {
		t.note = fmt.Sprintf("Pages of the file that are in memory stayed there (%v).", err)
		return nil
	}
	if err != nil {
		return fmt.Errorf("probe: %w", err)
	}
	return nil
}

// makeFile writes a temporary file of random bytes, which no layer below can compress or
// deduplicate, and pushes it out of memory.
func makeFile(ctx context.Context, cfg Config, m *machine) (_ *target, err error) {
	size := cfg.FileSize
	if free, ok := m.freeSpace(cfg.Path); ok && size > free/4 {
		size = free / 4
	}
	size -= size % maxChunk
	if size < minFileSize {
		return nil, fmt.Errorf("probe: %s: %w: a file of %v or more is needed and a quarter of "+
			"the free space may be used; "+
			"free some space, or give an existing file", cfg.Path, flashio.ErrEnvironment,
			minFileSize)
	}
	f, err := output.Scratch(cfg.Path, "windrow-probe")
	if err != nil {
		return nil, fmt.Errorf("probe: %w", err)
	}
	t := &target{path: f.Name(), size: size, temporary: f}
	defer func() {
		if err != nil {
			t.remove()
		}
	}()
	if err = fill(ctx, f, size, cfg.Seed, progress(cfg, "file")); err != nil {
		return nil, err
	}
	if err = t.dropCache(m); err != nil {
		return nil, err
	}
	return t, nil
}

// fill writes size random bytes to f and syncs them.
func fill(ctx context.Context, f *output.File, size units.Bytes, seed uint64, step func(done,
	total int)) error {
	random := rng.Stream(seed, "probe/file")
	block := make([]byte, maxChunk)
	total := int(size / maxChunk)
	for done := range total {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("probe: %w", err)
		}
		for i := 0; i < len(block); i += 8 {
			binary.LittleEndian.PutUint64(block[i:], random.Uint64())
		}
		if _, err := f.Write(block); err != nil {
			return fmt.Errorf("probe: the temporary file: %w", err)
		}
		step(done+1, total)
	}
	if err := f.Seal(); err != nil {
		return fmt.Errorf("probe: the temporary file: %w", err)
	}
	return nil
}

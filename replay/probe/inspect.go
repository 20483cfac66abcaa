package probe

import (
	"fmt"
	"slices"
	"strings"

	"github.com/windrow-sim/windrow/engine/flashio"
	"github.com/windrow-sim/windrow/internal/units"
)

const cacheRemedy = "give a file on a local drive (ext4 or xfs), not one that is cached, " +
	"compressed or on a network"

// inspect opens the file once with every engine and refuses what is no flash, and sizes that do not
// fit.
func inspect(cfg Config, m *machine, t *target) ([]flashio.Mode, error) {
	var modes []flashio.Mode
	for _, engine := range cfg.Engines {
		r, err := m.open(t.path, flashio.Options{Engine: engine, Direct: flashio.DirectAuto,
			Parallel: 1})
		if err != nil {
			return nil, fmt.Errorf("probe: %w", err)
		}
		mode := r.Mode()
		if err := r.Close(); err != nil {
			return nil, fmt.Errorf("probe: %w", err)
		}
		if err := refuse(cfg, mode); err != nil {
			return nil, err
		}
		modes = append(modes, mode)
	}
	align := alignment(modes)
	for _, chunk := range cfg.Chunks {
		if chunk%align != 0 {
			return nil, fmt.Errorf("probe: chunks: %v is not a multiple of %v, the smallest "+
				"direct read of this device", chunk, align)
		}
		if chunk > t.size {
			return nil, fmt.Errorf("probe: chunks: %v is larger than the file of %v", chunk, t.size)
		}
	}
	return modes, nil
}

// refuse says why reads of this mode measure no flash. Readers from Config.Open are what the caller
// says they are.
func refuse(cfg Config, mode flashio.Mode) error {
	switch {
	case cfg.Open != nil:
	case mode.MemoryBacked:
		return fmt.Errorf("probe: %s: %w: %s is memory and not flash; give a path on the drive "+
			"to measure",
			cfg.Path, flashio.ErrEnvironment, mode.FileSystem)
	case !mode.Direct:
		return fmt.Errorf("probe: %s: %w: asked for direct reads with engine %s, got buffered "+
			"ones with %s on %s, which measure "+
			"the page cache (%s); %s", cfg.Path, flashio.ErrEnvironment, mode.Requested,
			mode.Engine, mode.FileSystem, sentences(mode.Notes), cacheRemedy)
	}
	return nil
}

// alignment is the smallest direct read that every engine can do.
func alignment(modes []flashio.Mode) units.Bytes {
	align := units.Bytes(1)
	for _, m := range modes {
		align = max(align, m.Align)
	}
	return align
}

func sentences(notes []string) string {
	if len(notes) == 0 {
		return "no reason given"
	}
	return strings.Join(notes, " ")
}

// modeText says how reads were done and, where it differs, how they were asked for.
func modeText(modes []flashio.Mode) string {
	var texts []string
	for _, m := range modes {
		text := string(m.Engine)
		if m.Engine != flashio.EngineEmulated {
			direct := "buffered"
			if m.Direct {
				direct = "direct"
			}
			text += " " + direct + " " + m.FileSystem
		}
		if m.Requested != m.Engine {
			text += fmt.Sprintf(" (asked for %s)", m.Requested)
		}
		if !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, ", ")
}

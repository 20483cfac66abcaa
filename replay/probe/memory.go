package probe

import (
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/windrow-sim/windrow/internal/units"
)

// cacheMemory returns how much of a file the page cache could hold: the memory that is available,
// or the least limit of the control groups of this process if that is less; 0 where the system says
// neither.
func cacheMemory(root string) units.Bytes {
	least := units.Bytes(math.MaxInt64)
	if text, err := os.ReadFile(filepath.Join(root, "proc/meminfo")); err == nil {
		for line := range strings.Lines(string(text)) {
			if kib, ok := strings.CutPrefix(line, "MemAvailable:"); ok {
				least = min(least, parseLimit(strings.TrimSuffix(strings.TrimSpace(kib), " kB"),
					units.KiB))
			}
		}
	}
	text, err := os.ReadFile(filepath.Join(root, "proc/self/cgroup"))
	if err != nil && least == math.MaxInt64 {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		// number:controllers:path; version 2 has number 0 and no controllers (cgroups(7)).
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		switch {
		case parts[1] == "memory":
			least = min(least, groupLimit(filepath.Join(root, "sys/fs/cgroup/memory"), parts[2],
				"memory.limit_in_bytes"))
		case parts[0] == "0" && parts[1] == "":
			least = min(least, groupLimit(filepath.Join(root, "sys/fs/cgroup"), parts[2],
				"memory.max"))
		}
	}
	if least == math.MaxInt64 {
		return 0
	}
	if least >= 16*units.MiB {
		least -= least % units.MiB // what is left changes by more from one moment to the next
	}
	return least
}

// groupLimit is the least limit of a control group and those above it. A group's file that is not
// there limits nothing: a container may see its own group as the root.
func groupLimit(mount, group, file string) units.Bytes {
	least := units.Bytes(math.MaxInt64)
	for {
		if text, err := os.ReadFile(filepath.Join(mount, group, file)); err == nil {
			least = min(least, parseLimit(string(text), 1))
		}
		if group == "/" || group == "." || group == "" {
			return least
		}
		group = filepath.Dir(group)
	}
}

// parseLimit reads a number of units; "max", what is none, and what no machine has, is no limit.
func parseLimit(text string, unit units.Bytes) units.Bytes {
	const absurd = units.Bytes(1) << 52
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil || n <= 0 || units.Bytes(n) >= absurd {
		return math.MaxInt64
	}
	return units.Bytes(n) * unit
}

// Package throttle holds this process to a block-I/O rate through a Linux control group (v1
// blkio.throttle or v2 io.max), so that a shared or virtual disk becomes a slow and steady one:
// real reads of a real file, at a pace that does not depend on the neighbours. It needs root.
package throttle

import (
	"fmt"
	"os"

	"github.com/windrow-sim/windrow/engine/flashio"
	"github.com/windrow-sim/windrow/internal/units"
)

// Limit is what the device that holds a file may deliver to this process. Zero means no limit.
type Limit struct {
	Rate units.Rate // bytes per second
	IOPS int64      // reads per second
}

// group is a control group of this process's own, with the limit in force.
type group struct {
	dir  string // of the group
	home string // cgroup.procs of the group that the process came from
}

// Enter limits the reads of this process from the device that holds path. leave lifts the limit; it
// must be called. Where the host does not allow it, the error wraps flashio.ErrEnvironment and says
// what is missing.
func Enter(path string, l Limit) (leave func() error, err error) {
	if l.Rate <= 0 && l.IOPS <= 0 {
		return nil, fmt.Errorf("throttle: no limit given")
	}
	g, err := enter(path, l)
	if err != nil {
		return nil, fmt.Errorf("throttle: %w: %w", err, flashio.ErrEnvironment)
	}
	return g.leave, nil
}

// leave moves the process back and removes the group.
func (g *group) leave() error {
	if err := os.WriteFile(g.home, []byte(fmt.Sprint(os.Getpid())), 0); err != nil {
		return fmt.Errorf("throttle: leave %s: %w", g.dir, err)
	}
	if err := os.Remove(g.dir); err != nil {
		return fmt.Errorf("throttle: remove %s: %w", g.dir, err)
	}
	return nil
}

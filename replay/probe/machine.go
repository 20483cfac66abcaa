package probe

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/windrow-sim/windrow/engine/flashio"
	"github.com/windrow-sim/windrow/internal/units"
)

// machine is everything the probe asks of the system. Tests give one whose clock moves only when
// its reader or its kernels say so.
type machine struct {
	hostname string
	cores    int

	open func(path string, opt flashio.Options) (flashio.Reader, error)
	// engines are those worth measuring on this host.
	engines   func() []flashio.Engine
	dropCache func(path string) error
	// readBytes counts the bytes that this process made the system fetch from storage; false where
	// nobody counts.
	readBytes func() (int64, bool)
	// cpuTime is the processor time of this process, user and system; false where it is unknown.
	cpuTime func() (units.Nanos, bool)
	// freeSpace is what an ordinary user may still write in a folder; false where it is unknown.
	freeSpace func(dir string) (units.Bytes, bool)
	// cacheMemory is what the page cache may use; 0 where it is unknown.
	cacheMemory func() units.Bytes
	now         func() units.Nanos // monotonic
	sleep       func(ctx context.Context, t units.Nanos) error
	wall        func() time.Time
	// workload makes the timed kernels; it may take long, and is told the seed of their data.
	workload func(cores int, seed uint64) (*workload, error)
}

// clocks reads both clocks.
func (m *machine) clocks() (units.Nanos, time.Time) { return m.now(), m.wall() }

func thisMachine() *machine {
	hostname, err := os.Hostname()
	if err != nil || hostname == "" {
		hostname = "this machine"
	}
	start := time.Now()
	return &machine{
		hostname: hostname, cores: runtime.GOMAXPROCS(0),
		open: flashio.Open, engines: flashio.Working, dropCache: flashio.DropCache,
		readBytes: flashio.ProcessReadBytes,
		cpuTime:   processTime, freeSpace: freeSpace,
		cacheMemory: func() units.Bytes { return cacheMemory("/") },
		now:         func() units.Nanos { return units.Nanos(time.Since(start)) },
		sleep:       sleep,
		wall:        time.Now,
		workload:    newKernels,
	}
}

func sleep(ctx context.Context, t units.Nanos) error {
	timer := time.NewTimer(time.Duration(t))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("probe: %w", ctx.Err())
	}
}

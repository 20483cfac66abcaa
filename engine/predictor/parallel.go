package predictor

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
)

// inParallel runs the jobs, started in their order, with so many workers (0 = one for each core).
// The first failure stops the others; of several failures the first in order is returned. The end
// of ctx is an error that wraps ctx's own.
func inParallel(ctx context.Context, jobs []func(context.Context) error, workers int) error {
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	errs := make([]error, len(jobs))
	var next atomic.Int64
	var group sync.WaitGroup
	for range min(workers, len(jobs)) {
		group.Go(func() {
			for inner.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= len(jobs) {
					return
				}
				if errs[i] = jobs[i](inner); errs[i] != nil {
					if inner.Err() != nil && ctx.Err() == nil {
						errs[i] = nil // stopped because of another's failure
					}
					cancel()
				}
			}
		})
	}
	group.Wait()
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("predictor: interrupted: %w", err)
	}
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

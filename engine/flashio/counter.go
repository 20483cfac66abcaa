package flashio

import (
	"sync/atomic"

	"github.com/windrow-sim/windrow/internal/units"
)

// Counts are sums over batches.
type Counts struct {
	Batches  int64
	Requests int64
	Bytes    units.Bytes
}

// Counter is a Reader that counts the reads of another. Its counts may be read during a batch.
type Counter struct {
	inner           Reader
	asked, complete counts
}

type counts struct{ batches, requests, bytes atomic.Int64 }

func (c *counts) add(requests int, bytes int64) {
	c.batches.Add(1)
	c.requests.Add(int64(requests))
	c.bytes.Add(bytes)
}

func (c *counts) read() Counts {
	return Counts{c.batches.Load(), c.requests.Load(), units.Bytes(c.bytes.Load())}
}

// WithCounter returns a Counter around r, and owns r from then on.
func WithCounter(r Reader) *Counter { return &Counter{inner: r} }

// Asked counts every batch given to ReadBatch.
func (c *Counter) Asked() Counts { return c.asked.read() }

// Completed counts the batches that ended without an error: equal to Asked when nothing failed and
// nothing is in flight.
func (c *Counter) Completed() Counts { return c.complete.read() }

// ReadBatch implements Reader.
func (c *Counter) ReadBatch(reqs []Request) error {
	var bytes int64
	for i := range reqs {
		bytes += int64(len(reqs[i].Buf))
	}
	c.asked.add(len(reqs), bytes)
	if err := c.inner.ReadBatch(reqs); err != nil {
		return err
	}
	c.complete.add(len(reqs), bytes)
	return nil
}

// Mode implements Reader.
func (c *Counter) Mode() Mode { return c.inner.Mode() }

// Close implements Reader.
func (c *Counter) Close() error { return c.inner.Close() }

// Unwrap returns the Reader inside.
func (c *Counter) Unwrap() Reader { return c.inner }

package cli

import (
	"context"

	"github.com/urfave/cli/v2"

	"github.com/windrow-sim/windrow/cmd/windrow/devices"
	"github.com/windrow-sim/windrow/engine/flashio"
	"github.com/windrow-sim/windrow/engine/model"
	"github.com/windrow-sim/windrow/engine/session"
	"github.com/windrow-sim/windrow/internal/decisions/layout"
	"github.com/windrow-sim/windrow/internal/ioengine"
	"github.com/windrow-sim/windrow/internal/tell"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/traces"
)

// openSession opens the model of the flags, on the backend of the flags.
func (e *env) openSession(c *cli.Context) (*session.Session, error) {
	cfg := session.Config{Model: c.String("model"), Backend: c.String("backend"),
		Device: devices.Open, Tell: tell.Tell{Note: e.remark, Field: flagOf}}
	if text := c.String("device-memory"); text != "" {
		var err error
		if cfg.DeviceMemory, err = units.ParseBytes(text); err != nil || cfg.DeviceMemory < 1 {
			return nil, usageError("--device-memory %q: a size (8GiB) is wanted", text)
		}
	}
	s, err := session.Open(c.Context, cfg)
	if err != nil {
		return nil, err
	}
	if err := e.vouch(c, s.Image); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// openImage opens an image without its weights.
func (e *env) openImage(c *cli.Context, path string) (*model.Image, error) {
	image, err := model.OpenImage(c.Context, path)
	if err != nil {
		return nil, err
	}
	if err := e.vouch(c, image); err != nil {
		image.Close()
		return nil, err
	}
	return image, nil
}

// vouch compares the whole of an image with its hashes for --verify, and says if it has none. An
// image that is opened again is not looked at again.
func (e *env) vouch(c *cli.Context, image *model.Image) error {
	if e.vouched[image.Path] {
		return nil
	}
	if e.vouched == nil {
		e.vouched = map[string]bool{}
	}
	e.vouched[image.Path] = true
	if !c.Bool("verify") {
		if !image.Hashed() {
			e.note("note: %s has no hashes, so damage to it would go unseen; pack it again",
				image.Path)
		}
		return nil
	}
	to, done := e.tell()
	defer done()
	return image.Verify(c.Context, to.MiB("verify (MiB)"))
}

// openTrace opens a trace file and prints its warnings.
func (e *env) openTrace(ctx context.Context, path string) (*traces.Reader, error) {
	r, err := traces.Open(ctx, path)
	if err != nil {
		return nil, err
	}
	for _, w := range r.Warnings() {
		e.note("warning: %s", w)
	}
	return r, nil
}

// maxParallel is the limit of real reads: a simulation of more could not be run.
const maxParallel = ioengine.MaxThreads

// layoutOptions reads the flags that shape requests.
func layoutOptions(c *cli.Context) (layout.Options, error) {
	opt := layout.Options{Coalesce: !c.Bool("no-coalesce"), Gap: c.Int("gap")}
	if s := c.String("chunk"); s != "" {
		chunk, err := units.ParseBytes(s)
		if err != nil {
			return opt, usageError("--chunk: %v", err)
		}
		opt.MaxRequest = chunk
	}
	if n := c.Int("parallel"); n > maxParallel {
		return opt, usageError("--parallel %d: at most %d", n, maxParallel)
	}
	return opt, nil
}

// readsOf reads the flags that say how to read.
func readsOf(c *cli.Context) (session.Reads, error) {
	r := session.Reads{IO: flashio.Engine(c.String("io")),
		Direct: flashio.Direct(c.String("direct")), Parallel: c.Int("parallel")}
	var err error
	if r.Layout, err = layoutOptions(c); err != nil {
		return r, err
	}
	return r, r.Check()
}

// windowOrBudget refuses another choice beside --dram, which chooses a window.
func windowOrBudget(c *cli.Context) error {
	switch text := c.String("dram"); {
	case text == "":
		return nil
	case c.IsSet("window"):
		return usageError("--dram %s and --window %d: give one of them", text, c.Int("window"))
	case c.String("policy") != "":
		return usageError("--dram %s chooses a window, and --policy %s is another choice; "+
			"give one of them", text, c.String("policy"))
	}
	return nil
}

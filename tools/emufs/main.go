package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/windrow-sim/windrow/devicemodels"
	"github.com/windrow-sim/windrow/internal/rng"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/replay/emulated"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "emufs:", err)
		os.Exit(1)
	}
}

// run mounts, serves until ctx is done, and unmounts.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("emufs", flag.ContinueOnError)
	flags.SetOutput(stderr)
	spec := flags.String("spec", "", "device `file` whose flash section is emulated")
	data := flags.String("data", "", "`file` with the bytes of the device")
	mount := flags.String("mount", "", "empty `directory` to mount on")
	seed := flags.Uint64("seed", rng.DefaultSeed,
		"seed of the latencies drawn from flash.ltfb_shape")
	span := flags.String("span", "0B", "`bytes` over which the reads will be spread, which "+
		"chooses from flash.spans; 0B = all of the file")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *spec == "" || *data == "" || *mount == "" || flags.NArg() > 0 {
		return errors.New("-spec, -data and -mount are needed, and nothing else; see -h")
	}
	device, err := devicemodels.Load(*spec)
	if err != nil {
		return err
	}
	spread, err := units.ParseBytes(*span)
	if err != nil {
		return fmt.Errorf("-span: %w", err)
	}
	f, err := os.Open(*data)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if spread == 0 {
		spread = units.Bytes(info.Size())
	}
	d, err := emulated.New(f, nil, device.Flash, emulated.Options{Parallel: 1, Seed: *seed,
		Span: spread})
	if err != nil {
		return fmt.Errorf("%s: %w", *spec, err)
	}
	server, err := serve(*mount, d, info.Size(), stderr)
	if err != nil {
		return fmt.Errorf("mount on %s: %w; it needs /dev/fuse, and root or fusermount3", *mount,
			err)
	}
	fmt.Fprintf(stdout, "%s/device is %s, %v\n", *mount, device.Name, units.Bytes(info.Size()))
	<-ctx.Done()
	for waiting := false; ; waiting = true {
		err := server.Unmount()
		if err == nil {
			return nil
		}
		if !waiting {
			fmt.Fprintf(stderr, "emufs: %s is in use (%v); it is unmounted when its files are "+
				"closed\n", *mount, err)
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// Command windrow sizes, simulates and runs language models that are larger than memory and live on
// flash.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/windrow-sim/windrow/cmd/windrow/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second interrupt ends the program at once
	code := cli.Run(ctx, os.Stdin, os.Stdout, os.Stderr, os.Args[1:])
	stop()
	os.Exit(code)
}

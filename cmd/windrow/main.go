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
	ctx := untilInterrupted()
	// A write to a closed pipe is an error then, and not the end of the program: verbs remove what
	// they have made.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	os.Exit(cli.Run(ctx, os.Stdin, os.Stdout, os.Stderr, os.Args[1:]))
}

// untilInterrupted is a context that the first interrupt ends. The second ends the program at once.
func untilInterrupted() context.Context {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return ctx
}

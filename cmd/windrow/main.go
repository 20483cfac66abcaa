// Command windrow sizes, simulates and runs language models that are larger than memory and live on
// flash.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/windrow-sim/windrow/cmd/windrow/cli"
	"github.com/windrow-sim/windrow/internal/output"
)

func main() {
	ctx := untilInterrupted()
	// A write to a closed pipe is an error then, and not the end of the program: verbs remove what
	// they have made.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	context.AfterFunc(ctx, func() {
		endLate(output.Busy, func() {
			fmt.Fprintln(os.Stderr, "windrow: interrupted: the verb waits for something that "+
				"does not answer; \"windrow clean\" removes what it left unfinished")
			os.Exit(cli.Interrupted)
		})
	})
	os.Exit(cli.Run(ctx, os.Stdin, os.Stdout, os.Stderr, os.Args[1:]))
}

// A verb returns soon after an interrupt, unless it waits in a call of the system: a read of a disk
// that does not answer. It then has patience, and longer while it saves what it has; look is how
// often that is looked at.
const (
	patience = 800 * time.Millisecond
	look     = 50 * time.Millisecond
)

// endLate calls exit for a verb that has not returned in time.
func endLate(busy func() bool, exit func()) {
	time.Sleep(patience)
	for idle := 0; idle < 2; idle++ {
		if busy() {
			idle = 0
		}
		time.Sleep(look)
	}
	exit()
}

// untilInterrupted is a context that the first interrupt ends. The second ends the program at once.
func untilInterrupted() context.Context {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return ctx
}

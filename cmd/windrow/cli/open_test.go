package cli

import (
	"flag"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"github.com/windrow-sim/windrow/internal/ioengine"
)

// TestEngineFlag: --io accepts the engines of the table, its help names each of them, and it
// refuses every other name.
func TestEngineFlag(t *testing.T) {
	usage := shared("io").(*cli.StringFlag).Usage
	readers := func(io string) error {
		set := flag.NewFlagSet("", flag.ContinueOnError)
		for _, f := range append(take(readingFlags...), take(engineFlags...)...) {
			if err := f.Apply(set); err != nil {
				t.Fatal(err)
			}
		}
		if err := set.Parse([]string{"--io", io}); err != nil {
			t.Fatal(err)
		}
		_, err := readsOf(cli.NewContext(nil, set, nil))
		return err
	}
	for _, name := range ioengine.Names() {
		if err := readers(name); err != nil || !strings.Contains(usage, name+" (") {
			t.Errorf("--io %s: %v; the help is %q", name, err, usage)
		}
	}
	err := readers("libaio")
	if err == nil || !strings.Contains(err.Error(), strings.Join(ioengine.Names(), ", ")) {
		t.Errorf("--io libaio: %v", err)
	}
}

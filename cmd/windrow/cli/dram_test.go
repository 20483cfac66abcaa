package cli

import (
	"strconv"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/devicemodels"
	"github.com/windrow-sim/windrow/engine/flashio"
	"github.com/windrow-sim/windrow/internal/decisions/memory"
	"github.com/windrow-sim/windrow/internal/units"
)

// alignment is what the reads of an image are aligned to where nothing else is asked for.
func alignment(t *testing.T, image string) units.Bytes {
	t.Helper()
	reader, err := flashio.Open(image, flashio.Options{Engine: flashio.EngineAuto,
		Direct: flashio.DirectAuto})
	if err != nil {
		t.Fatal(err)
	}
	align := reader.Mode().Align
	if err := reader.Close(); err != nil {
		t.Fatal(err)
	}
	return align
}

// accountOf is the window and the parts that a verb printed under --dram.
func accountOf(t *testing.T, stderr string) (window int, parts string) {
	t.Helper()
	_, rest, found := strings.Cut(stderr, "window ")
	number, rest, colon := strings.Cut(rest, ": ")
	_, rest, open := strings.Cut(rest, "(")
	line, _, _ := strings.Cut(rest, "\n") // names have brackets too
	window, err := strconv.Atoi(number)
	if parts = strings.TrimSuffix(line, ")"); !found || !colon || !open || parts == line ||
		err != nil {
		t.Fatalf("there is no account in %q", stderr)
	}
	return window, parts
}

// TestPlanAndReplayChooseTheSame: under one budget plan and replay take the same window of the
// shipped model, and account for the same parts. The device aligns its reads as this machine does.
func TestPlanAndReplayChooseTheSame(t *testing.T) {
	workspace(t)
	device, err := devicemodels.Preset("m1-max")
	if err != nil {
		t.Fatal(err)
	}
	device.Name, device.Flash.Align = "aligned", alignment(t, "tales.flash.safetensors")
	if err := devicemodels.Save("aligned.device.yaml", device); err != nil {
		t.Fatal(err)
	}
	windows := map[int]bool{}
	for _, budget := range []string{"72%", "78%", "8.5MiB"} {
		o := command("replay", "-t", "tales.trace.arrow", "-m", "tales.flash.safetensors", "--dram",
			budget)
		if o.code != exitOK {
			t.Fatalf("%s: exit %d: %s", budget, o.code, o.stderr)
		}
		window, parts := accountOf(t, o.stderr)
		doc := resultOf[struct {
			Memory memory.Memory `json:"memory"`
			Budget units.Bytes   `json:"budget_bytes"`
		}](t, must(t, "plan", "-t", "tales.trace.arrow", "-d", "aligned.device.yaml", "--dram",
			budget, "--prefix", "40", "--others", "m2-ultra", "--json"))
		if doc.Memory.Window != window || doc.Memory.String() != parts {
			t.Errorf("%s: replay has a window of %d (%s), plan of %d (%v)", budget, window, parts,
				doc.Memory.Window, doc.Memory)
		}
		if doc.Memory.Total > doc.Budget {
			t.Errorf("%s: %v of %v", budget, doc.Memory.Total, doc.Budget)
		}
		windows[window] = true
	}
	if len(windows) < 2 {
		t.Errorf("all budgets have the same window: %v", windows)
	}
	if o := command("replay", "-t", "tales.trace.arrow", "-m", "tales.flash.safetensors", "--dram",
		"30%"); o.code != exitUsage || !strings.Contains(o.stderr, "embeddings") ||
		!strings.Contains(o.stderr, "KV cache (32-bit)") {
		t.Errorf("below the floor: exit %d, %s", o.code, o.stderr)
	}
}

package cli

import (
	"math"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/sim/answers"
)

// TestBreakevenAgreesWithItself checks the relations that hold whatever the numbers are.
func TestBreakevenAgreesWithItself(t *testing.T) {
	workspace(t)
	args := []string{"breakeven", "-d", "emmc-64gb-sige5", "-t", "tiny.trace.arrow",
		"--simulated-layers",
		"2", "--largest-batch", "4", "--window", "2", "--weights", "60%"}
	text := must(t, append(args, "--json")...)
	doc := resultOf[struct {
		List []struct {
			Model   float64 `json:"model_bytes"`
			Budget  float64 `json:"budget_bytes"`
			Missing float64 `json:"hybrid_bytes_per_token"`
			Rate    float64 `json:"sequential_bytes_per_s"`
			Hybrid  float64 `json:"hybrid_closed_ns"`
			Active  float64 `json:"active_share"`
			Fitted  bool    `json:"fitted"`
			Share   struct {
				Closed    *float64 `json:"closed_form"`
				Simulated *float64 `json:"simulated"`
			} `json:"share"`
		} `json:"break_even"`
	}](t, text)
	if len(doc.List) != 1 {
		t.Fatal(text)
	}
	b := doc.List[0]
	if math.Abs(b.Budget/b.Model-0.6) > 1e-6 || b.Missing != b.Model-b.Budget ||
		math.Abs(b.Hybrid*b.Rate/1e9/b.Missing-1) > 1e-3 {
		t.Errorf("%+v", b)
	}
	if b.Share.Closed == nil || b.Share.Simulated == nil ||
		math.Abs(*b.Share.Closed/(*b.Share.Simulated)-1) > 0.1 {
		t.Errorf("closed form and simulation disagree by more than a tenth:\n%s", text)
	}
	accesses := float64(activeUnits(t, "tiny.trace.arrow"))
	if want := accesses / (6 * 2 * 16384); math.Abs(b.Active/want-1) > 1e-6 {
		t.Errorf("active share %g, the trace has %g", b.Active, want)
	}
	if b.Fitted {
		t.Error("the preset is not fitted")
	}
	if again := must(t, append(args, "--json")...); again != text {
		t.Error("two runs differ")
	}
	saysAll(t, must(t, args...), "emmc-64gb-sige5: selective reads are faster below an active "+
		"share of", "interval not known (two bounds)", "closed form", "simulated", "≤ ", "≥ ",
		"is not fitted")
}

func TestPlanPrintsEverySection(t *testing.T) {
	workspace(t)
	args := []string{"plan", "-t", "tiny.trace.arrow", "-d", "m1-max", "--dram", "90%", "--target",
		"1000", "--others", "m2-ultra", "--energy"}
	o := command(args...)
	if o.code != exitValidation || !strings.Contains(o.stderr,
		"the target of 1000 tokens/s is not") {
		t.Errorf("exit %d: %s", o.code, o.stderr)
	}
	saysAll(t, o.stdout, "verdict: the target of 1000 tokens/s is not reached", "row cache",
		"KV cache", "The best windows", "flash and memory (J/token)", "Needed for the target",
		"not enough alone", "elasticity", "m2-ultra")
	doc := resultOf[answers.Plan](t, command(append(args, "--json")...).stdout)
	sum := units.Bytes(0)
	for _, p := range doc.Memory.Parts {
		sum += p.Bytes
	}
	if sum != doc.Best.Memory || sum > doc.Budget || sum == 0 {
		t.Errorf("parts of %d B, total %d, budget %d", sum, doc.Best.Memory, doc.Budget)
	}
}

// A budget that nothing fits into is an answer, with a document.
func TestPlanBelowTheFloor(t *testing.T) {
	workspace(t)
	line := []string{"plan", "-t", "tiny.trace.arrow", "-d", "m1-max", "--dram", "1MiB"}
	o := command(line...)
	if o.code != exitValidation || !strings.Contains(o.stderr, "is below the floor of ") {
		t.Errorf("exit %d: %s", o.code, o.stderr)
	}
	saysAll(t, o.stdout, "Nothing fits", "embeddings", "Give it more")
	plan := resultOf[answers.Plan](t, command(append(line, "--json")...).stdout)
	if plan.Fits || plan.Best != nil || plan.Memory.Total <= plan.Budget || plan.Budget == 0 {
		t.Errorf("%+v", plan)
	}
}

// Weights in memory that do not hold what is not FFN are an answer.
func TestBreakevenBelowTheFloor(t *testing.T) {
	o := command("breakeven", "-d", "m1-max", "--weights", "10%")
	if o.code != exitValidation || !strings.Contains(o.stderr, "are below the floor") {
		t.Errorf("exit %d: %s", o.code, o.stderr)
	}
	saysAll(t, o.stdout, "Does not fit", "verdict: ")
}

// TestAnswersRefuse names the flag or says what to do.
func TestAnswersRefuse(t *testing.T) {
	workspace(t)
	for line, want := range map[string]string{
		"breakeven --like opt-6.7b":           "--device",
		"breakeven -d m1-max --like opt-6.8b": "OPT-6.7B",
		"breakeven -d m1-max --weights 100%": "nothing has to " +
			"be read",
		"breakeven -d m1-max --weights many":                                                     "--weights",
		"breakeven -d m1-max --parallel 99999":                                                   "--parallel",
		"breakeven -d m1-max --largest-batch 1000":                                               "--largest-batch",
		"breakeven -d m1-max --predicted":                                                        "-t",
		"breakeven -d m1-max -t tiny.trace.arrow --window 9 --weights 60%":                       "smaller window",
		"plan -t tiny.trace.arrow -d m1-max --dram 90% --target=-1":                              "--target",
		"plan -t tiny.trace.arrow -d m1-max --dram 90% --prefix=-1":                              "--prefix",
		"plan -t tiny.trace.arrow -d m1-max --dram 90% --io uring":                               "--io",
		"plan -t tiny.trace.arrow -d nothing --dram 90%":                                         "nothing",
		"plan -t tiny.trace.arrow -d m1-max --dram 90% --others m1-maxx":                         "m1-maxx",
		"plan -t tiny.trace.arrow -d m1-max --dram 90% --predictor-rank 1":                       "predictor",
		"breakeven -d m1-max --active 0.95 --simulated-layers 1 --largest-batch 1 --window 0 -q": "active share",
	} {
		o := command(words(t, line)...)
		if o.code != exitUsage || !strings.Contains(o.stderr, want) || o.stdout != "" {
			t.Errorf("%s: exit %d, %q; want a refusal that says %q", line, o.code, o.stderr, want)
		}
	}
}

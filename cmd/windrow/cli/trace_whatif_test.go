package cli

import (
	"math"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/traces"
	"github.com/windrow-sim/windrow/traces/whatif"
)

// TestWhatif records with magnitudes, changes the trace and reads the result back: what is printed
// is what is in the file.
func TestWhatif(t *testing.T) {
	workspace(t)
	must(t, "record", "-m", "tales.flash.safetensors", "--prompts", "words.txt", "-n", "12",
		"--magnitudes", "-o", "sized.trace.arrow")
	whole, err := traces.CheckFile(t.Context(), "sized.trace.arrow")
	if err != nil || whole.Magnitude != whole.Active || whole.Active == 0 {
		t.Fatalf("%d magnitudes for %d active units: %v", whole.Magnitude, whole.Active, err)
	}
	out := must(t, "trace", "whatif", "sized.trace.arrow", "--share", "3%", "--false-negatives",
		"5%", "--false-positives", "0.03", "--small-first",
		"-o", "thin.trace.arrow", "--json")
	result := resultOf[struct{ Report whatif.Report }](t, out)
	thin, err := traces.CheckFile(t.Context(), "thin.trace.arrow")
	if err != nil {
		t.Fatal(err)
	}
	counted := float64(thin.Active) / float64(thin.Rows*thin.Header.Units)
	if math.Abs(counted/0.03-1) > 0.01 || math.Abs(result.Report.After-counted) > 1e-12 ||
		thin.Magnitude != thin.Active || !thin.Header.HasPredicted {
		t.Errorf("asked for 3 %%, reported %g, counted %g; %+v", result.Report.After, counted,
			thin.Header)
	}
	if h := thin.Header; h.DerivedFrom != whole.SHA256 || !strings.HasPrefix(h.DerivedBy,
		"whatif share=0.03,") {
		t.Errorf("derived from %q by %q", h.DerivedFrom, h.DerivedBy)
	}
	for _, want := range []string{"recorded, derived", whole.SHA256, "small-first"} {
		if info := must(t, "trace", "info", "thin.trace.arrow"); !strings.Contains(info, want) {
			t.Errorf("trace info does not say %q:\n%s", want, info)
		}
	}
	if text := must(t, "trace", "whatif", "sized.trace.arrow", "--threshold", "0.5", "-o",
		"above.trace.arrow"); !strings.Contains(text, "magnitude") || !strings.Contains(text,
		"above.trace.arrow: ") {
		t.Errorf("printed\n%s", text)
	}
	first, again := must(t, "trace", "cat", "thin.trace.arrow", "--units"), ""
	must(t, "trace", "whatif", "sized.trace.arrow", "--share", "3%", "--false-negatives", "5%",
		"--false-positives", "0.03", "--small-first", "-o", "again.trace.arrow")
	if again = must(t, "trace", "cat", "again.trace.arrow", "--units"); first != again {
		t.Error("the same question gave another trace")
	}
}

func TestWhatifRefuses(t *testing.T) {
	workspace(t)
	before := names(t, ".")
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"tales.trace.arrow -o a.trace.arrow", exitUsage, "say what to change"},
		{"tales.trace.arrow --share 0 -o a.trace.arrow", exitUsage,
			"--share 0: it must be above 0"},
		{"tales.trace.arrow --share 300% -o a.trace.arrow", exitUsage, "--share:"},
		{"tales.trace.arrow --share 5% --layer-share 5% -o a.trace.arrow", exitUsage,
			"exclude each other"},
		{"tales.trace.arrow --threshold 0.5 -o a.trace.arrow", exitUsage,
			"record it with --magnitudes"},
		{"tales.trace.arrow --threshold -1 -o a.trace.arrow", exitUsage, "--threshold -1"},
		{"tales.trace.arrow --share 5% -o a.txt", exitUsage, "must end in .trace.arrow"},
		{"tales.trace.arrow --share 5% -o tales.trace.arrow", exitUsage,
			"both the trace to read and the trace to write"},
		{"--share 5% -o a.trace.arrow", exitUsage, "needs one trace"},
		{"cut.trace.arrow --share 5% -o a.trace.arrow", exitInput, "cut.trace.arrow"},
		{"none.trace.arrow --share 5% -o a.trace.arrow", exitInput, "none.trace.arrow"},
	} {
		o := command(append([]string{"trace", "whatif"}, strings.Fields(c.args)...)...)
		if o.code != c.code || !strings.Contains(o.stderr, c.want) || o.stdout != "" {
			t.Errorf("%s: exit %d, want %d and %q, got %q", c.args, o.code, c.code, c.want,
				o.stderr)
		}
	}
	if after := names(t, "."); len(after) != len(before) {
		t.Errorf("refused command lines left files: %v, before %v", after, before)
	}
}

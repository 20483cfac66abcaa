package cli

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/cmd/windrow/report"
	"github.com/windrow-sim/windrow/internal/document"
	"github.com/windrow-sim/windrow/sim/answers"
	"github.com/windrow-sim/windrow/sim/sweep"
)

// predictions are verbs that print a rate, and how to find it in their result.
var predictions = []struct {
	verb string
	line string // DEVICE stands for the device
	rate func(t *testing.T, text string) document.Estimate
}{
	{"sim", "sim -t tiny.trace.arrow -d DEVICE -o DEVICE.run.arrow", rateOfRun},
	{"report", "report DEVICE.run.arrow", rateOfRun}, // of the run before it
	{"sweep", "sweep DEVICE.yaml -o DEVICE.jsonl --resume",
		func(t *testing.T, text string) document.Estimate {
			return resultOf[sweep.Summary](t, text).Best[0].Rate()
		}},
	{"plan", "plan -t tiny.trace.arrow -d DEVICE --dram 90% --others m2-ultra",
		func(t *testing.T, text string) document.Estimate {
			return resultOf[answers.Plan](t, text).Best.Estimate
		}},
}

// rateOfRun is the rate of the first Run, which has no warm-up.
func rateOfRun(t *testing.T, text string) document.Estimate {
	t.Helper()
	run := resultOf[report.Exact](t, text).Runs[0].Meta
	return run.Prediction.Estimate(run.Totals.TokensPerS, run.Totals.TokensPerS)
}

// An interval and the word bound stand beside the rate in every format: of a device that is known
// from measurements, and of a drive without a host.
func TestPredictionsSayWhatTheyAre(t *testing.T) {
	workspace(t)
	for device, bound := range map[string]bool{"m1-max": false, "samsung-860pro-sata": true} {
		write(t, device+".yaml", "trace: {file: tiny.trace.arrow}\nwindows: [1, 3]\ndevices: "+
			device+"\n")
		for _, p := range predictions {
			line := words(t, strings.ReplaceAll(p.line, "DEVICE", device))
			rate := p.rate(t, must(t, append(line, "--json")...))
			if rate.Bound != bound || rate.Value <= 0 || !bound && (rate.Low == nil ||
				rate.High == nil) {
				t.Fatalf("%s on %s: %+v", p.verb, device, rate)
			}
			for _, format := range report.Formats() {
				text := must(t, append(forced(line), "--format", format)...)
				for _, fault := range unsaid(text, format, rate) {
					t.Errorf("%s on %s as %s: %s\n%.2000s", p.verb, device, format, fault, text)
				}
			}
		}
	}
}

// dataElement is the JSON form inside a page, which has the numbers as they are.
var dataElement = regexp.MustCompile(`(?s)<script[^>]*id="data".*?</script>`)

// unsaid reports what a format leaves out of a rate.
func unsaid(text, format string, rate document.Estimate) (faults []string) {
	require := func(part string) {
		if !strings.Contains(text, part) {
			faults = append(faults, "no "+part)
		}
	}
	exact := func(v float64) string {
		digits, _ := json.Marshal(v)
		return string(digits)
	}
	switch {
	case format == "json" && rate.Bound:
		require(`"basis": "bound"`)
		return faults
	case format == "json":
		require(exact(*rate.Low))
		require(exact(*rate.High))
		return faults
	case !rate.Bound:
		places := 2 // the headline, and a table
		if format == "csv" {
			places = 1
		}
		flat := strings.Join(strings.Fields(dataElement.ReplaceAllString(text, "")), " ")
		if n := strings.Count(flat, rate.Interval()); n < places {
			faults = append(faults, fmt.Sprintf("%s is there %d times", rate.Interval(), n))
		}
		return faults
	}
	// The number stands nowhere without its sign.
	require("bound")
	text = dataElement.ReplaceAllString(text, "")
	number := regexp.MustCompile(`.{0,8}` + regexp.QuoteMeta(document.Sig3(rate.Value)) + `\b`)
	found := number.FindAllString(text, -1)
	for _, place := range found {
		before := strings.TrimSuffix(place, document.Sig3(rate.Value))
		digit := strings.HasSuffix(before, ".") || strings.TrimRight(before, "0123456789") != before
		if !strings.HasSuffix(before, "≤ ") && !strings.HasSuffix(before, "at most ") && !digit {
			faults = append(faults, "a bound like an estimate: "+place)
		}
	}
	if len(found) == 0 {
		faults = append(faults, "no "+document.Sig3(rate.Value))
	}
	return faults
}

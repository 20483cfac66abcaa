package main

import (
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/kernels/cuda"
)

const benchmarks = `goos: linux
BenchmarkKernels/copy-16         	     200	        12 ns/op	      3200 GB/s	        84.00 us/op
BenchmarkKernels/matvec-F16-16   	     200	        12 ns/op	      2560.5 GB/s	        13.10 us/op
BenchmarkKernels/scatter-pinned-16	     200	        12 ns/op	        50.1 GB/s	       167 us/op
PASS
`

func TestRates(t *testing.T) {
	list, err := rates(benchmarks)
	if err != nil || len(list) != 3 || list[1].Name != "matvec-F16" || list[1].Rate != 2560.5 ||
		list[1].Share < 0.80 || list[1].Share > 0.801 || list[2].Name != "scatter-pinned" {
		t.Errorf("%+v, %v", list, err)
	}
	if _, err := rates("PASS\n"); err == nil {
		t.Error("no benchmarks, and no error")
	}
}

func TestTotals(t *testing.T) {
	got, err := totals([]byte(
		`{"schema": "windrow/replay/1", "result": {"runs": [{"meta": {"totals": {"tokens_per_s": 5.5, "hits": 3, "misses": 4, "requests": 2, "flash_bytes_read": 4096}}}]}}`))
	if err != nil || got.Rate != 5.5 || got.counters() != [5]int64{3, 4, 0, 2, 4096} {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := totals([]byte(`{"schema": "windrow/replay/1", "result": {"runs": []}}`)); err == nil {
		t.Error("a report without a run gave no error")
	}
}

func TestPageSaysWhatFailedAndWhatIsEmulated(t *testing.T) {
	d := &document{Emulated: true, Device: &cuda.Facts{Name: "some device", Driver: 12040},
		Steps: []step{{Name: "a", OK: true}, {Name: "b", Says: "because\n| of"}}}
	page := d.page()
	for _, want := range []string{"some device", "CUDA 12.4", "This was an emulation",
		"| a | passed | – |", `| b | **failed** | – | because \| of |`} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
	if d.failed() != 1 {
		t.Errorf("%d steps failed", d.failed())
	}
}

// TestComparison: the report of validate, with phases on one side or both, and what is none.
func TestComparison(t *testing.T) {
	const report = `{"schema": "windrow/validate/1", "result": {"comparison": {"counters_equal": true, "bytes_equal": true, "simulated_tokens_per_s": 11, "measured_tokens_per_s": 10, "tokens_per_s_error_percent": 10},
		"runs": [{"meta": {"phases": {"clock": "model", "read_ns": 1, "stage_ns": 2, "scatter_ns": 3, "compute_ns": 4, "sync_ns": 5}}}, {"meta": {}}]}}`
	r, err := comparison([]byte(report))
	if err != nil || !r.Same || r.Error != 10 || r.Phases != [2][5]int64{{1, 2, 3, 4, 5}, {}} {
		t.Errorf("%+v, %v", r, err)
	}
	d := &document{Compared: []compared{r}}
	if page := d.page(); !strings.Contains(page, "|  | yes | 11 | 10 | 10 |") ||
		strings.Contains(page, "Phases of") {
		t.Errorf("one side has no phases:\n%s", page)
	}
	d.Compared[0].Phases[1] = [5]int64{1e6, 0, 2e6, 0, 0}
	if page := d.page(); !strings.Contains(page, "| scatter | 3e-06 | 2 |") {
		t.Errorf("the page lacks its phases:\n%s", page)
	}
	if _, err := comparison([]byte(`{"schema": "windrow/validate/1", "result": {"runs": []}}`)); err == nil {
		t.Error("a report without a comparison gave no error")
	}
	if _, err := section([]byte(`{"schema": "windrow/probe/1", "result": {"name": "x"}}`)); err == nil {
		t.Error("a device model without a GPU gave no error")
	}
}

// TestResult: a document without its envelope, as windrow printed it once, is none.
func TestResult(t *testing.T) {
	var got struct{ Tokens []int }
	if err := result([]byte(`{"schema": "windrow/generate/1", "result": {"tokens": [3]}}`),
		&got); err != nil || len(got.Tokens) != 1 {
		t.Errorf("%+v, %v", got, err)
	}
	for _, text := range []string{`{"tokens": [3]}`, `{"schema": "other/1", "result": {}}`, "text"} {
		if err := result([]byte(text), &got); err == nil {
			t.Errorf("%s is a document of windrow", text)
		}
	}
}

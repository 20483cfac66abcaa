package arrivals

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func summary(t *testing.T, file string, o Options) *Summary {
	t.Helper()
	r, err := New(strings.NewReader(file), "x", o)
	if err != nil {
		t.Fatal(err)
	}
	s, err := Summarize(context.Background(), r)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSummary(t *testing.T) {
	const head = "arrived_at,num_prefill_tokens,num_decode_tokens\n"
	s := summary(t, head+"10,100,1\n10.9,50,3\n11,70,2\n11.5,60,9\n11.99,60,9\n20,10,0\n"+
		"14,1000,1\n", Options{SkipBad: 1})
	if *s.Span != 1_990_000_000 || *s.Rate != 4/1.99 || *s.Peak != 3 {
		t.Errorf("span %v, rate %v, peak %v", *s.Span, *s.Rate, *s.Peak)
	}
	if s.Prompt != (Tokens{Total: 340, Min: 50, P50: 60, P90: 100, P99: 100, Max: 100}) ||
		s.Output != (Tokens{Total: 24, Min: 1, P50: 3, P90: 9, P99: 9, Max: 9}) {
		t.Errorf("%+v, %+v", s.Prompt, s.Output)
	}
	text, err := json.Marshal(summary(t, head+"1,2,3\n", Options{}))
	want := `{"format":"vidur","lines":1,"requests":1,"bad":0,"failed":0,"skipped":{},"single_token":0,"ignored":[],"span_ns":0,"rate_per_s":null,"peak_per_s":1,"sessions":0,` +
		`"prompt_tokens":{"total":2,"min":2,"p50":2,"p90":2,"p99":2,"max":2},"output_tokens":{"total":3,"min":3,"p50":3,"p90":3,"p99":3,"max":3}}`
	if err != nil || string(text) != want {
		t.Errorf("got %s, %v", text, err)
	}
	s = summary(t,
		`[{"conversations": [{"from": "human", "value": "a"}, {"from": "gpt", "value": "b"}, {"from": "human", "value": "a"}, {"from": "gpt", "value": "b"}]}]`, Options{Count: words})
	if s.Span != nil || s.Rate != nil || s.Peak != nil || s.Sessions != 1 || s.Requests != 2 {
		t.Errorf("no times: %+v", s)
	}
}

func TestSummaryErrors(t *testing.T) {
	r, err := New(newRows(10), "x", Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Summarize(ctx, r); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	r, err = New(strings.NewReader("arrived_at,num_prefill_tokens,num_decode_tokens\nx,1,1\n"), "x",
		Options{})
	if err != nil {
		t.Fatal(err)
	}
	if s, err := Summarize(context.Background(), r); !errors.Is(err, ErrFormat) || s != nil {
		t.Errorf("%v, %v", s, err)
	}
}

// TestPercentiles compares with the sorted numbers themselves.
func TestPercentiles(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, most := range []float64{0, 4, 7, 12, 31} { // powers of two
		var h histogram
		var list []int
		for range 1000 {
			v := min(int(math.Exp2(r.Float64()*most)), MaxTokens)
			list = append(list, v)
			h.add(v)
		}
		slices.Sort(list)
		for p := int64(1); p <= 100; p++ {
			got, want := h.percentile(p), list[(len(list)*int(p)+99)/100-1]
			if math.Abs(float64(got-want)) > 0.00025*float64(want) || want < exact && got != want {
				t.Errorf("P%d of numbers below 2^%v: %d, want %d", p, most, got, want)
			}
		}
	}
	if (&histogram{}).percentile(50) != 0 {
		t.Error("a percentile of nothing")
	}
}

// TestBins: they are adjacent, and every number is in the one between whose edges it lies.
func TestBins(t *testing.T) {
	next := 0
	for b := range len(histogram{}.bins) {
		low, high := edges(b)
		if low != next || high < low || bin(low) != b || bin(high) != b || high >= exact &&
			float64(high-low) > float64(low)/subBins {
			t.Fatalf("bin %d is %d to %d, the one before ends at %d", b, low, high, next-1)
		}
		next = high + 1
	}
	if next-1 != MaxTokens {
		t.Errorf("the last bin ends at %d", next-1)
	}
}

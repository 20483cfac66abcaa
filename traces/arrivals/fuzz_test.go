package arrivals

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// FuzzReader: whatever the bytes, no panic, the same twice, and the invariants of the package.
func FuzzReader(f *testing.F) {
	seeds, err := filepath.Glob("testdata/*.*")
	if err != nil || len(seeds) < 7 {
		f.Fatalf("%d seeds: %v", len(seeds), err)
	}
	for _, name := range seeds {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data, uint8(0), false, uint8(0))
		f.Add(data, uint8(3), true, uint8(2))
	}
	f.Add([]byte("arrived_at,num_prefill_tokens,num_decode_tokens\n2,1,1\n\"1\",2,2\n,,\n"+
		"3,\"1,000\",1\n"), uint8(0), false, uint8(3))
	f.Add(
		[]byte(
			"{\"timestamp\":1,\"input_length\":1,\"output_length\":1,\"a\":[{\"b\":\"\\\"}\"}]}\n{}\n"), uint8(0), false, uint8(3))
	f.Add(
		[]byte(
			`[{"id":3,"conversations":[{"from":"system","value":"a"},{"from":"gpt","value":"b"}]},null,3]`), uint8(0), false, uint8(3))
	f.Fuzz(func(t *testing.T, data []byte, format uint8, sort bool, skip uint8) {
		formats := append(Formats(), Detect, Detect)
		o := Options{Format: formats[(int(format)+len(Formats()))%len(formats)], Sort: sort,
			SkipBad: int(skip), Count: words}
		list, stats, err := text(string(data), o)
		again, statsAgain, errAgain := text(string(data), o)
		if !reflect.DeepEqual(list, again) || !reflect.DeepEqual(stats, statsAgain) ||
			(err == nil) != (errAgain == nil) || err != nil && err.Error() != errAgain.Error() {
			t.Fatalf("two results: %+v %+v %v\n%+v %+v %v", list, stats, err, again, statsAgain,
				errAgain)
		}
		if err != nil && !errors.Is(err, ErrFormat) && !errors.Is(err, ErrUnsupported) {
			t.Fatalf("an error of no kind: %v", err)
		}
		checkRequests(t, list)
		checkStats(t, list, stats, err, o)
		if sort && err == nil && stats.Bad == 0 && stats.Format.HasTimes() {
			checkSorted(t, string(data), list, o)
		}
	})
}

// checkRequests is invariant 2.
func checkRequests(t *testing.T, list []Request) {
	t.Helper()
	for i, r := range list {
		if i == 0 && r.At != 0 || i > 0 && r.At < list[i-1].At {
			t.Fatalf("request %d at %d", i, r.At)
		}
		if r.History < 0 || r.History >= r.Prompt || r.Prompt > MaxTokens || r.Output < 1 ||
			r.Output > MaxTokens {
			t.Fatalf("request %+v", r)
		}
		if r.Turn > 1 && (r.Session != list[i-1].Session || r.Turn != list[i-1].Turn+1) {
			t.Fatalf("turns %+v, %+v", list[i-1], r)
		}
	}
}

// checkStats is invariant 3.
func checkStats(t *testing.T, list []Request, s Stats, err error, o Options) {
	t.Helper()
	skipped, single := int64(0), int64(0)
	for why, n := range s.Skipped {
		if n < 1 {
			t.Fatalf("%q: %d", why, n)
		}
		if why != Unanswered {
			skipped += n
		}
	}
	units := int64(0) // lines or conversations that became requests
	for _, r := range list {
		if r.Turn < 2 {
			units++
		}
		if r.Output == 1 {
			single++
		}
	}
	if o.Sort && err != nil && s.Format.HasTimes() {
		units = s.Requests // were read, and nothing was handed out
	} else if int64(len(list)) != s.Requests || single != s.SingleToken {
		t.Fatalf("%d requests, %d of one token, and %+v", len(list), single, s)
	}
	bad := int64(0)
	if one, ok := errors.AsType[*LineError](err); ok && s.Lines > 0 {
		bad = 1
		if one.Before != s.Bad || s.Bad != int64(o.SkipBad) {
			t.Fatalf("%v after %d tolerated of %d", err, s.Bad, o.SkipBad)
		}
	}
	if s.Lines != units+skipped+bad || s.Bad > skipped {
		t.Fatalf("%d lines are %d requests, %d left out, %d bad: %v", s.Lines, units, skipped, bad,
			err)
	}
}

// checkSorted is invariant 4 in one direction: a file that can be read without sorting has the same
// requests with it.
func checkSorted(t *testing.T, data string, sorted []Request, o Options) {
	t.Helper()
	o.Sort = false
	o.SkipBad = 0
	list, _, err := text(data, o)
	if err != nil && !strings.Contains(err.Error(), string(Unsorted)) {
		t.Fatalf("sorted it can be read, and not unsorted: %v", err)
	}
	if err == nil && !reflect.DeepEqual(list, sorted) {
		t.Fatalf("a sorted file sorted differs: %+v\n%+v", list, sorted)
	}
}

package flashio

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// run asks r for batches of the given sizes, 1000 bytes a request, and tells how each ended.
func run(t *testing.T, r Reader, sizes ...int) []string {
	t.Helper()
	var got []string
	for _, n := range sizes {
		reqs := make([]Request, n)
		for i := range reqs {
			reqs[i] = Request{int64(i), make([]byte, 1000)}
		}
		switch err := r.ReadBatch(reqs); {
		case err == nil:
			got = append(got, "ok")
		case errors.Is(err, syscall.EIO):
			got = append(got, "eio")
		case errors.Is(err, ErrShort):
			got = append(got, "short")
		default:
			got = append(got, err.Error())
		}
	}
	return got
}

func TestFaultScripts(t *testing.T) {
	for _, c := range []struct {
		script string
		sizes  []int
		want   string
	}{
		{"", []int{5, 5}, "ok ok"},
		{"eio at read 7", []int{3, 3, 3, 3}, "ok ok eio ok"},
		{"eio at read 7", []int{0, 6, 0, 1, 1}, "ok ok ok eio ok"},
		{"eio every 4", []int{3, 1, 3, 2}, "ok eio ok eio"},
		{"eio every 1", []int{0, 1, 2}, "ok eio eio"},
		{"short 512 every 3", []int{2, 2, 1, 1}, "ok short ok short"},
		{"short 0 at read 2", []int{1, 1, 1}, "ok short ok"},
		{"short 1000 every 1", []int{4}, "ok"}, // every byte is read
		{"eio at read 2; short 5 at read 4\n\n ; eio at read 6", []int{1, 1, 1, 1, 1, 1},
			"ok eio ok short ok eio"},
		{"short 5 at read 2; eio at read 1", []int{3}, "eio"}, // request order, not script order
		{"spike 1h p=0", []int{9}, "ok"},
	} {
		r, err := WithFaults(NewMem(randomBytes(2000)), c.script)
		if err != nil {
			t.Fatalf("%q: %v", c.script, err)
		}
		if got := strings.Join(run(t, r, c.sizes...), " "); got != c.want {
			t.Errorf("%q on batches of %v: %s, want %s", c.script, c.sizes, got, c.want)
		}
	}
}

func TestShortFaultDeliversItsFirstBytes(t *testing.T) {
	data := randomBytes(2000)
	r, err := WithFaults(NewMem(data), "short 600 at read 2")
	if err != nil {
		t.Fatal(err)
	}
	a, b, c := make([]byte, 1000), make([]byte, 1000), make([]byte, 1000)
	err = r.ReadBatch([]Request{{0, a}, {1000, b}, {0, c}})
	if !errors.Is(err, ErrShort) {
		t.Fatal(err)
	}
	mustContain(t, err.Error(), "600 of 1000", "offset 1000", "short 600 at read 2")
	if !slices.Equal(a, data[:1000]) || !slices.Equal(b[:600], data[1000:1600]) ||
		!slices.Equal(b[600:], make([]byte, 400)) {
		t.Error("the bytes before the break are not those of the file, or some behind it are")
	}
	if !slices.Equal(c, make([]byte, 1000)) {
		t.Error("the request behind the failed one was read")
	}
}

func TestFaultsLetRealErrorsGoFirst(t *testing.T) {
	for _, script := range []string{"eio at read 2", "short 1 at read 2"} {
		r, err := WithFaults(NewMem(make([]byte, 10)), script)
		if err != nil {
			t.Fatal(err)
		}
		err = r.ReadBatch([]Request{{5, make([]byte, 10)}, {0, make([]byte, 10)}})
		if err == nil || errors.Is(err, syscall.EIO) || errors.Is(err, ErrShort) {
			t.Errorf("%q: %v, want the end of the file", script, err)
		}
	}
}

func TestSpikes(t *testing.T) {
	delays := func(script string, batches, size int) (slept []time.Duration) {
		r, err := WithFaults(NewMem(make([]byte, 2000)), script)
		if err != nil {
			t.Fatal(err)
		}
		r.(*faultyReader).sleep = func(d time.Duration) { slept = append(slept, d) }
		for range batches {
			run(t, r, size)
		}
		return slept
	}
	one := delays("spike 20ms p=0.1 seed=1", 1000, 1)
	if n := len(one); n < 70 || n > 130 { // mean 100, standard deviation 9.5
		t.Errorf("%d spikes in 1000 reads with p=0.1", n)
	}
	if again := delays("spike 20ms p=0.1", 1000, 1); !slices.Equal(again, one) {
		t.Error("seed 1 is not the default, or a seed gives different spikes")
	}
	if other := len(delays("spike 20ms p=0.1 seed=2", 1000, 1)); other == len(one) {
		t.Logf("seeds 1 and 2 both gave %d spikes", other)
	}
	if all := delays("spike 1ms p=1; spike 3ms p=1; spike 2ms p=1", 2, 50); !slices.Equal(all,
		[]time.Duration{3e6, 3e6}) {
		t.Errorf("delays %v, want the longest once for each batch", all)
	}
}

func TestFaultsAreNoted(t *testing.T) {
	r, err := WithFaults(NewMem(nil), "eio  at read 7; spike 1ms p=0.5")
	if err != nil {
		t.Fatal(err)
	}
	m := r.Mode()
	mustContain(t, notes(m), `"eio at read 7"`, `"spike 1ms p=0.5"`)
	if m.Engine != EngineMem {
		t.Errorf("mode %+v", m)
	}
}

func TestFaultScriptErrors(t *testing.T) {
	for _, c := range []struct{ script, want string }{
		{"eio", `statement 1, "eio"`},
		{"eio at read 7; eio att read 7", `statement 2, "eio att read 7"`},
		{"\n;eio every 0", `statement 1, "eio every 0"`},
		{"eio every -3", "from 1"},
		{"eio at read 99999999999999999999", "from 1"},
		{"enospc every 1", "known are eio, short, spike"},
		{"short", "number of bytes is missing"},
		{"short -1 every 2", "number of bytes"},
		{"short 512", "does not say when"},
		{"spike", "spike 20ms p=0.001"},
		{"spike 20 p=0.1", "duration"},
		{"spike -1s p=0.1", "duration"},
		{"spike 1s 0.1", "probability"},
		{"spike 1s p=1.5", "probability"},
		{"spike 1s p=NaN", "probability"},
		{"spike 1s p=0.1 sead=1", "seed=1"},
		{"spike 1s p=0.1 seed=-1", "seed=1"},
	} {
		r, err := WithFaults(NewMem(nil), c.script)
		if err == nil || r != nil {
			t.Errorf("%q was accepted", c.script)
			continue
		}
		mustContain(t, err.Error(), "fault script", c.want)
	}
}

// FuzzFaultScript: whatever is accepted is normal (its parts parse to the same again), in range,
// and does not break a reader.
func FuzzFaultScript(f *testing.F) {
	for _, s := range []string{"eio at read 7", "eio every 100", "short 512 every 100",
		"spike 20ms p=0.001 seed=1", "eio every 1;\nshort 0 at read 2", ";;", "spike 1ns p=1e-3"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, script string) {
		faults, err := parseFaults(script)
		if err != nil {
			if !strings.Contains(err.Error(), "statement") {
				t.Errorf("error names no statement: %v", err)
			}
			return
		}
		var parts []string
		for _, ft := range faults {
			parts = append(parts, ft.text)
			if ft.kind == faultSpike {
				if !(ft.p >= 0 && ft.p <= 1) || ft.delay <= 0 {
					t.Errorf("spike out of range: %+v", ft)
				}
			} else if (ft.at >= 1) == (ft.every >= 1) || ft.keep < 0 {
				t.Errorf("fault out of range: %+v", ft)
			}
		}
		again, err := parseFaults(strings.Join(parts, "\n"))
		if err != nil || len(again) != len(faults) {
			t.Fatalf("normal form %q does not parse: %v", parts, err)
		}
		for i := range again {
			a, b := again[i], faults[i]
			a.dice, b.dice = nil, nil
			if a != b {
				t.Errorf("normal form differs: %+v, %+v", a, b)
			}
		}
		r := &faultyReader{inner: NewMem(make([]byte, 64)), faults: faults,
			sleep: func(time.Duration) {}}
		for n := range 20 {
			err := r.ReadBatch([]Request{{int64(n), make([]byte, n)}})
			if err != nil && !errors.Is(err, syscall.EIO) && !errors.Is(err, ErrShort) {
				t.Errorf("read %d: %v", n, err)
			}
		}
	})
}

func ExampleWithFaults() {
	r, err := WithFaults(NewMem(make([]byte, 4096)), "eio at read 2")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer r.Close()
	err = r.ReadBatch([]Request{{Offset: 0, Buf: make([]byte, 8)},
		{Offset: 8, Buf: make([]byte, 8)}})
	fmt.Println(strings.TrimPrefix(err.Error(), "flashio: faults: "))
	fmt.Println(r.ReadBatch([]Request{{Offset: 8, Buf: make([]byte, 8)}}))
	// Output:
	// read of 8 bytes at offset 8: input/output error (read 2, injected by "eio at read 2")
	// <nil>
}

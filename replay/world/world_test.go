package world

import (
	"bytes"
	"context"
	"encoding/json"

	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime/pprof"
	"testing"
	"time"
)

var (
	seedsFlag = flag.Int("seeds", 200, "number of seeds that TestSeeds runs")
	firstFlag = flag.Uint64("seed", 0, "the first of them")
	keepFlag  = flag.String("keep", "", "write the case of the first seed to testdata/cases "+
		"under this name")
)

// limit is the real time of one case: far beyond what any machine needs, so that only a case that
// never ends reaches it.
const limit = 5 * time.Minute

// TestSeeds runs the case of each seed. Every tenth runs twice: its course must be the same.
func TestSeeds(t *testing.T) {
	t.Setenv("GODEBUG", "tracebacklabels=1") // a crash names its seed
	total, failures, began := outcome{}, 0, time.Now()
	kinds := map[kind]int{}
	for seed := *firstFlag; seed < *firstFlag+uint64(*seedsFlag); seed++ {
		c := draw(seed)
		if *keepFlag != "" {
			keep(t, c)
		}
		got := c.watched(t, seed)
		if seed%10 == 0 {
			if again := c.watched(t, seed); !reflect.DeepEqual(again, got) {
				got.Findings = append(got.Findings, fmt.Sprintf("two runs: %+v and %+v", got,
					again))
			}
		}
		total.Steps, total.Calls, total.End, total.Read = total.Steps+got.Steps,
			total.Calls+got.Calls, total.End+got.End, total.Read+got.Read
		kinds[got.Kind]++
		if len(got.Findings) == 0 {
			continue
		}
		for _, f := range got.Findings[:min(len(got.Findings), 5)] {
			t.Errorf("seed %d: %s", seed, f)
		}
		t.Logf("run it again: make vopr SEEDS=1 SEED=%d", seed)
		if *seedsFlag == 1 {
			t.Logf("the error: %s\nthe case: %s", got.Err, c.text())
		}
		if failures++; failures == 5 {
			t.Fatal("more than enough")
		}
	}
	t.Logf("%d seeds in %.1f s: %d right steps, %d reads, %v, %v of virtual time, %v", *seedsFlag,
		time.Since(began).Seconds(), total.Steps, total.Calls, total.Read, total.End, kinds)
	for _, k := range []kind{exact, late, failed, cancelled} {
		if kinds[k] < *seedsFlag/100 {
			t.Errorf("%d of %d seeds ended %s: the world has become too kind", kinds[k],
				*seedsFlag, k)
		}
	}
}

// TestKeptCases runs the cases that found a fault once.
func TestKeptCases(t *testing.T) {
	paths, err := filepath.Glob("testdata/cases/*.json")
	if err != nil || len(paths) < 10 {
		t.Fatalf("%d cases: %v", len(paths), err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		c := &Case{}
		d := json.NewDecoder(bytes.NewReader(text))
		d.DisallowUnknownFields()
		if err := d.Decode(c); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if c.text() != string(text) {
			t.Errorf("%s is not the case that it is read as", path)
		}
		for _, f := range c.watched(t, c.Seed).Findings {
			t.Errorf("%s: %s", path, f)
		}
	}
}

// watched runs a case under the limit of real time.
func (c *Case) watched(t *testing.T, seed uint64) outcome {
	dog := time.AfterFunc(limit, func() {
		panic(fmt.Sprintf("seed %d has run for %v: a goroutine holds a lock while it waits, or "+
			"polls the clock", seed, limit))
	})
	defer dog.Stop()
	var got outcome
	var err error
	pprof.Do(context.Background(), pprof.Labels("seed", fmt.Sprint(seed)),
		func(context.Context) { got, err = c.run(t) })
	if err != nil {
		t.Fatalf("seed %d is no case: %v", seed, err)
	}
	return got
}

func keep(t *testing.T, c *Case) {
	path := filepath.Join("testdata", "cases", *keepFlag+".json")
	if err := os.WriteFile(path, []byte(c.text()), 0o644); err != nil {
		t.Fatal(err)
	}
}

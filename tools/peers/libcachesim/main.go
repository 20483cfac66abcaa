// Command libcachesim runs windrow's residency pass and libCacheSim's LRU on the same requests, in
// turns on the same machine.
//
// One active unit of one token is one request. libCacheSim reads them from a file in its
// oracleGeneral format and reports requests per second itself; windrow works on the masks of the
// same trace, in memory. Both use one thread. The numbers of misses are compared too: libCacheSim
// takes the requests of a token one by one, windrow as one set, so they are close and not equal.
//
//	go run ./tools/peers/libcachesim --cachesim PATH/cachesim
//
// where cachesim is built from github.com/1a1a11a/libCacheSim (CMAKE_BUILD_TYPE=Release).
package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/windrow-sim/windrow/internal/decisions/policy"
	"github.com/windrow-sim/windrow/internal/mask"
	"github.com/windrow-sim/windrow/traces"
	"github.com/windrow-sim/windrow/traces/stats"
	"github.com/windrow-sim/windrow/traces/synth"
)

func main() {
	cachesim := flag.String("cachesim", "", "libCacheSim's `PROGRAM`")
	runs := flag.Int("runs", 5, "turns; medians are printed")
	flag.Parse()
	if err := compare(*cachesim, *runs); err != nil {
		fmt.Fprintln(os.Stderr, "libcachesim:", err)
		os.Exit(1)
	}
}

// shapes are the traces: the whole of OPT-6.7B, whose units are one cache of 524,288 objects to
// libCacheSim, and one layer of it, which fits into a processor's cache whole.
var shapes = []synth.Options{
	{Like: "opt-6.7b", Layers: 32, Tokens: 256, Seed: 42},
	{Like: "opt-6.7b", Layers: 1, Tokens: 8192, Seed: 42},
}

func compare(program string, runs int) error {
	if program == "" || runs < 1 {
		return errors.New("--cachesim: name the program, and at least one run")
	}
	dir, err := os.MkdirTemp("", "windrow-peers-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	for _, shape := range shapes {
		for _, predicted := range []bool{false, true} {
			shape.Predicted = predicted
			trace, err := synth.Collect(context.Background(), shape)
			if err != nil {
				return err
			}
			p := peers{program: program, file: filepath.Join(dir, "requests.oracleGeneral"),
				trace: trace, predicted: predicted, runs: runs}
			if err := p.export(); err != nil {
				return err
			}
			kind := "true"
			if predicted {
				kind = "predicted"
			}
			fmt.Printf("%d layers of %d units, %d tokens, %s masks: %d requests\n",
				trace.Head.Layers, trace.Head.Units, len(trace.List), kind, p.requests)
			for _, percent := range []int{10, 25} {
				if err := p.turns(trace.Head.Units * percent / 100); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// peers are two programs on one trace.
type peers struct {
	program   string // libCacheSim's
	file      string // of requests
	trace     *traces.Memory
	predicted bool
	requests  int
	runs      int
}

// masks are what a token needs, by layer.
func (p *peers) masks(token int) []mask.Mask {
	return p.trace.List[token].Masks(p.predicted)
}

// export writes the requests in libCacheSim's oracleGeneral format: time uint32, object uint64,
// size uint32, next access int64 (unused by LRU).
func (p *peers) export() error {
	f, err := os.Create(p.file)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, 1<<20)
	var record [24]byte
	for token := range p.trace.List {
		for layer, mask := range p.masks(token) {
			for u := range mask.Each {
				binary.LittleEndian.PutUint32(record[0:], uint32(token))
				binary.LittleEndian.PutUint64(record[4:], uint64(layer*p.trace.Head.Units+int(u)))
				binary.LittleEndian.PutUint32(record[12:], 1)
				binary.LittleEndian.PutUint64(record[16:], math.MaxInt64)
				if _, err := w.Write(record[:]); err != nil {
					return errors.Join(err, f.Close())
				}
				p.requests++
			}
		}
	}
	return errors.Join(w.Flush(), f.Close())
}

// turns runs the three in turns and prints medians of millions of requests per second.
func (p *peers) turns(capacity int) error {
	var theirs, pass, lru []float64
	var theirMisses, ourMisses float64
	for range p.runs {
		rate, ratio, err := runCachesim(p.program, p.file, capacity*p.trace.Head.Layers)
		if err != nil {
			return err
		}
		theirs, theirMisses = append(theirs, rate), ratio

		start := time.Now()
		if _, err := stats.Compute(p.trace, stats.Options{Workers: 1,
			Predicted: p.predicted}); err != nil {
			return err
		}
		pass = append(pass, p.rate(start))

		start = time.Now()
		loads, err := p.lru(capacity)
		if err != nil {
			return err
		}
		lru = append(lru, p.rate(start))
		ourMisses = float64(loads) / float64(p.requests)
	}
	t, all, one := median(theirs), median(pass), median(lru)
	fmt.Printf("  %d units per layer, median of %d turns, million requests/s:\n", capacity, p.runs)
	fmt.Printf("    libCacheSim LRU, one capacity        %7.2f         miss ratio %.4f\n", t,
		theirMisses)
	fmt.Printf("    windrow LRU, one capacity            %7.1f  %5.1f×  miss ratio %.4f\n", one,
		one/t, ourMisses)
	fmt.Printf("    windrow windows 0…64, all in a pass  %7.1f  %5.1f×\n", all, all/t)
	return nil
}

func (p *peers) rate(start time.Time) float64 {
	return float64(p.requests) / time.Since(start).Seconds() / 1e6
}

// lru takes windrow's own LRU, one per layer, through the masks.
func (p *peers) lru(capacity int) (loads int, err error) {
	spec := policy.Spec{Kind: policy.KindLRU, Capacity: capacity}
	layers := make([]policy.Policy, p.trace.Head.Layers)
	for l := range layers {
		if layers[l], err = policy.New(spec, p.trace.Head.Units, policy.Options{}); err != nil {
			return 0, err
		}
	}
	var d policy.Decision
	for token := range p.trace.List {
		for l, mask := range p.masks(token) {
			layers[l].Step(mask, &d)
			loads += len(d.Load)
		}
	}
	return loads, nil
}

var reported = regexp.MustCompile(`miss ratio ([0-9.]+), throughput ([0-9.]+) MQPS`)

// runCachesim returns what libCacheSim reports: millions of requests per second, and its miss
// ratio.
func runCachesim(program, file string, capacity int) (rate, ratio float64, err error) {
	out, err := exec.Command(program, file, "oracleGeneral", "LRU", strconv.Itoa(capacity),
		"--ignore-obj-size", "1", "--num-thread", "1").CombinedOutput()
	if err != nil {
		return 0, 0, fmt.Errorf("%s: %w: %s", program, err, out)
	}
	all := reported.FindAllSubmatch(out, -1)
	if len(all) == 0 {
		return 0, 0, fmt.Errorf("%s: no result in its output: %s", program, out)
	}
	last := all[len(all)-1]
	if ratio, err = strconv.ParseFloat(string(last[1]), 64); err != nil {
		return 0, 0, err
	}
	rate, err = strconv.ParseFloat(string(last[2]), 64)
	return rate, ratio, err
}

func median(list []float64) float64 {
	s := slices.Sorted(slices.Values(list))
	return s[len(s)/2]
}

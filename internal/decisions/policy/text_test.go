package policy

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/internal/mask"
)

// TestTexts runs the scripts in testdata; README.txt there says how to read them.
func TestTexts(t *testing.T) {
	files, err := filepath.Glob("testdata/[a-z]*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no scripts", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			runScript(t, file)
		})
	}
}

// script is what the runner knows while it reads a file.
type script struct {
	lines     []string
	policy    Policy
	spec      Spec
	units     int
	explained bool // a comment stands above the line
	steps     int
}

func runScript(t *testing.T, file string) {
	s := &script{lines: readLines(t, file)}
	for i, line := range s.lines {
		if err := s.line(i, line); err != nil {
			t.Fatalf("%s:%d: %v", file, i+1, err)
		}
		s.explained = strings.HasPrefix(line, "#")
	}
	if s.steps == 0 {
		t.Fatalf("%s has no steps", file)
	}
}

func readLines(t *testing.T, file string) (lines []string) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	scan := bufio.NewScanner(f)
	for scan.Scan() {
		lines = append(lines, scan.Text())
	}
	return lines
}

func (s *script) line(i int, text string) (err error) {
	word, _, _ := strings.Cut(text, " ")
	switch {
	case text == "" || strings.HasPrefix(text, "#"):
		return nil
	case word == "policy":
		return s.start(i, text)
	case s.policy == nil:
		return fmt.Errorf("%q stands before any policy", text)
	case text == "reset":
		s.policy.Reset()
		return nil
	case word != "need":
		return fmt.Errorf("%q is not a line of a script", text)
	case !s.explained:
		return fmt.Errorf("the step %q has no explanation above it", text)
	}
	return s.step(text)
}

// start reads "policy SPEC units N", optionally with "ranked U U …" or "layer L".
func (s *script) start(i int, text string) (err error) {
	words := strings.Fields(text)
	field := fields(words[2:])
	if len(words) < 4 || len(field["units"]) != 1 {
		return fmt.Errorf("%q is not policy SPEC units N", text)
	}
	if s.spec, err = Parse(words[1]); err != nil {
		return err
	}
	s.units = int(field["units"][0])
	opt := Options{Hot: field["ranked"], Future: slices.Values(s.future(i + 1))}
	if layer := field["layer"]; len(layer) == 1 {
		opt.Layer = int(layer[0])
	}
	s.policy, err = New(s.spec, s.units, opt)
	return err
}

// future is what the steps up to the next policy need.
func (s *script) future(from int) (masks []mask.Mask) {
	for _, text := range s.lines[from:] {
		if strings.HasPrefix(text, "policy") {
			break
		}
		if strings.HasPrefix(text, "need") {
			masks = append(masks, maskOf(s.units, fields(strings.Fields(text))["need"]))
		}
	}
	return masks
}

func (s *script) step(text string) error {
	field := fields(strings.Fields(text))
	if len(field["hits"]) != 1 {
		return fmt.Errorf("%q has no number of hits", text)
	}
	want := Decision{Hits: int(field["hits"][0]), Load: field["load"], Evict: field["evict"]}
	for name, to := range map[string]*int{"overflow": &want.Overflow, "ahead": &want.Ahead} {
		if n := field[name]; len(n) == 1 {
			*to = int(n[0])
		}
	}
	var got Decision
	s.policy.Step(maskOf(s.units, field["need"]), &got)
	s.steps++
	if got, want := show(&got), show(&want); got != want {
		return fmt.Errorf("%v: need %v: got %s, want %s", s.spec, field["need"], got, want)
	}
	return nil
}

// fields reads "name number number … name -": "-" is the empty list.
func fields(words []string) map[string][]uint32 {
	field, key := map[string][]uint32{}, ""
	for _, word := range words {
		if n, err := strconv.ParseUint(word, 10, 32); err == nil {
			field[key] = append(field[key], uint32(n))
		} else if word != "-" {
			key = word
			field[key] = nil
		}
	}
	return field
}

func show(d *Decision) string {
	return fmt.Sprintf("hits %d load %v evict %v overflow %d ahead %d", d.Hits, d.Load, d.Evict,
		d.Overflow, d.Ahead)
}

func maskOf(units int, list []uint32) mask.Mask {
	m := mask.New(units)
	m.SetList(list)
	return m
}

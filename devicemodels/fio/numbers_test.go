package fio

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/internal/input/inputtest"
)

// TestAbsurdNumbers replaces each number of outputs of fio, also those of options. The file is
// refused by its line, or the number is left out by line, field and value, or it is one that a
// measurement may have. What is read then makes cells without more memory than the text takes.
func TestAbsurdNumbers(t *testing.T) {
	named, read := 0, 0
	for _, name := range []string{"jsonplus.json", "v2.1.4.json", "clients.out"} {
		good, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		start := strings.Index(string(good), "{")
		for _, n := range inputtest.JSON(t, good[start:strings.LastIndex(string(good), "}")+1]) {
			for _, other := range inputtest.Absurd() {
				text := append(slices.Clone(good[:start]), n.Replaced(good[start:], other)...)
				line := n
				line.Line += strings.Count(string(good[:start]), "\n")
				what := fmt.Sprintf("%s: %s = %s", name, n.Path, other)
				f, err := Parse(name, text)
				if err != nil {
					named++
					if missing := line.Missing(err, name, other); !errors.Is(err, ErrFormat) ||
						missing != "" && !strings.Contains(err.Error(), fmt.Sprint("line ",
							line.Line)) {
						t.Errorf("%s: without %s: %v", what, missing, err)
					}
					continue
				}
				read++
				if err := exact(f); err != nil {
					t.Errorf("%s: %v", what, err)
				}
				Cells([]*File{f})
				said := strings.Join(f.Warnings, "\n")
				for _, e := range f.Entries {
					said += strings.Join(e.Warnings, "\n") + e.Usable() + e.Failed()
				}
				if slices.Contains(inputtest.Impossible(), other) && ofARead(n) &&
					!strings.Contains(said, other) && !strings.Contains(said, n.Field()) &&
					!strings.Contains(strings.ToLower(other), "nan") &&
					!strings.Contains(other, "Inf") {
					t.Errorf("%s: nothing says that it is left out:\n%s", what, said)
				}
			}
		}
	}
	if named < 10 || read < 1000 {
		t.Errorf("%d files are refused and %d read", named, read)
	}
}

// ofARead reports whether a number is of a kind that is read.
func ofARead(n inputtest.Number) bool {
	return slices.Contains(numberKeys, n.Field()) || n.Field() == "iodepth" ||
		n.Field() == "numjobs" || strings.Contains(n.Path, ".percentile.") ||
		strings.Contains(n.Path, ".bins.")
}

// exact refuses numbers of entries that are not exact.
func exact(f *File) error {
	for _, e := range f.Entries {
		for _, v := range []*int64{e.Short, e.Dropped, e.IOs, (*int64)(e.Bytes),
			(*int64)(e.Bandwidth), (*int64)(e.Runtime), (*int64)(e.Total.Mean),
			(*int64)(e.Complete.Mean)} {
			if v != nil && (*v < 0 || *v > maxCount) {
				return fmt.Errorf("%s: %d", e.Job, *v)
			}
		}
		for _, v := range []*int{e.Depth, e.Jobs} {
			if v != nil && (*v < 1 || *v > maxInFlight) {
				return fmt.Errorf("%s: %d in flight", e.Job, *v)
			}
		}
		if e.IOPS != nil && !(*e.IOPS >= 0 && *e.IOPS <= math.MaxFloat64) {
			return fmt.Errorf("%s: %g reads per second", e.Job, *e.IOPS)
		}
	}
	return nil
}

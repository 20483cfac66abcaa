package flashio

import (
	"errors"
	"slices"
	"testing"

	"github.com/windrow-sim/windrow/engine/flashio/uring"
	"github.com/windrow-sim/windrow/internal/ioengine"
)

// TestEnginesOfTheTable opens a file with every engine of the table and compares the reader with
// its row.
func TestEnginesOfTheTable(t *testing.T) {
	path := writeImage(t, t.TempDir(), 8192)
	var written []string
	for _, i := range implementations() {
		written = append(written, string(i.engine))
	}
	var named []string
	for _, row := range ioengine.Engines() {
		named = append(named, row.Name)
		if !slices.Contains(written, row.Name) {
			continue
		}
		t.Run(row.Name, func(t *testing.T) {
			mode := openSubject(t, subject{opt: Options{Engine: Engine(row.Name)}}, path).Mode()
			if mode.Engine != Engine(row.Name) || mode.Parallel != row.Parallel ||
				row.Cached && mode.Direct {
				t.Errorf("mode %+v, table %+v", mode, row)
			}
			_, err := Open(path, Options{Engine: Engine(row.Name), Parallel: row.MaxParallel + 1})
			if err == nil {
				t.Fatalf("more than %d requests in flight were accepted", row.MaxParallel)
			}
			mustContain(t, err.Error(), "outside 0..")
		})
	}
	if !slices.Equal(written, named) {
		t.Errorf("readers are written for %v, the table names %v", written, named)
	}
	if row, _ := ioengine.Find(ioengine.Uring); row.MaxParallel != uring.MaxDepth {
		t.Errorf("the table accepts a queue depth of %d, the ring %d", row.MaxParallel,
			uring.MaxDepth)
	}
}

// TestWorking: an engine is listed exactly when it can be opened, and auto opens the best of
// the list.
func TestWorking(t *testing.T) {
	path, working := writeImage(t, t.TempDir(), 8192), Working()
	for _, row := range ioengine.Engines() {
		if row.Cached {
			continue
		}
		r, err := Open(path, Options{Engine: Engine(row.Name)})
		if err == nil {
			r.Close()
		} else if !errors.Is(err, ErrEnvironment) {
			t.Fatal(err)
		}
		if slices.Contains(working, Engine(row.Name)) != (err == nil) {
			t.Errorf("%s: working engines are %v, but opening gives %v", row.Name, working, err)
		}
	}
	auto := openSubject(t, subject{}, path).Mode().Engine
	if auto != Best() || !slices.Contains(working, auto) {
		t.Errorf("auto is %s, the best of %v is %s", auto, working, Best())
	}
}

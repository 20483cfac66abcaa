// Package reference finds the collection of published numbers and samples beside the repository,
// for tests. The program never reads it. It is a leaf.
package reference

import (
	"encoding/csv"
	"os"
	"path/filepath"
	"testing"
)

// Path returns the path of a file or folder of the collection. It skips the test if there is no
// collection.
func Path(t testing.TB, parts ...string) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		path := filepath.Join(append([]string{dir, "shared", "reference"}, parts...)...)
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	t.Skip("the collection of published numbers and samples is not here")
	return ""
}

// Table reads a table of the collection, including its header. It skips the test if there is no
// collection.
func Table(t testing.TB, parts ...string) [][]string {
	t.Helper()
	f, err := os.Open(Path(t, parts...))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

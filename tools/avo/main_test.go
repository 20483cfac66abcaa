package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// What is committed must be what these kernels generate: an edit by hand, or a kernel changed
// without a new run, fails here.
func TestCommittedFilesAreCurrent(t *testing.T) {
	files, err := generate()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{asmFile, stubFile} {
		committed, err := os.ReadFile(filepath.Join("..", "..", "kernels", "cpu", name))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(committed, files[name]) {
			t.Errorf("kernels/cpu/%s differs from what is generated now: run \"go generate "+
				"./kernels/cpu\"", name)
		}
	}
}

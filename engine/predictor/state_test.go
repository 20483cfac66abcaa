package predictor

import (
	"os"
	"path/filepath"
	"testing"
)

// TestClearState removes the files of a training and nothing else.
func TestClearState(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"layer-0000.safetensors", "layer-0001.safetensors", "mine"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	ClearState(dir, 2)
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 || left[0].Name() != "mine" {
		t.Errorf("left %v, %v", left, err)
	}
	os.Remove(filepath.Join(dir, "mine"))
	ClearState(dir, 2)
	if _, err := os.Stat(dir); err == nil {
		t.Error("the empty folder stays")
	}
}

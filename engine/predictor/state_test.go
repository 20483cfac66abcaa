package predictor

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/engine/checkpoint"
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

// TestStateOfAnotherTraining: a layer that does not fit the training is refused, with the remedy,
// although the fingerprint is right.
func TestStateOfAnotherTraining(t *testing.T) {
	p := tiny(t)
	for name, c := range map[string]struct {
		change func(q *Predictor, rep *LayerReport)
		want   string
	}{
		"kind": {func(q *Predictor, _ *LayerReport) { q.kind = Linear }, "kind linear"},
		"width": {func(q *Predictor, _ *LayerReport) {
			q.width = 4
			q.layers[0] = Layer{Rank: 1, W1: halves(1, 2, 3, 4), W2: halves(1, 2, 3)}
		}, "features of 4"},
		"units": {func(q *Predictor, _ *LayerReport) {
			q.units, q.layers[0] = 5, Layer{}
		}, "5 units"},
		"rank": {func(_ *Predictor, rep *LayerReport) { rep.Rank = 7 }, "rank 7"},
	} {
		st := &state{dir: t.TempDir(), fingerprint: "f"}
		other, rep := tiny(t), &LayerReport{Rank: 2}
		c.change(other, rep)
		if err := st.save(0, other, rep); err != nil {
			t.Fatal(err)
		}
		var got LayerReport
		ok, err := st.load(t.Context(), 0, p, &got)
		if ok || !errors.Is(err, checkpoint.ErrFormat) || !strings.Contains(err.Error(), c.want) ||
			!strings.Contains(err.Error(), "delete the file") {
			t.Errorf("%s: %v, %v", name, ok, err)
		}
	}
}

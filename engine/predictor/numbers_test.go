package predictor

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/internal/input/inputtest"
)

// TestAbsurdNumbers replaces each number of the header of a predictor's file: shapes, places and
// metadata. It is refused with its file, and a number of the metadata with its field and value.
func TestAbsurdNumbers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p.safetensors")
	if err := tiny(t).Save(path); err != nil {
		t.Fatal(err)
	}
	header, data := inHalves(t, path)
	refused := 0
	try := func(n *inputtest.Number, other string, changed []byte) {
		joined(t, path, changed, data)
		_, err := Load(t.Context(), path)
		if err == nil {
			// Any logit is a threshold: the least predicts every unit, the largest none.
			if slices.Contains(inputtest.Impossible(), other) && n.Field() != "cuts" {
				t.Errorf("%s = %s is accepted", n.Path, other)
			}
			return
		}
		refused++
		hasKind(t, err)
		n.Line = 0 // the header is one line of a binary file
		missing := n.Missing(err, path, other)
		ofTensor := strings.Contains(err.Error(), "the predictor needs")
		if !strings.HasPrefix(n.Path, "__metadata__") || ofTensor {
			missing = ""
			if !strings.Contains(err.Error(), path) {
				missing = "the file"
			}
		}
		if missing != "" {
			t.Errorf("%s = %s: without %s: %v", n.Path, other, missing, err)
		}
	}
	for _, other := range inputtest.Absurd() {
		for _, n := range inputtest.JSON(t, header) {
			if n.Field() != "format_version" {
				try(&n, other, n.Replaced(header, other))
			}
		}
		// The thresholds are JSON in a text.
		at := bytes.Index(header, []byte(`"cuts":"[`)) + len(`"cuts":"[`)
		end := at + bytes.IndexAny(header[at:], ",]")
		n := inputtest.Number{Path: "__metadata__.cuts"}
		try(&n, other, slices.Concat(header[:at], []byte(other), header[end:]))
	}
	if refused < 200 {
		t.Errorf("%d numbers are refused", refused)
	}
}

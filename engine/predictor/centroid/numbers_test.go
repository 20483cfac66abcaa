package centroid

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/engine/checkpoint"
	"github.com/windrow-sim/windrow/internal/input/inputtest"
)

// TestAbsurdNumbers replaces each number of the metadata of a predictor's file. It is refused by
// file, field and value, or the tensors do not fit it.
func TestAbsurdNumbers(t *testing.T) {
	p, _ := small(t)
	good, path := filepath.Join(t.TempDir(), "a.safetensors"), filepath.Join(t.TempDir(), "b")
	if err := p.Save(good); err != nil {
		t.Fatal(err)
	}
	meta, err := p.metadata()
	if err != nil {
		t.Fatal(err)
	}
	refused := 0
	for key, text := range meta {
		if !strings.HasPrefix(text, "{") && !strings.HasPrefix(text, "[") {
			continue
		}
		for _, n := range inputtest.JSON(t, []byte(text)) {
			for _, other := range inputtest.Absurd() {
				rewrite(t, good, path, func(m map[string]string) {
					m[key] = string(n.Replaced([]byte(text), other))
				}, func(_ *checkpoint.TensorInfo, data []byte) []byte { return data })
				_, err := Load(t.Context(), path)
				if err == nil {
					if slices.Contains(inputtest.Impossible(), other) && n.Field() != "seed" {
						t.Errorf("%s.%s = %s is accepted", key, n.Path, other)
					}
					continue
				}
				refused++
				place := inputtest.Number{Path: key + "." + strings.TrimLeft(n.Path, "[0]")}
				if missing := place.Missing(err, path, other); !errors.Is(err, ErrFormat) ||
					missing != "" && !strings.Contains(err.Error(), "tensor") {
					t.Errorf("%s.%s = %s: without %s: %v", key, n.Path, other, missing, err)
				}
			}
		}
	}
	if refused < 150 {
		t.Errorf("%d numbers are refused", refused)
	}
}

package engine

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/windrow-sim/windrow/engine/model"
	"github.com/windrow-sim/windrow/kernels/ref"
)

const ggufDir = "testdata/gguf"

// ggufCases are the GGUF models that tools/gguf_vectors made, by name: the first file of each.
func ggufCases(t *testing.T) map[string]string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(ggufDir, "*.gguf"))
	if err != nil {
		t.Fatal(err)
	}
	part := regexp.MustCompile(`(-[0-9]{5}-of-[0-9]{5})?\.gguf$`)
	cases := map[string]string{}
	for _, path := range paths {
		name := part.ReplaceAllString(filepath.Base(path), "")
		if cases[name] == "" {
			cases[name] = path
		}
	}
	for _, name := range []string{"llama-llama3-rope", "phi", "falcon-7b", "falcon-40b", "qwen3",
		"qwen2-tied-bf16", "mixture"} {
		if cases[name] == "" {
			t.Errorf("no model %s", name)
		}
	}
	return cases
}

// TestGoldenGGUF: a GGUF file has the logits of the checkpoint that it was made from. The mixture
// has a matrix of every type of quantisation, and the logits that transformers computes with the
// weights that gguf decodes.
func TestGoldenGGUF(t *testing.T) {
	for name, path := range ggufCases(t) {
		t.Run(name, func(t *testing.T) {
			golden := filepath.Join(familiesDir, name, "golden.safetensors")
			if _, err := os.Stat(golden); err != nil {
				golden = filepath.Join(ggufDir, name+".safetensors")
			}
			hasGoldenLogits(t, path, golden)
		})
	}
}

// TestGGUFFlashIsDense packs the mixture in every precision and demands bit-equal logits from
// flash-resident rows.
func TestGGUFFlashIsDense(t *testing.T) {
	path := ggufCases(t)["mixture"]
	for _, format := range []ref.Format{ref.F16, ref.BF16, ref.F32, ref.Q8, ref.Q4} {
		t.Run(format.String(), func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "x.flash.safetensors")
			if _, err := model.Pack(t.Context(), path, out,
				model.PackOptions{Format: &format}); err != nil {
				t.Fatal(err)
			}
			flashEqualsDense(t, out)
		})
	}
}

package eval

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/windrow-sim/windrow/engine"
	"github.com/windrow-sim/windrow/engine/model"
	"github.com/windrow-sim/windrow/engine/tokenizer"
	"github.com/windrow-sim/windrow/internal/decisions/layout"
	"github.com/windrow-sim/windrow/internal/units"
)

const talesDir = "../../examples/models/tales"

func tales(t *testing.T, chunk int) (*engine.Engine, *tokenizer.Tokenizer) {
	t.Helper()
	w, bundles, _, err := model.LoadFolder(t.Context(), talesDir)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := engine.NewResident(w, bundles, layout.Uniform(w.Shape.Layers, w.Shape.DFFN,
		units.Bytes(w.RecordBytes())))
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.New(w, rows, engine.Config{Batch: chunk})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	tok, err := tokenizer.Load(t.Context(), talesDir)
	if err != nil {
		t.Fatal(err)
	}
	return e, tok
}

// TestPerplexityIsTransformers compares with the results of tools/goldens/perplexity.py. The model
// was not trained on testdata/held-out.txt, the beginning of L. Frank Baum's "The Wonderful Wizard
// of Oz" (1900), which is in the public domain.
func TestPerplexityIsTransformers(t *testing.T) {
	data, err := os.ReadFile("testdata/perplexity.json")
	if err != nil {
		t.Fatal(err)
	}
	var golden struct {
		Cases []struct {
			Text, SHA256      string
			Context, Stride   int
			Tokens, Predicted int
			Perplexity        float64
		}
	}
	if err := json.Unmarshal(data, &golden); err != nil {
		t.Fatal(err)
	}
	const chunk = 32
	e, tok := tales(t, chunk)
	for _, c := range golden.Cases {
		path := filepath.Join("../../examples", c.Text)
		if c.Text == "held-out" {
			path = "testdata/held-out.txt"
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if sum := sha256.Sum256(text); hex.EncodeToString(sum[:]) != c.SHA256 {
			t.Errorf("%s is another text than the one that was measured; run "+
				"tools/goldens/perplexity.py again", c.Text)
			continue
		}
		r, err := Run(t.Context(), e, tok.Encode(string(text))[:c.Tokens],
			Options{Context: c.Context, Stride: c.Stride, Chunk: chunk})
		if err != nil {
			t.Fatal(err)
		}
		if r.Predicted != c.Predicted || math.Abs(r.Perplexity/c.Perplexity-1) > 1e-3 {
			t.Errorf("%s, context %d, stride %d: perplexity %.5f over %d tokens, transformers "+
				"%.5f over %d", c.Text, c.Context, c.Stride, r.Perplexity, r.Predicted,
				c.Perplexity, c.Predicted)
		}
		t.Logf("%s: %.5f, transformers %.5f", c.Text, r.Perplexity, c.Perplexity)
	}
}

// TestBegin: windows that begin like texts are as good as texts of their own.
func TestBegin(t *testing.T) {
	const context = 16
	e, tok := tales(t, 8)
	begin := tok.Encode("")
	if len(begin) == 0 {
		t.Fatal("the tokenizer begins texts with nothing")
	}
	ids := tok.Encode("There was once a miller who was poor, but he had one beautiful daughter. " +
		"It happened one day that he came to speak with the king, and, to give " +
		"himself consequence, he told him that he had a daughter who could spin gold out of " +
		"straw.")[:3*context]
	got, err := Run(t.Context(), e, ids, Options{Context: context, Chunk: 8, Begin: begin})
	if err != nil {
		t.Fatal(err)
	}
	want := 0.0
	for window := range slices.Chunk(ids, context) {
		window = slices.Clone(window)
		copy(window, begin)
		r, err := Run(t.Context(), e, window, Options{Context: context, Chunk: 8})
		if err != nil {
			t.Fatal(err)
		}
		want += r.NLL
	}
	if math.Abs(got.NLL-want) > 1e-9*want {
		t.Errorf("%.9g nats, %.9g as texts of their own", got.NLL, want)
	}
	plain, err := Run(t.Context(), e, ids, Options{Context: context, Chunk: 8})
	if err != nil || plain.NLL == got.NLL {
		t.Errorf("%.9g nats with and without a beginning: %v", plain.NLL, err)
	}
}

// TestEveryTokenIsPredictedOnce checks the windows against a plain definition.
func TestEveryTokenIsPredictedOnce(t *testing.T) {
	for n := 2; n < 40; n++ {
		for context := 2; context < 12; context++ {
			for stride := 1; stride <= context; stride++ {
				var got, want []int
				o := Options{Context: context, Stride: stride}
				if err := o.windows(n, func(from, to, first int) error {
					for target := max(first, from+1); target < to; target++ {
						got = append(got, target)
					}
					return nil
				}); err != nil {
					t.Fatal(err)
				}
				for target := 1; target < n; target++ {
					first := 0 // of the windows that hold the token
					for first+context <= target {
						first += stride
					}
					if first < target {
						want = append(want, target)
					}
				}
				if !slices.Equal(got, want) {
					t.Fatalf("%d tokens, context %d, stride %d: %v, want %v", n, context, stride,
						got, want)
				}
			}
		}
	}
}

func TestAgreementAndRefusals(t *testing.T) {
	e, tok := tales(t, 8)
	ids := tok.Encode("Once upon a time there was a king who had three daughters, and the " +
		"youngest was the fairest of them all.")
	first, err := Run(t.Context(), e, ids, Options{Context: 16, Chunk: 8})
	if err != nil {
		t.Fatal(err)
	}
	second, err := Run(t.Context(), e, ids, Options{Context: 16, Against: first.Argmax})
	if err != nil || second.NLL != first.NLL || second.Agreed != second.Predicted ||
		second.Predicted == 0 {
		t.Errorf("again, token by token: %+v, %v; at first %+v", second, err, first)
	}
	for _, o := range []Options{{Context: 1}, {Context: 8, Stride: 9}, {Context: 8, Stride: -1}} {
		if _, err := Run(t.Context(), e, ids, o); err == nil {
			t.Errorf("%+v gave no error", o)
		}
	}
	if _, err := Run(t.Context(), e, ids[:1], Options{Context: 8}); err == nil {
		t.Error("a text of one token gave no error")
	}
}

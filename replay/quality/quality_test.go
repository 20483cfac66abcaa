package quality

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/engine/model"
	"github.com/windrow-sim/windrow/engine/session"
	"github.com/windrow-sim/windrow/engine/tokenizer"
	"github.com/windrow-sim/windrow/internal/document"
	"github.com/windrow-sim/windrow/internal/refusal"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/traces"
)

// tales is a session of the shipped model.
func tales(t *testing.T) *session.Session {
	t.Helper()
	const dir = "../../examples/models/tales"
	tok, err := tokenizer.Load(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	text, err := tok.MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "tales.flash.safetensors")
	if _, err := model.Pack(t.Context(), dir, path, model.PackOptions{
		Tokenizer: text}); err != nil {
		t.Fatal(err)
	}
	s, err := session.Open(t.Context(), session.Config{Model: path})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// Fewer neurons read less and predict worse; each share keeps about what it asks for.
func TestSharesTradeQualityForReads(t *testing.T) {
	text, err := session.ReadText(t.Context(), "../../examples/prompts/scenes.txt", 0)
	if err != nil {
		t.Fatal(err)
	}
	timed := 0
	cfg := Config{Text: text, MaxTokens: 48, Context: 24, PrefillChunk: 8, Window: 2,
		Shares: []float64{0.01, 0.05, 0.01}, Time: func(src traces.Source, window int) (units.Nanos,
			document.Estimate, error) {
			timed += src.Tokens()
			return units.Nanos(window), document.Estimate{Value: 12.5}, nil
		}}
	r, err := Run(t.Context(), tales(t), cfg)
	if err != nil {
		t.Fatal(err)
	}
	// Windows of 24 and 24 tokens: the last token of each is not run.
	if len(r.Rows) != 3 || r.Predicted != 46 || timed != 3*46 || r.Stride != 24 {
		t.Fatalf("%d rows of %d predicted tokens, %d timed", len(r.Rows), r.Predicted, timed)
	}
	dense := r.Rows[0]
	if dense.Lossy || dense.Agreement != 1 || dense.Share != 0 || *dense.PerToken != 2 {
		t.Errorf("dense: %+v", dense)
	}
	if d := r.Document(); !strings.HasPrefix(d.Headline, "perplexity ") ||
		len(d.Sections[0].Table.Rows) != 3 || d.Check() != nil {
		t.Errorf("%+v", d)
	}
	for i, share := range []float64{0.05, 0.01} {
		row, before := r.Rows[i+1], r.Rows[i]
		if row.Share != share || row.Active > 1.5*share || row.Active < share/3 || !row.Lossy ||
			row.Bytes >= before.Bytes || row.Perplexity <= before.Perplexity ||
			row.Agreement >= 1 || len(row.Thresholds) != 6 {
			t.Errorf("%g of the neurons: %+v, before %+v", share, row, before)
		}
	}
}

func TestConfigCheck(t *testing.T) {
	for want, cfg := range map[string]Config{
		"Window -1":      {Window: -1, PrefillChunk: 1},
		"PrefillChunk 0": {},
		"Shares 1":       {PrefillChunk: 1, Shares: []float64{1}},
	} {
		if err := cfg.Check(); !errors.Is(err, refusal.ErrConfig) || !strings.Contains(err.Error(),
			want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

package session

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/engine"
	"github.com/windrow-sim/windrow/engine/model"
	"github.com/windrow-sim/windrow/internal/refusal"
	"github.com/windrow-sim/windrow/internal/tell"
	"github.com/windrow-sim/windrow/internal/units"
)

// openTales packs and opens the shipped model.
func openTales(t *testing.T, to tell.Tell) *Session {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tales.flash.safetensors")
	if _, err := Pack(t.Context(), PackConfig{Source: "../../examples/models/tales",
		Out: path}); err != nil {
		t.Fatal(err)
	}
	s, err := Open(t.Context(), Config{Model: path, Tell: to})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// refuses checks that an error is of a kind and names a field in the manner of a caller.
func refuses(t *testing.T, what string, err, kind error, field string) {
	t.Helper()
	text := ""
	if err != nil {
		text = refusal.Text(err, func(name string) string { return "<" + name + ">" })
	}
	if !errors.Is(err, kind) || !strings.Contains(text, field) {
		t.Errorf("%s: %v; want the kind %v and %q", what, err, kind, field)
	}
}

func TestConfigsRefuseByField(t *testing.T) {
	base := DefaultGenerate()
	with := func(change func(*GenerateConfig)) error {
		cfg := base
		change(&cfg)
		return cfg.Check()
	}
	batch := func(change func(*BatchConfig)) error {
		cfg := BatchConfig{GenerateConfig: base, Batch: 2}
		change(&cfg)
		return cfg.Check()
	}
	if err := errors.Join(base.Check(), batch(func(*BatchConfig) {})); err != nil {
		t.Fatal(err)
	}
	for field, err := range map[string]error{
		"<Backend>":      (&Config{Backend: "gpu"}).Check(),
		"<DeviceMemory>": (&Config{DeviceMemory: units.GiB}).Check(),
		"<IO>":           (&Reads{IO: "libaio"}).Check(),
		"<Direct>":       (&Reads{Direct: "maybe"}).Check(),
		"<PrefillChunk>": with(func(c *GenerateConfig) { c.PrefillChunk = 0 }),
		"<KMax>":         with(func(c *GenerateConfig) { c.KMax = 3 }),
		"leave out <Oracle>, <Draft>": with(func(c *GenerateConfig) {
			c.Predictor, c.Draft = "p", "d"
		}),
		"<Draft> and <Oracle>": with(func(c *GenerateConfig) {
			c.Draft, c.Recorded = "d", &Recorded{}
		}),
		"temperature": with(func(c *GenerateConfig) { c.Sampling.Temperature = -1 }),
		"<Batch>":     batch(func(c *BatchConfig) { c.Batch = 0 }),
		"<Prompts>":   batch(func(c *BatchConfig) { c.Stop = []string{"."} }),
	} {
		refuses(t, field, err, refusal.ErrConfig, field)
	}
}

// A budget is a size or a share of the model, and no text is none.
func TestBudget(t *testing.T) {
	s := openTales(t, tell.Tell{})
	for text, want := range map[string]units.Bytes{"": 0, "3MiB": 3 * units.MiB,
		"50%": s.Image.WeightBytes() / 2} {
		got, err := s.Budget(text)
		if err != nil || got < want-1 || got > want+1 {
			t.Errorf("%q: %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"3", "-1%", "some"} {
		_, err := s.Budget(text)
		refuses(t, text, err, refusal.ErrConfig, "<DRAM>")
	}
}

// Texts, stops and batches: a batch writes what single runs write, and a stop text ends before
// itself.
func TestGenerate(t *testing.T) {
	var notes []string
	s := openTales(t, tell.Tell{Note: func(text string) { notes = append(notes, text) }})
	cfg := DefaultGenerate()
	cfg.N = 6
	prompts := []string{"Once upon a time", "The fox"}
	both, err := s.GenerateBatch(t.Context(), prompts, BatchConfig{GenerateConfig: cfg, Batch: 2})
	if err != nil || both.NGen == 0 || len(both.Texts) != 2 {
		t.Fatalf("%+v, %v", both, err)
	}
	for i, prompt := range prompts {
		shown := ""
		cfg.Show = func(text string) { shown += text }
		g, err := s.Generate(t.Context(), prompt, cfg)
		if err != nil {
			t.Fatal(err)
		}
		if g.Text != both.Texts[i].Text || g.Text != shown ||
			!slices.Equal(g.Tokens, both.Texts[i].Tokens) || !g.Resident || g.Bytes != 0 ||
			g.NPrompt != both.Texts[i].NPrompt {
			t.Errorf("%q alone: %+v; in a batch: %+v", prompt, g, both.Texts[i])
		}
		tail := strings.TrimSpace(strings.TrimPrefix(g.Text, prompt))
		if len(tail) < 2 {
			t.Fatalf("%q writes only %q", prompt, tail)
		}
		stop := cfg
		stop.Stop = []string{tail[1:]}
		cut, err := s.Generate(t.Context(), prompt, stop)
		if err != nil || strings.Contains(cut.Text[len(prompt):], tail[1:]) ||
			!strings.HasPrefix(g.Text, cut.Text) {
			t.Errorf("%q before %q: %q, %v", prompt, tail[1:], cut.Text, err)
		}
	}
	if len(notes) > 0 {
		t.Errorf("a dense run on the CPU remarks %q", notes)
	}
	_, err = s.Generate(t.Context(), "", GenerateConfig{N: 1, Sampling: engine.Sampling{},
		PrefillChunk: 1, NoBOS: true})
	refuses(t, "an empty text", err, refusal.ErrConfig, "<NoBOS>")
	_, err = s.Generate(t.Context(), "Once", GenerateConfig{N: 5000, PrefillChunk: 1})
	refuses(t, "a long text", err, refusal.ErrConfig, "<N>")
}

// A machine without a device is no obstacle to "auto", and stops a device that is named.
func TestBackend(t *testing.T) {
	path := openTales(t, tell.Tell{}).Image.Path
	asked := ""
	cfg := Config{Model: path, Device: func(name string, _ *model.Weights,
		_ units.Bytes) (Device, error) {
		asked = name
		return nil, refusal.Kind(refusal.ErrHost, "no device here")
	}}
	cfg.Backend = "cuda"
	if _, err := Open(t.Context(), cfg); !errors.Is(err, refusal.ErrHost) || asked != "cuda" {
		t.Errorf("cuda: %v, asked for %q", err, asked)
	}
	note := ""
	cfg.Backend, cfg.Tell.Note = "auto", func(text string) { note = text }
	s, err := Open(t.Context(), cfg)
	if err != nil || s.Backend() != nil || s.Store() != nil || !strings.Contains(note, "the CPU") {
		t.Fatalf("auto: %v, %q", err, note)
	}
	s.Close()
}

func TestReadText(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		return path
	}
	list, err := ReadPrompts(t.Context(), write("prompts", " one \n\n\ntwo\nthree\n"), 0, 2)
	if err != nil || !slices.Equal(list, []string{"one", "two"}) {
		t.Errorf("%q, %v", list, err)
	}
	for what, path := range map[string]string{"is a folder": dir,
		"not a text file": write("binary", "a\x00b"),
		"Git LFS":         write("pointer", "version https://git-lfs.github.com/spec/v1\n"),
		"holds no":        write("blank", "\n \n")} {
		_, err := ReadPrompts(t.Context(), path, 0, 0)
		refuses(t, path, err, refusal.ErrInput, what)
	}
}

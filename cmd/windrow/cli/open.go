package cli

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/windrow-sim/windrow/engine"
	"github.com/windrow-sim/windrow/engine/cuda"
	"github.com/windrow-sim/windrow/engine/flashio"
	"github.com/windrow-sim/windrow/engine/model"
	"github.com/windrow-sim/windrow/engine/tokenizer"
	"github.com/windrow-sim/windrow/internal/decisions/layout"
	"github.com/windrow-sim/windrow/internal/decisions/policy"
	"github.com/windrow-sim/windrow/internal/ioengine"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/kernels/cpu"
	"github.com/windrow-sim/windrow/replay"
	"github.com/windrow-sim/windrow/traces"
)

// openModel opens a flash image with its resident weights and, when it has one, its tokenizer.
type openedModel struct {
	image     *model.Image
	weights   *model.Weights
	tokenizer *tokenizer.Tokenizer // nil when the image has none
	device    *cuda.Backend        // nil = the CPU
}

func openModel(path string) (*openedModel, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return nil, inputError("%s is a folder; make a flash image of it first: windrow pack %s "+
			"-o MODEL.flash.safetensors", path, path)
	}
	image, err := model.OpenImage(path)
	if err != nil {
		return nil, err
	}
	m := &openedModel{image: image}
	if m.weights, err = image.Weights(); err != nil {
		image.Close()
		return nil, err
	}
	if len(image.TokenizerJSON) > 0 {
		if m.tokenizer, err = tokenizer.Parse(image.TokenizerJSON); err != nil {
			image.Close()
			return nil, fmt.Errorf("%s: tokenizer: %w", path, err)
		}
	}
	return m, nil
}

func (m *openedModel) close() {
	m.image.Close()
	if m.device != nil {
		// an error of giving back; what was computed is right, and ending the program gives back
		// too
		_ = m.device.Close()
	}
}

// text returns the tokenizer or says why there is none.
func (m *openedModel) text() (*tokenizer.Tokenizer, error) {
	if m.tokenizer == nil {
		return nil, usageError("%s holds no tokenizer (a synthetic model has none): it cannot "+
			"read text; use replay with a trace", m.image.Path)
	}
	return m.tokenizer, nil
}

// encode returns the tokens of a text; bare leaves out what the tokenizer puts around it.
func (m *openedModel) encode(text string, bare bool) ([]uint32, error) {
	tok, err := m.text()
	if err != nil {
		return nil, err
	}
	if !bare {
		return tok.Encode(text), nil
	}
	ids := tok.EncodePlain(text)
	if len(ids) == 0 {
		return nil, usageError("--no-bos: a text of no tokens; there is nothing to begin with")
	}
	return ids, nil
}

// roomFor refuses a generation that the model's context cannot hold: the last new token needs no
// position of its own.
func (m *openedModel) roomFor(prompt, tokens int) error {
	if limit := m.weights.Shape.MaxPos; tokens > limit || prompt+max(tokens-1, 0) > limit {
		return usageError("%d prompt tokens and %d new ones do not fit into the model's context "+
			"of %d; ask for fewer with -n", prompt, tokens, limit)
	}
	return nil
}

// bundles reads one layer's bundles.
func (m *openedModel) bundles(layer int) ([]byte, error) {
	data := make([]byte, m.image.LayerBytes())
	return data, m.image.Bundles(layer, data)
}

// resident loads all rows into memory: the dense engine.
func (m *openedModel) resident() (*engine.Resident, error) {
	bundles := make([][]byte, m.image.Shape.Layers)
	for l := range bundles {
		var err error
		if bundles[l], err = m.bundles(l); err != nil {
			return nil, err
		}
	}
	return engine.NewResident(m.weights, bundles, m.image.Geometry())
}

// needPredicted refuses --predicted for a trace without such masks.
func needPredicted(c *cli.Context, tr *traces.Reader) error {
	if c.Bool("predicted") && !tr.Header().HasPredicted {
		return usageError("--predicted: %s holds no predicted masks", c.String("trace"))
	}
	return nil
}

// openTrace opens a trace file and prints its warnings.
func (e *env) openTrace(path string) (*traces.Reader, error) {
	r, err := traces.Open(path)
	if err != nil {
		return nil, err
	}
	for _, w := range r.Warnings() {
		e.note("warning: %s", w)
	}
	return r, nil
}

// maxParallel is the limit of real reads: a simulation of more could not be run.
const maxParallel = ioengine.MaxThreads

// layoutOptions reads the flags that shape requests.
func layoutOptions(c *cli.Context) (layout.Options, error) {
	opt := layout.Options{Coalesce: !c.Bool("no-coalesce"), Gap: c.Int("gap")}
	if s := c.String("chunk"); s != "" {
		chunk, err := units.ParseBytes(s)
		if err != nil {
			return opt, usageError("--chunk: %v", err)
		}
		opt.MaxRequest = chunk
	}
	if n := c.Int("parallel"); n > maxParallel {
		return opt, usageError("--parallel %d: at most %d", n, maxParallel)
	}
	return opt, nil
}

// readOptions reads the flags that say how to read.
func readOptions(c *cli.Context) (flashio.Options, error) {
	opt := flashio.Options{Engine: flashio.Engine(c.String("io")),
		Direct: flashio.Direct(c.String("direct")), Parallel: c.Int("parallel")}
	if names := ioengine.Names(); !slices.Contains(names, string(opt.Engine)) {
		return opt, usageError("--io %q: known engines are %s", opt.Engine,
			strings.Join(names, ", "))
	}
	switch opt.Direct {
	case flashio.DirectAuto, flashio.DirectOn, flashio.DirectOff:
	default:
		return opt, usageError("--direct %q: it is auto, on or off", opt.Direct)
	}
	return opt, nil
}

// budgetWindow is the largest window that --dram allows for the first tokens of a trace, or that of
// --window.
func (e *env) budgetWindow(c *cli.Context, m *openedModel, tr traces.Source, tokens int,
	cfg replay.Config) (spec policy.Spec, err error) {
	text := c.String("dram")
	switch {
	case text == "":
		return policy.SlidingWindow(c.Int("window")), nil
	case c.IsSet("window"):
		return spec, usageError("--dram %s and --window %d: give one of them", text,
			c.Int("window"))
	case c.String("policy") != "":
		return spec, usageError("--dram %s chooses a window, and --policy %s is another choice; "+
			"give one of them", text, c.String("policy"))
	}
	budget, err := memoryBudget(c, m)
	if err != nil {
		return spec, err
	}
	best, err := replay.LargestWindow(tr, tokens, m.weights, m.image.Geometry(), cfg, budget)
	if err != nil {
		return spec, err
	}
	e.note("window %d: %v of %v (%v)", best.Window, best.Total, budget, best)
	// The budget is for the run: what opening the model and the search left over goes back.
	debug.FreeOSMemory()
	return policy.SlidingWindow(best.Window), nil
}

// memoryBudget reads --dram.
func memoryBudget(c *cli.Context, m *openedModel) (units.Bytes, error) {
	return sizeOrShare(c, "dram", m.image.WeightBytes())
}

// modeLine says in one line how reads were really done.
func modeLine(m flashio.Mode) string {
	how := "buffered"
	if m.Direct {
		how = "direct"
	}
	if m.MemoryBacked {
		how = "memory-backed"
	}
	return strings.TrimSpace(fmt.Sprintf("%s ×%d, %s, %s", m.Engine, m.Parallel, how, m.FileSystem))
}

// hostFacts are what a trace says of the machine that recorded it.
func hostFacts() map[string]string {
	return map[string]string{
		"os": runtime.GOOS, "arch": runtime.GOARCH, "cpus": fmt.Sprint(runtime.NumCPU()),
		"kernels": cpu.Features(), "go": runtime.Version(),
	}
}

// traceHeader describes a trace recorded from an image.
func traceHeader(img *model.Image, s engine.Sampling) traces.Header {
	w := img.Resident()
	return traces.Header{
		SchemaVersion: traces.SchemaVersion, Tool: Tool, UnitKind: traces.Neuron,
		Layers: img.Shape.Layers, Units: img.Shape.DFFN, UnitBytes: img.RecordBytes(),
		Model: img.Name, ModelSHA256: img.Hash, Shape: traces.Shape(img.Shape),
		Resident: &traces.Resident{Embeddings: w.Embeddings, Attention: w.Attention,
			Other: w.Other, EmbedWidth: img.Arch.Embed},
		Tokenizer:  img.TokenizerHash,
		Activation: img.Activation, DType: img.DType, Seed: s.Seed, Sampling: s.String(),
		Host: hostFacts(),
	}
}

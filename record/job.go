package record

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"

	"github.com/windrow-sim/windrow/engine"
	"github.com/windrow-sim/windrow/engine/model"
	"github.com/windrow-sim/windrow/engine/session"
	"github.com/windrow-sim/windrow/internal/refusal"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/traces"
)

// Config says what to record, and where to. Batches and chunks do not change the rows of a trace.
type Config struct {
	Prompts      []string
	N            int // tokens to generate per prompt
	Sampling     engine.Sampling
	Threads      int // 0 = all cores
	Out          string
	Compress     string // "none" or "zstd"; "" = none
	Magnitudes   bool   // one byte more per active unit
	FeatureKind  string // two bytes more per number of the feature; "" = none
	NoBOS        bool   // texts without the token that begins texts
	Batch        int    // prompts side by side, 1 or more
	PrefillChunk int    // tokens of a prompt in a step, 1 or more
	Tool         string // program and version, for the header
	// Progress is called with the number of prompts done and of all; may be nil.
	Progress func(done, total int)
}

// DefaultConfig records 64 greedily chosen tokens per prompt, one token after the other.
func DefaultConfig() Config {
	return Config{N: session.DefaultGenerate().N, Sampling: session.DefaultSampling(),
		Compress: "none", Batch: 1,
		PrefillChunk: 1}
}

// Check refuses values out of range.
func (c *Config) Check() error {
	switch {
	case c.Batch < 1:
		return refusal.Config("{Batch} %d: 1 or more is wanted", c.Batch)
	case c.Compress != "" && c.Compress != "none" && c.Compress != "zstd":
		return refusal.Config("{Compress} %s: none and zstd are known", c.Compress)
	}
	if err := session.CheckChunk(c.PrefillChunk); err != nil {
		return err
	}
	return session.CheckSampling(c.Sampling)
}

// Result is a recorded trace.
type Result struct {
	Model     string `json:"model"`
	Sequences int    `json:"sequences"`
	Tokens    int    `json:"tokens"`
	Trace     string `json:"trace"`
}

// Facts of the host in the header of a trace, which say how it was recorded when not token by token
// from the beginning of texts on the CPU.
const (
	HostBatch = "batch"
	HostChunk = "prefill_chunk"
	HostBare  = "no_bos" // texts without the token that begins texts
	// HostBackend names the device. It rounds otherwise than the CPU: near zero another unit may be
	// active.
	HostBackend = "backend"
)

// HeaderOf describes a trace recorded from an image on this machine.
func HeaderOf(img *model.Image, s engine.Sampling, tool string) traces.Header {
	w := img.Resident()
	return traces.Header{
		SchemaVersion: traces.SchemaVersion, Tool: tool, UnitKind: traces.Neuron,
		Layers: img.Shape.Layers, Units: img.Shape.DFFN, UnitBytes: img.RecordBytes(),
		Model: img.Name, ModelSHA256: img.Hash, Shape: traces.Shape(img.Shape),
		Resident: &traces.Resident{Embeddings: w.Embeddings, Attention: w.Attention,
			Other: w.Other, EmbedWidth: img.Arch.Embed},
		Tokenizer:  img.TokenizerHash,
		Activation: img.Activation, DType: img.DType, Seed: s.Seed, Sampling: s.String(),
		Host: map[string]string{
			"os": runtime.GOOS, "arch": runtime.GOARCH, "cpus": fmt.Sprint(runtime.NumCPU()),
			"kernels": session.Kernels(), "go": runtime.Version(),
		},
	}
}

// header describes the trace to record.
func (c *Config) header(s *session.Session) traces.Header {
	head := HeaderOf(s.Image, c.Sampling, c.Tool)
	head.HasMagnitude = c.Magnitudes
	if c.FeatureKind != "" {
		head.FeatureKind, head.FeatureWidth = c.FeatureKind, head.Shape.DModel
	}
	if c.NoBOS {
		head.Host[HostBare] = "true"
	}
	if c.Batch > 1 {
		head.Host[HostBatch] = strconv.Itoa(c.Batch)
	}
	if s.Device != nil {
		head.Host[HostBackend] = s.Device.Name()
	}
	if c.PrefillChunk > 1 {
		head.Host[HostChunk] = strconv.Itoa(c.PrefillChunk)
	}
	return head
}

// Run runs the prompts densely, one sequence each, and writes the trace of all their tokens. When
// ctx ends, what was recorded is kept under a name that says so, which the error gives.
func Run(ctx context.Context, s *session.Session, cfg Config) (*Result, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	if name := cfg.FeatureKind; name != "" {
		if _, err := s.Feature(name); err != nil {
			return nil, refusal.Config("{FeatureKind} %s: %v", name, err)
		}
	}
	rows, err := s.Resident()
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	ids, longest, err := s.EncodeAll(cfg.Prompts, cfg.NoBOS)
	if err != nil {
		return nil, err
	}
	for i := range ids {
		if err := s.RoomFor(len(ids[i]), cfg.N); err != nil {
			return nil, fmt.Errorf("prompt %d: %w", i+1, err)
		}
	}
	cfg.Batch = min(cfg.Batch, len(ids))
	head := cfg.header(s)
	w, err := traces.Create(cfg.Out, head, traces.WriteOptions{Compress: cfg.Compress})
	if err != nil {
		return nil, err
	}
	defer w.Abort()
	count := &countingAppender{to: w}
	order := NewInOrder(count)
	recorder, err := NewFor(order, &head)
	if err != nil {
		return nil, err
	}
	eng, err := engine.New(s.Weights, rows, engine.Config{
		Threads: cfg.Threads, Context: min(longest+cfg.N, s.Weights.Shape.MaxPos),
		Sequences: cfg.Batch, Batch: cfg.Batch - 1 + cfg.PrefillChunk, Observer: recorder,
		FeatureKind: recorder.FeatureKind(), Backend: s.Backend(),
	})
	if err != nil {
		return nil, s.Refused(err)
	}
	defer eng.Close()
	cfg.tellSize(s, &head, ids, longest)
	err = cfg.batches(ctx, eng, ids, s.Options(cfg.N, cfg.Sampling, cfg.PrefillChunk), order)
	if errors.Is(err, context.Canceled) {
		return nil, keepPartial(w, err)
	}
	if err != nil {
		return nil, err
	}
	return &Result{Model: s.Image.Name, Sequences: len(ids), Tokens: count.n, Trace: cfg.Out},
		w.Close()
}

// batches runs the prompts, so many at once. What a batch held back is passed on also when it was
// interrupted.
func (c *Config) batches(ctx context.Context, eng *engine.Engine, ids [][]uint32,
	opt engine.GenerateOptions, order *InOrder) error {
	for from := 0; from < len(ids); from += c.Batch {
		to := min(from+c.Batch, len(ids))
		opt.Seq = from
		_, err := eng.GenerateBatch(ctx, ids[from:to], opt, func(int, uint32) error { return nil })
		if err == nil || errors.Is(err, context.Canceled) {
			err = errors.Join(err, order.Flush())
		}
		if err != nil {
			return err
		}
		if c.Progress != nil {
			c.Progress(to, len(ids))
		}
	}
	return nil
}

// tellSize says what features make of the trace, and of the memory that batches need.
func (c *Config) tellSize(s *session.Session, head *traces.Header, ids [][]uint32, longest int) {
	if c.FeatureKind == "" {
		return
	}
	tokens, behind := int64(0), int64(max(c.N-1, 0)) // the last new token is not run
	for _, prompt := range ids {
		tokens += int64(len(prompt)) + behind
	}
	features, token := units.Bytes(2*head.FeatureWidth*head.Layers), units.Bytes(head.TokenBytes())
	text := fmt.Sprintf("features take %v of a token's %v", features, token)
	if c.Magnitudes {
		text += ", magnitudes aside"
	}
	text += fmt.Sprintf("; up to %d tokens, %v", tokens, units.Bytes(tokens)*token)
	if c.Compress == "zstd" {
		text += " before compression"
	}
	if held := int64(c.Batch-1) * (int64(longest) + behind); held > 0 {
		text += fmt.Sprintf("; batches hold back up to %v in memory", units.Bytes(held)*token)
	}
	s.Note("%s", text)
}

// keepPartial finishes an interrupted trace under a name and a manifest that say so.
func keepPartial(w *traces.Writer, cause error) error {
	path, err := w.Interrupt()
	if err != nil {
		return errors.Join(cause, err)
	}
	if path == "" {
		return fmt.Errorf("nothing was recorded yet; the same command starts anew: %w", cause)
	}
	return fmt.Errorf("what was recorded so far is in %s; the same command starts anew: %w", path,
		cause)
}

// countingAppender counts the tokens that pass.
type countingAppender struct {
	to Appender
	n  int
}

func (a *countingAppender) Append(t *traces.Token) error {
	a.n++
	return a.to.Append(t)
}

package session

import (
	"context"
	"time"

	"github.com/windrow-sim/windrow/engine"
	"github.com/windrow-sim/windrow/internal/refusal"
)

// BatchConfig says how to write several texts side by side, with all rows in memory.
type BatchConfig struct {
	GenerateConfig
	Batch int // texts side by side
	// Progress is called with the number of texts done and of all; may be nil.
	Progress func(done, total int)
}

// Check refuses a batch of none, and what runs one text only.
func (c *BatchConfig) Check() error {
	switch {
	case c.Predictor != "":
		return c.oneText()
	case c.Batch < 1:
		return refusal.Config("{Batch} %d: 1 or more is wanted", c.Batch)
	case c.Recorded != nil || c.Draft != "" || len(c.Stop) > 0:
		return refusal.Config("{Prompts} runs a file of prompts with all rows in memory; leave " +
			"out the prompt, {Oracle}, {Draft} and {Stop}")
	}
	return c.GenerateConfig.Check()
}

// BatchText is one of the texts.
type BatchText struct {
	Prompt  string   `json:"prompt"`
	Text    string   `json:"text"` // prompt and continuation
	Tokens  []uint32 `json:"tokens"`
	NPrompt int      `json:"n_prompt"`
	NGen    int      `json:"n_gen"`
}

// BatchGenerated are the texts in the order of the prompts.
type BatchGenerated struct {
	Model    string      `json:"model"`
	Sampling string      `json:"sampling"`
	Batch    int         `json:"n_batch"`
	Texts    []BatchText `json:"texts"`
	NGen     int         `json:"n_gen"`
	// generated tokens of all texts per second, prompts included in the time
	AvgTS float64 `json:"avg_ts"`
}

// GenerateBatch runs the prompts side by side, so many at once.
func (s *Session) GenerateBatch(ctx context.Context, prompts []string,
	cfg BatchConfig) (*BatchGenerated, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	ids, longest, err := s.EncodeAll(prompts, cfg.NoBOS)
	if err != nil {
		return nil, err
	}
	if err := s.RoomFor(longest, cfg.N); err != nil {
		return nil, err
	}
	rows, err := s.Resident()
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	opt := s.Options(cfg.N, cfg.Sampling, cfg.PrefillChunk)
	size := min(cfg.Batch, len(prompts))
	eng, err := engine.New(s.Weights, rows, engine.Config{
		Threads: cfg.Threads, Context: min(longest+cfg.N, s.Weights.Shape.MaxPos),
		Sequences: size, Batch: size - 1 + opt.Chunk, Backend: s.Backend(),
	})
	if err != nil {
		return nil, s.Refused(err)
	}
	defer eng.Close()
	r := &BatchGenerated{Model: s.Image.Name, Sampling: cfg.Sampling.String(), Batch: size}
	begin := time.Now()
	for from := 0; from < len(ids); from += size {
		to := min(from+size, len(ids))
		opt.Seq = from
		chosen, err := eng.GenerateBatch(ctx, ids[from:to], opt, func(int, uint32) error {
			return nil
		})
		if err != nil {
			return nil, err
		}
		for i, list := range chosen {
			all := append(append([]uint32{}, ids[from+i]...), list...)
			r.Texts = append(r.Texts, BatchText{Prompt: prompts[from+i], Text: s.Decode(all),
				Tokens: list, NPrompt: len(ids[from+i]), NGen: len(list)})
			r.NGen += len(list)
		}
		if cfg.Progress != nil {
			cfg.Progress(to, len(ids))
		}
	}
	r.AvgTS = float64(r.NGen) / time.Since(begin).Seconds()
	return r, nil
}

// EncodeAll returns the tokens of every prompt, and the length of the longest.
func (s *Session) EncodeAll(prompts []string, noBOS bool) (ids [][]uint32, longest int, err error) {
	ids = make([][]uint32, len(prompts))
	for i, p := range prompts {
		if ids[i], err = s.Encode(p, noBOS); err != nil {
			return nil, 0, err
		}
		longest = max(longest, len(ids[i]))
	}
	return ids, longest, nil
}

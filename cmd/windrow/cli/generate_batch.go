package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/windrow-sim/windrow/engine"
)

// batchText is one text of generate --prompts.
type batchText struct {
	Prompt  string   `json:"prompt"`
	Text    string   `json:"text"` // prompt and continuation
	Tokens  []uint32 `json:"tokens"`
	NPrompt int      `json:"n_prompt"`
	NGen    int      `json:"n_gen"`
}

// batchGenerated is the document of generate --prompts --json.
type batchGenerated struct {
	Model    string      `json:"model"`
	Sampling string      `json:"sampling"`
	Batch    int         `json:"n_batch"`
	Texts    []batchText `json:"texts"`
	NGen     int         `json:"n_gen"`
	// generated tokens of all texts per second, prompts included in the time
	AvgTS float64 `json:"avg_ts"`
}

// generateBatches runs the prompts of a file side by side, so many at once, and prints the texts in
// the order of the file.
func (e *env) generateBatches(c *cli.Context, m *openedModel, opt engine.GenerateOptions) error {
	size := c.Int("batch")
	if size < 1 {
		return usageError("--batch %d: 1 or more is wanted", size)
	}
	if c.NArg() > 0 || c.IsSet("oracle") || c.IsSet("draft") || c.IsSet("stop") {
		return usageError("--prompts runs a file of prompts with all rows in memory; leave out " +
			"the prompt, --oracle, --draft and --stop")
	}
	prompts, err := readPrompts(c.String("prompts"), 0)
	if err != nil {
		return err
	}
	ids, longest := make([][]uint32, len(prompts)), 0
	for i, p := range prompts {
		if ids[i], err = m.encode(p, c.Bool("no-bos")); err != nil {
			return err
		}
		longest = max(longest, len(ids[i]))
	}
	if err := m.roomFor(longest, opt.MaxTokens); err != nil {
		return err
	}
	rows, err := m.resident()
	if err != nil {
		return err
	}
	defer rows.Close()
	size = min(size, len(prompts))
	eng, err := engine.New(m.weights, rows, engine.Config{
		Threads: c.Int("threads"), Context: min(longest+opt.MaxTokens, m.weights.Shape.MaxPos),
		Sequences: size, Batch: size - 1 + opt.Chunk, Backend: m.backend(),
	})
	if err != nil {
		return refused(m, err)
	}
	defer eng.Close()
	doc := batchGenerated{Model: m.image.Name, Sampling: opt.Sampling.String(), Batch: size}
	p, begin := e.startProgress("generate (texts)"), time.Now()
	for from := 0; from < len(ids); from += size {
		to := min(from+size, len(ids))
		opt.Seq = from
		chosen, err := eng.GenerateBatch(c.Context, ids[from:to], opt, func(int, uint32) error {
			return nil
		})
		if err != nil {
			p.done()
			return err
		}
		for i, list := range chosen {
			all := append(append([]uint32{}, ids[from+i]...), list...)
			doc.Texts = append(doc.Texts, batchText{Prompt: prompts[from+i], Text: decodeText(m,
				all), Tokens: list, NPrompt: len(ids[from+i]), NGen: len(list)})
			doc.NGen += len(list)
		}
		p.update(to, len(ids))
	}
	p.done()
	doc.AvgTS = float64(doc.NGen) / time.Since(begin).Seconds()
	if c.Bool("json") {
		return printJSON(e.stdout, doc)
	}
	for i, text := range doc.Texts {
		if i > 0 {
			fmt.Fprintln(e.stdout)
		}
		fmt.Fprintln(e.stdout, text.Text)
	}
	e.note("%d texts in batches of %d, %d tokens generated, %.4g tokens/s", len(doc.Texts), size,
		doc.NGen, doc.AvgTS)
	return nil
}

// decodeText is the text of ids as a stream shows it.
func decodeText(m *openedModel, ids []uint32) string {
	stream := m.tokenizer.NewStream()
	stream.SkipControl = true
	var b strings.Builder
	for _, id := range ids {
		b.WriteString(stream.Next(id))
	}
	b.WriteString(stream.Flush())
	return b.String()
}

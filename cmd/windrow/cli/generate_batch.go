package cli

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/windrow-sim/windrow/engine/session"
)

// generateBatches runs the prompts of a file side by side, so many at once, and prints the texts in
// the order of the file.
func (e *env) generateBatches(c *cli.Context, m *session.Session,
	one session.GenerateConfig) error {
	cfg := session.BatchConfig{GenerateConfig: one, Batch: c.Int("batch")}
	if c.NArg() > 0 {
		return usageError("--prompts runs a file of prompts with all rows in memory; leave out " +
			"the prompt, --oracle, --draft and --stop")
	}
	if err := cfg.Check(); err != nil {
		return err
	}
	prompts, err := session.ReadPrompts(c.String("prompts"), 0)
	if err != nil {
		return err
	}
	p := e.startProgress("generate (texts)")
	cfg.Progress = p.update
	doc, err := m.GenerateBatch(c.Context, prompts, cfg)
	p.done()
	if err != nil {
		return err
	}
	if c.Bool("json") {
		return printJSON(e.stdout, doc)
	}
	for i, text := range doc.Texts {
		if i > 0 {
			fmt.Fprintln(e.stdout)
		}
		fmt.Fprintln(e.stdout, text.Text)
	}
	e.note("%d texts in batches of %d, %d tokens generated, %.4g tokens/s", len(doc.Texts),
		doc.Batch, doc.NGen, doc.AvgTS)
	return nil
}

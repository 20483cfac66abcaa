package cli

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/windrow-sim/windrow/engine/session"
	"github.com/windrow-sim/windrow/internal/plain"
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
	limit, err := maxInput(c)
	if err != nil {
		return err
	}
	prompts, err := session.ReadPrompts(c.Context, c.String("prompts"), limit, 0)
	if err != nil {
		return err
	}
	p := e.startProgress("generate (texts)")
	cfg.Progress = p.update
	r, err := m.GenerateBatch(c.Context, prompts, cfg)
	p.done()
	if err != nil {
		return err
	}
	if e.format(c) != "text" {
		return e.put(c, r.Document())
	}
	for i := range r.Texts {
		if i > 0 {
			fmt.Fprintln(e.stdout)
		}
		fmt.Fprintln(e.stdout, plain.Text(r.Texts[i].Text))
	}
	e.noteDocument(r.Document())
	return nil
}

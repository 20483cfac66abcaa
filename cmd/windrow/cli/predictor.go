package cli

import (
	"github.com/urfave/cli/v2"

	"github.com/windrow-sim/windrow/engine/session"
)

// openPredictor opens the predictor of the flags for a model; nil when there is none.
func openPredictor(c *cli.Context, m *session.Session) (*session.Predictor, error) {
	path := c.String("predictor")
	if path == "" {
		if c.IsSet("k-max") {
			return nil, usageError("--k-max is of a centroid predictor; name one with --predictor")
		}
		return nil, nil
	}
	return m.Predictor(c.Context, path, c.Int("k-max"))
}

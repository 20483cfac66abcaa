package training

import (
	"errors"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/devicemodels"
	"github.com/windrow-sim/windrow/internal/refusal"
)

// Values out of range are refused by the name of their field before a file is opened.
func TestConfigCheck(t *testing.T) {
	for field, change := range map[string]func(*Config){
		"Kind":      func(c *Config) { c.Kind = "other" },
		"Workers":   func(c *Config) { c.Workers = -1 },
		"Epochs":    func(c *Config) { c.Epochs = 0 },
		"Worth":     func(c *Config) { c.Device, c.Worth = &devicemodels.Device{}, 0 },
		"Centroids": func(c *Config) { c.Kind, c.Centroids = Centroid, 0 },
		"Window":    func(c *Config) { c.Speeds.Window = -1 },
	} {
		cfg := DefaultConfig()
		cfg.Trace = "missing.trace.arrow"
		if err := cfg.Check(); err != nil {
			t.Fatal(err)
		}
		change(&cfg)
		_, err := Run(t.Context(), cfg)
		flag := refusal.Text(err, func(name string) string { return "<" + name + ">" })
		if !errors.Is(err, refusal.ErrConfig) || !strings.Contains(flag, "<"+field+">") {
			t.Errorf("%s: %v", field, err)
		}
	}
}

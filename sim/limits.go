package sim

import (
	"fmt"

	"github.com/windrow-sim/windrow/internal/refusal"
)

// Setting is a setting of Config that some studies cannot simulate. Its value is the name of the
// field, or of a field of Layout; a Policy that is a plain window is a setting of its own.
type Setting string

// The settings. All other settings are for every study.
const (
	SettingWindow        Setting = "Window"
	SettingPolicy        Setting = "Policy" // other than a window
	SettingMaxTokens     Setting = "MaxTokens"
	SettingPredictorRank Setting = "PredictorRank"
	SettingBackend       Setting = "Backend"
	SettingSchedule      Setting = "Schedule"
	SettingGeometry      Setting = "Geometry"
	SettingCoalesce      Setting = "Coalesce"
	SettingGap           Setting = "Gap"
)

// Limit is a setting that a study cannot simulate.
type Limit struct {
	Setting Setting
	Why     string // and the remedy
}

// Refuse returns an error of kind ErrConfig that names the first of the settings that a study
// cannot simulate and the configuration sets. study is the name of its package. A study calls it
// before Check, which fills in some settings.
func (cfg *Config) Refuse(study string, limits ...Limit) error {
	for _, l := range limits {
		if value := cfg.value(l.Setting); value != "" {
			return configError{refusal.Config(study+": {"+string(l.Setting)+"} %s: %s", value,
				l.Why)}
		}
	}
	return nil
}

// value returns a setting as text; empty = not set.
func (cfg *Config) value(s Setting) string {
	number := func(n int) string {
		if n == 0 {
			return ""
		}
		return fmt.Sprint(n)
	}
	window := cfg.Policy.PlainWindow()
	switch {
	case s == SettingWindow && window:
		return number(cfg.Policy.Window)
	case s == SettingPolicy && !window:
		return cfg.Policy.String()
	case s == SettingMaxTokens:
		return number(cfg.MaxTokens)
	case s == SettingPredictorRank:
		return number(cfg.PredictorRank)
	case s == SettingBackend:
		return string(cfg.Backend)
	case s == SettingSchedule && cfg.Schedule != (Schedule{}):
		return fmt.Sprintf("%q", cfg.Schedule.Kind)
	case s == SettingGeometry && cfg.Geometry.Units != 0:
		return fmt.Sprintf("of %d units", cfg.Geometry.Units)
	case s == SettingCoalesce && cfg.Layout.Coalesce:
		return "true"
	case s == SettingGap:
		return number(cfg.Layout.Gap)
	}
	return ""
}

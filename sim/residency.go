package sim

import (
	"github.com/windrow-sim/windrow/internal/decisions/policy"
	"github.com/windrow-sim/windrow/internal/refusal"
	"github.com/windrow-sim/windrow/traces"
)

// MaxWindow bounds how many tokens a window remembers, each with the masks of all layers.
const MaxWindow = 1 << 12

// Residency is the policy of a text (policy.ParseBudget) for the model of a trace; "" is a sliding
// window of so many tokens.
func Residency(text string, window int, head *traces.Header) (spec policy.Spec, err error) {
	if text == "" {
		if window < 0 || window > MaxWindow {
			return spec, refusal.Config("{Window} %d: at most %d", window, MaxWindow)
		}
		return policy.SlidingWindow(window), nil
	}
	if spec, err = policy.ParseBudget(text, head.UnitBytes, head.Layers); err != nil {
		return spec, refusal.Config("{Policy}: %v", err)
	}
	return spec, nil
}

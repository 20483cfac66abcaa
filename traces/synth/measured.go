package synth

import (
	"strconv"

	"github.com/windrow-sim/windrow/traces/stats"
)

// Measured is the share that the trace has where a share was published, if the analysed
// masks tell it. Layers are counted from 1 in papers and from 0 in traces; a trace of fewer layers
// is spread over the depth of the model, so that only means are compared then.
func (t *Target) Measured(s *stats.Stats) (share float64, ok bool) {
	part := &s.Total
	if t.Layer != "mean" {
		l, err := strconv.Atoi(t.Layer)
		if err != nil || l > len(s.PerLayer) || len(s.PerLayer) < 32 {
			return 0, false
		}
		part = &s.PerLayer[l-1]
	}
	predicted := s.Mask == "predicted"
	w, all := &part.Window, float64(s.Units)
	switch {
	case t.Quantity == "active_share" && !predicted:
		return part.Active.Mean, true
	case t.Quantity == "active_share" && part.Predictor != nil:
		return part.Predictor.TrueShare, true
	case t.Quantity == "predicted_share" && part.Predictor != nil:
		return part.Predictor.PredictedShare, true
	case t.Quantity == "false_negative" && part.Predictor != nil:
		return 1 - part.Predictor.Recall, true
	case t.Quantity == "false_positive" && part.Predictor != nil:
		return part.Predictor.FalsePositive, true
	case t.Quantity == "predicted_s_agg_5" && predicted:
		return w.SAgg[5] / all, true
	case t.Quantity == "predicted_delta_4" && predicted:
		return w.Delta[4] / all, true
	}
	return 0, false
}

package stats

// MaxWindow is the longest measured window, in tokens.
const MaxWindow = 64

// Stats describes a trace. Shares are fractions of 1; shares of units are of the units of one
// layer.
type Stats struct {
	Mask        string `json:"mask"` // the analysed masks: "true" or "predicted"
	Layers      int    `json:"layers_count"`
	Units       int    `json:"units_per_layer_count"`
	Tokens      int    `json:"tokens_count"`
	Prefill     int    `json:"prefill_tokens_count"`
	Decode      int    `json:"decode_tokens_count"`
	Sequences   int    `json:"sequences_count"`
	LongestSeq  int    `json:"longest_sequence_tokens"`
	ShortestSeq int    `json:"shortest_sequence_tokens"`
	Accesses    int64  `json:"accesses_count"` // of all layers
	PerLayer    []Part `json:"per_layer"`
	// sums of the layers' counts, means of the layers' means
	Total        Part `json:"total"`
	MaxWindow    int  `json:"max_window_tokens"`
	HasPredicted bool `json:"has_predicted"`
}

// Part is the result of one layer, or of all.
type Part struct {
	Accesses int64 `json:"accesses_count"`
	// over tokens; in Total the range over tokens and layers
	Active      Spread     `json:"active_share"`
	NeverActive float64    `json:"never_active_share"` // units that no token needs
	Predictor   *Predictor `json:"predictor,omitempty"`
	Window      Windows    `json:"window"`
	Reuse       Reuse      `json:"reuse"`
}

// Spread is a mean with its range.
type Spread struct {
	Mean float64 `json:"mean"`
	Min  float64 `json:"min"`
	Max  float64 `json:"max"`
}

// Predictor compares predicted with true masks, whichever of them is measured. A ratio with
// denominator 0 is 0.
type Predictor struct {
	TrueShare      float64 `json:"true_share"`
	PredictedShare float64 `json:"predicted_share"`
	Recall         float64 `json:"recall_share"`         // of active units, predicted
	Precision      float64 `json:"precision_share"`      // of predicted units, active
	FalsePositive  float64 `json:"false_positive_share"` // of inactive units, predicted
	Ratio          float64 `json:"predicted_per_true_ratio"`
}

// Windows holds results by the length k of a window in tokens. All slices have MaxWindow+1
// elements, indexed by k.
type Windows struct {
	// SAgg is s_agg(k) in units: the mean number of distinct units in k consecutive tokens of a
	// sequence, over all full windows. It is 0 if Full is 0, and SAgg[0] is 0.
	SAgg []float64 `json:"s_agg_units"`
	// Full is the number of full windows of k tokens. Full[0] is the number of tokens.
	Full []int64 `json:"full_windows_count"`
	// Delta is Δ(k) in units: the mean number of units that a token needs and that none of the k
	// tokens before it needed. The mean is over tokens with k tokens before them in their sequence,
	// 0 if there is none. Delta[0] is SAgg[1].
	Delta []float64 `json:"delta_units"`
	// Hits and Misses are the totals over all tokens under policy.Window(k), which starts each
	// sequence empty.
	Hits   []int64 `json:"hits_count"`
	Misses []int64 `json:"misses_count"`
}

// Reuse is the histogram of gaps: the number of tokens from one access of a unit to the next in the
// same sequence.
type Reuse struct {
	Exact []int64 `json:"gap_1_to_64_count"` // Exact[i]: gap i+1
	// Above64[i] counts gaps above 2^(6+i) up to 2^(7+i). It has no trailing zeros.
	Above64  []int64 `json:"gap_above_64_by_power_of_two_count"`
	FirstUse int64   `json:"first_use_count"` // first access of a unit in its sequence
}

// Package training makes predictors from recorded traces, and judges and imports them: low-rank
// matrices for each layer (engine/predictor) or vocabularies of active sets (its centroid). A text
// that was held out, and one of another trace, say how good they are.
//
// Which rows a predictor names also decides how fast a text runs. Named is a trace whose predicted
// masks are the predictor's; Speeds, from outside, simulate or measure it, because this package
// knows neither the simulator nor the replay.
//
// Start with Config in training.go. lowrank.go, centroid.go, judge.go and import.go are the four
// jobs; result.go says how good a low-rank predictor is.
package training

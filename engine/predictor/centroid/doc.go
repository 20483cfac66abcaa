// Package centroid is NeuroPrefetcher's predictor. From a feature of layer 0 it selects, for every
// later layer and projection, one pattern of a small vocabulary of activation patterns. So all
// active sets of a token are known before layer 1 begins.
//
// The model, after NeuroPrefetcher (ICPP 2026, DOI 10.1145/3832810.3832862):
//
//	masks      threshold: which units of a layer's gate and up projection are large enough to
//	           matter (Threshold)
//	vocabulary clustering: a few hundred centroid masks for each layer and projection stand for
//	           all masks (Cluster)
//	predictor  layer-0 feature → 2·(L−1) centroid ids, once per token: a shared trunk, a softmax
//	           head for each (Train)
//	active set gate centroid ∩ up centroid, padded or truncated to exactly K_max units
//	           (Codebook.Active)
//
// A model without a gate has one projection, whose centroid is used alone. The published text
// leaves the network to a figure and does not say how an intersection gets K_max units; both are
// this package's:
//
//	trunk   standardised feature → Linear, ReLU, as often as TrainOptions.Hidden has entries; a
//	        linear map for each head
//	K_max   too many: the units of the intersection that were active most often in training stay.
//	        too few: units of only one of the two centroids follow, the most often active ones
//	        first, then all others likewise.
//
// The feature is that of the Samples: the output of layer 0's attention, the residual behind it,
// the input of its feed-forward part, or its mask (MaskFeature). Facts.Feature names it.
//
// So for one token the sets of growing K_max contain each other, and one pass over the test tokens
// gives recall for all K_max (Evaluate). Tradeoffs does that for several sizes of the vocabulary.
//
// A unit that a centroid misses costs quality, an extra unit costs a read. MissCost and ExtraCost
// weigh the two, and a centroid has the bits with the least cost for its members. With equal costs
// this is the majority vote. For sparse masks it leaves nearly nothing: where 3 of 100 units are
// active, hardly any has a majority. With ClusterOptions.Size every centroid has exactly so many
// units, those with the most votes, and a model without a gate gets sets of K_max units with
// nothing to add or remove. Where masks are sparse and K_max is known this finds clearly more.
//
// How well a vocabulary covers a model's masks is a property of the model. Evaluate therefore
// reports three figures side by side: the nearest centroids (the coverage of the vocabulary), the
// predicted ones, and the K_max hottest units of the layer, which need no predictor at all.
//
// Start with Samples (samples.go) and Cluster (cluster.go), then Codebook and fill (codebook.go),
// network (network.go) and Train (train.go), Predictor and Runner (predictor.go), Evaluate
// (report.go). testdata/active.txt shows the K_max rule in words.
//
// Invariants:
//
//  1. The cost of a clustering never rises from one iteration to the next, and is the same for any
//     number of workers.
//  2. Training gives the same bits for any number of workers on processors with the same kernels
//     (cpu.Features).
//  3. An active set has exactly K_max units, unless K_max is 0, which leaves the intersection
//     unchanged.
//  4. For one token and layer the active set of a smaller K_max is a subset of that of a larger
//     one.
//  5. Predict allocates nothing. A Predictor that was saved and loaded predicts the same.
package centroid

import (
	"errors"

	"github.com/windrow-sim/windrow/engine/checkpoint"
)

// The kinds of errors, to be tested with errors.Is.
var (
	// ErrOptions: an option is out of range.
	ErrOptions = errors.New("bad option")
	// ErrSamples: samples contradict their shape, are too few, or are not finite.
	ErrSamples = errors.New("bad samples")
	// ErrMismatch: two things were not made for each other: a predictor and a model, a codebook and
	// samples.
	ErrMismatch = errors.New("mismatch")
	// ErrFormat: a predictor's file is broken.
	ErrFormat = checkpoint.ErrFormat
	// ErrUnsupported: a file is not a predictor of this kind, or of a later version.
	ErrUnsupported = checkpoint.ErrUnsupported
)

// Package centroid is NeuroPrefetcher's predictor: from a feature of layer 0 it names, for every
// later layer and projection, one pattern of a small vocabulary of activation patterns, and so all
// active sets of a token before layer 1 begins.
//
// The model, after NeuroPrefetcher (ICPP 2026, DOI 10.1145/3832810.3832862):
//
//	masks      threshold: which units of a layer's gate and up projection are large enough to
//	           matter (Threshold)
//	vocabulary clustering: a few hundred centroid masks for each layer and projection stand for
//	all masks (Cluster)
//	predictor  layer-0 feature → 2·(L−1) centroid ids, once per token: a shared trunk, a softmax
//	           head for each (Train)
//	active set gate centroid ∩ up centroid, padded or truncated to exactly K_max units
//	(Codebook.Active)
//
// A model without a gate has one projection, whose centroid is used alone. The published text
// leaves the network to a figure and does not say how an intersection comes to K_max units; both
// are this package's:
//
//	trunk   standardised feature → Linear, ReLU, as often as TrainOptions.Hidden has entries; a
//	        linear map for each head
//	K_max   too many: the units of the intersection that were active most often in training stay.
//	        too few: units of only one of the two centroids follow, the most often active ones
//	        first, then all others likewise.
//
// The feature is whatever Samples give: the output of layer 0's attention, the residual behind it,
// the input of its feed-forward part, or its mask (MaskFeature). Facts.Feature names it.
//
// So for one token the sets of growing K_max contain each other, and one pass over the test tokens
// gives recall for all K_max (Evaluate). Tradeoffs does that for several sizes of the vocabulary.
//
// A unit that a centroid misses costs quality, one too many costs a read: MissCost and ExtraCost
// weigh the two, and a centroid has the bits that cost its members least. With equal costs that is
// the majority vote, which for sparse masks leaves nearly nothing: where 3 of 100 units are active,
// hardly any has a majority. ClusterOptions.Size goes the other way: every centroid has just so
// many units, those with the most votes, and a model without a gate gets sets of K_max units with
// nothing to add or remove. Where masks are sparse and K_max is known this finds clearly more.
//
// Whether a vocabulary can hold what a model does is a property of the model. Evaluate therefore
// sets three figures side by side: the nearest centroids (what the vocabulary could give: its
// coverage), the predicted ones, and the K_max hottest units of the layer, which need no predictor
// at all.
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
//  3. An active set has exactly K_max units, unless K_max is 0, which leaves the intersection as it
//     is.
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
	// ErrOptions says that an option is out of range.
	ErrOptions = errors.New("bad option")
	// ErrSamples says that samples contradict their shape, are too few, or are not finite.
	ErrSamples = errors.New("bad samples")
	// ErrMismatch says that two things were not made for each other: a predictor and a model, a
	// codebook and samples.
	ErrMismatch = errors.New("mismatch")
	// ErrFormat says that a predictor's file is broken.
	ErrFormat = checkpoint.ErrFormat
	// ErrUnsupported says that a file is not a predictor of this kind or of a later version.
	ErrUnsupported = checkpoint.ErrUnsupported
)

// Package predictor predicts the active units of a layer before its feed-forward rows are in
// memory. It is the low-rank predictor of LLM in a flash (section 3.1, appendix C) and of Deja Vu,
// trained here or imported.
//
// The model: for each layer two small matrices, W1 of rank × width and W2 of units × rank, in
// float16, with optional biases:
//
//	z = W2 · f(W1·h + b1) + b2        f is ReLU or the identity: the Kind, which files do not say
//	                                  and the importer must know
//	predicted[u] = z[u] ≥ MinLogit    the same as sigmoid(z[u]) ≥ threshold, with MinLogit =
//	                                  log(threshold / (1 − threshold))
//
// h is the predictor's input, the Feature: the output of the layer's attention (the paper), the
// residual with it added (PowerInfer), or the input of its feed-forward part after the norm. The
// predictor's file names it, and the engine provides it. A layer of rank 0 has no predictor: all
// its units are predicted (Phi-2's last layers, appendix C.4).
//
// Both kinds can be trained. Whether a unit is active is a linear question about the feed-forward
// input, which two matrices approximate directly; a ReLU between them hinders. At 5 % false
// negatives on a book that neither the shipped model nor its predictor had seen, rank 64 without
// ReLU makes 3.6 % false positives, rank 64 with it 7.4 % and rank 128 with it 4.1 %. So Linear is
// the default here, though the paper has the ReLU. From the attention's output alone, before the
// residual is added, rank 64 makes 50 %. From the feed-forward input of the previous layer, which
// is known while there is still time to read, it makes 6.5 %.
//
// Two shares measure the quality, both over units and tokens together: false negatives, the active
// units that were not predicted (they are skipped: quality), and false positives, the inactive
// units that were (they are read in vain: time). The threshold trades one for the other, so it is
// chosen last, on samples that training did not see.
//
// Training minimises the cross-entropy of each unit. The active and the inactive elements of a
// layer weigh the same ("a balanced loss over negative and positive samples of each layer",
// appendix C), or by the costs of the two errors (Cost). The method is stochastic gradient descent
// with momentum (AdamW), layer by layer; the layers are independent and are trained in parallel.
// Features are standardised first, and this is folded into W1 and b1.
//
// Start with predictor.go and runner.go (the predictions), then train.go (one layer, top to
// bottom), network.go (loss and gradient), threshold.go. The caller provides samples, or collects
// them in a Memory. file.go stores predictors, state.go resumes a training, imports.go reads other
// programs' predictors.
//
// Invariants:
//
//  1. The same samples and settings give the same predictor, byte for byte, for any number of
//     workers, interrupted or not, on processors with the same kernels/cpu.Features.
//  2. Evaluation uses the code that runs: thresholds and scores come from the float16 weights
//     through the same kernels as Predict.
//  3. The share of false negatives on the held-out samples is at most the target, if a target chose
//     the threshold.
//  4. A Predictor is immutable, so one may serve many Runners.
//  5. Weights are finite: others are refused when a predictor is made or read.
package predictor

// Package whatif makes a trace of another sparsity, or with another predictor, from a trace: the
// question "how fast would it be if fewer neurons were active" asked of a real recording instead of
// a generator.
//
// # Choosing units
//
// Every unit of every token and layer has a score, an integer below 2^16. Of the units to choose
// from, those with a score of at least a cutoff are chosen; a histogram over the whole trace gives
// the cutoff of each layer, so that the share asked for is reached to about one in 2^16 (a report
// says what was reached). Scores depend on nothing but the trace and the seed, never on the share:
// what a smaller share keeps, a larger one keeps, and what is added for a smaller share is added
// for a larger one.
//
//	magnitude  of the active units, where the trace holds magnitudes: the code of the magnitude,
//	           and noise among equal codes
//	thin       of the active units: (held + fast)/2
//	thicken    of the inactive units: (3·hot + 6·held + 7·fast)/16
//
// held and fast are uniform noise by hash. fast is drawn for every token. held is drawn for every
// unit and stretch of 64 tokens, each unit's stretches beginning at positions of its own: a unit is
// likely to be kept, left out or added for a whole stretch. hot is the unit's rank by how often it
// is active in the trace.
//
// # What the weights are from
//
// They decide how much of a token's units the next token needs as well, and so what a window saves.
// A trace has more of this persistence than chance (held), but raising a threshold lowers it
// (fast): of the shipped model's recording 30 % of the active units were active at the token
// before, of its larger half 22 %, of its larger quarter 19 %; leaving out by held alone keeps the
// 30 %, by fast alone halves them with every half. Adding units that are active at neighbouring
// tokens first, which seems natural, gives up to 1.8 times the persistence that the larger half's
// own smaller half has, so proximity has no weight.
//
// The weights are the best of a coarse grid for two kinds of traces together: the recording with
// magnitudes, where the truth about other shares is known, and synthetic traces of OPT-6.7B with
// 3.3, 10 and 20 % active units, which are of one process. Errors of the result against the truth
// at the same share (TestAgainstTruth holds them):
//
//	                           persistence   s_agg(k)/share, k = 2…32   Δ(k)/share, k = 1…16
//	recording, to a half          −13 %           +1 … +3 %               −2 … +6 %
//	recording, to a quarter       −28 %            0 … +3 %               −2 … +7 %
//	synthetic, 20 to 10 %          −5 %           +1 … +10 %              +2 … +28 %
//	synthetic, 10 to 3.3 %        +10 %           −5 … −1 %               −9 … −2 %
//	recording, from a half         +4 %           −9 … −1 %              −11 … −2 %
//	recording, from a quarter      +9 %          −16 … −2 %              −22 … −4 %
//	synthetic, 10 to 20 %         −10 %           +3 … +16 %              +9 … +50 %
//	synthetic, 3.3 to 10 %        −12 %           +2 … +12 %              +6 … +28 %
//
// Persistence is the share of a token's units that the token before it needed too. The largest
// errors are those of the longest windows, where Δ is small. Thinning is good to some per cent,
// thickening to some ten: a trace does not say which units were nearly active. Record at the larger
// share, with magnitudes, whenever that is possible.
//
// # Predictors
//
// A predictor finds the active units with the highest scores and, of the inactive ones, names those
// with the highest. Its scores are those of thin and thicken under random numbers of their own,
// since what it names wrongly is what was nearly active. With SmallFirst it misses the smallest
// activations first, as predictors trained on them do.
//
// # Features
//
// The features of a recording, of whatever kind, stay as they are, under other masks too: what
// stood in front of a layer is what a predictor of the changed masks would be given. In a model
// that is really sparser, later layers would be computed from something else; record that one for
// training.
//
// # Reading guide
//
// apply.go: Apply and its Report. options.go: what can be asked. sparsity.go and predictor.go: the
// two changes, each a traces.Source over another. rule.go and noise.go: scores, cutoffs.
//
// Invariants:
//
//  1. Token(i) is a function of the source's token i, the options and counts over the whole source;
//     nothing depends on which tokens were read before.
//  2. Masks of shares or rates that differ nest, seed and source being the same.
//  3. The magnitudes of a result are those of the source for the same units.
//  4. A change that changes nothing is the source itself.
package whatif

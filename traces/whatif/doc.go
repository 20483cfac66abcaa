// Package whatif changes the sparsity of a trace, or gives it another predictor. It answers "how
// fast would it be if fewer neurons were active" from a real recording instead of a generator.
//
// # Choosing units
//
// Every unit of every token and layer has a score, an integer below 2^16. Of the units to choose
// from, those with a score of at least a cutoff are chosen. A histogram over the whole trace gives
// the cutoff of each layer. The share asked for is reached to about one in 2^16; the report has the
// exact share. Scores depend only on the trace and the seed, never on the share. So masks nest: a
// larger share keeps all that a smaller share keeps, and adds all that a smaller share adds.
//
//	magnitude  of the active units, where the trace holds magnitudes: the code of the magnitude,
//	           and noise among equal codes
//	thin       of the active units: (held + fast)/2
//	thicken    of the inactive units: (3·hot + 6·held + 7·fast)/16
//
// held and fast are uniform noise by hash. fast is drawn for every token. held is drawn for every
// unit and period of 64 tokens; each unit's periods begin at positions of its own. A unit is
// therefore likely to be kept, left out or added for a whole period. hot is the unit's rank by the
// number of tokens that it is active in.
//
// # Weights
//
// Persistence is the share of a token's units that the previous token needed too. The weights
// decide it, and so what a window saves. A trace has more persistence than chance (held), but
// raising a threshold lowers it (fast). In the recording of the shipped model 30 % of the active
// units were active at the previous token; of its larger half 22 %, of its larger quarter 19 %.
// Leaving out by held alone keeps the 30 %; by fast alone it halves them with every half. Adding
// first the units that are active at neighbouring tokens gives up to 1.8 times the persistence that
// the larger half's own smaller half has. So proximity has no weight.
//
// The weights are the best of a coarse grid for two kinds of traces together. One is the recording
// with magnitudes, where the truth about other shares is known. The other is synthetic traces of
// OPT-6.7B with 3.3, 10 and 20 % active units, all of one process. These are the errors of the
// result against the truth at the same share (TestAgainstTruth checks them):
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
// The largest errors are those of the longest windows, where Δ is small. Thinning is good to a few
// per cent, thickening to some tens: a trace does not say which units were nearly active. Record at
// the larger share, with magnitudes, whenever possible.
//
// # Predictors
//
// A predictor finds the active units with the highest scores. Of the inactive ones it names those
// with the highest. Its scores are those of thin and thicken with random numbers of their own,
// since wrongly named units are nearly active ones. With SmallFirst it misses the smallest
// activations first, like predictors trained on them.
//
// # Features
//
// Features stay as recorded, also under other masks: a predictor of the changed masks would get the
// same input. In a model that is really sparser, the inputs of later layers would differ. Record
// that model for training.
//
// # Reading guide
//
// apply.go has Apply and its Report. options.go has the Options. sparsity.go and predictor.go are
// the two changes, each a traces.Source over another. rule.go and noise.go have scores and cutoffs.
//
// Invariants:
//
//  1. Token(i) depends only on the source's token i, the options and counts over the whole source,
//     not on the tokens read before.
//  2. With the same seed and source, masks of different shares or rates nest.
//  3. The magnitudes of a result are those of the source for the same units.
//  4. Options that change nothing return the source itself.
package whatif

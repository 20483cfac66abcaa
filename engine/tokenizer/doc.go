// Package tokenizer turns text into token ids and back: the byte-level BPE of GPT-2, which OPT uses too.
//
// # Model
//
// Encoding has three steps. Special tokens written in the text ("</s>") are cut out first. What lies between them is cut
// into words by GPT-2's split pattern; blanks belong to the word after them, so nothing is lost. The bytes of each word
// are then merged pair by pair, the pair that stands first in merges.txt before all others, the leftmost first among
// equals. All 256 bytes are tokens themselves, so there is no unknown text and Decode(EncodePlain(s)) == s for every
// valid UTF-8 string s.
//
// A Tokenizer comes from a Hugging Face folder (Load) or from its own document (Parse), which MarshalText writes; the
// document is what a flash image carries, and its hash is what a trace names.
//
// Loading is strict, because a tokenizer that is read wrongly still produces ids and the model still talks: a setting
// that is not known to leave the ids alone, a duplicate key, a hole in the ids or an empty list of merges is an error
// that names file and line.
//
// # Reading guide
//
// Start with tokenizer.go (Encode, top to bottom), then scan.go (the split pattern as a scanner) and bpe.go and heap.go (the merge
// loops). decode.go is the way back, for whole lists and for streams. load.go, config.go and tokenizerjson.go read the
// folder, document.go our own form; both end in build.go, which checks everything once. strict.go reads JSON with
// duplicate keys refused and line numbers kept.
//
// # Invariants
//
//  1. Ids equal those of the reference on every vector in testdata/vectors.json (made by tools/tokenizer_vectors).
//  2. Decode(EncodePlain(s)) == s for valid UTF-8.
//  3. The pieces of a Stream, with Flush, joined are Decode of the same ids; each piece but Flush's is whole characters.
//  4. Parse(MarshalText(t)) is t: same bytes, same hash.
//
// # Deviations
//
// The reference is the fast implementation: the tokenizers library 0.20.3 behind GPT2TokenizerFast of transformers
// 4.46.3. The slow GPT2Tokenizer gives the same ids unless add_prefix_space is set: then it puts one space before the
// whole text in any case, whereas the fast one puts it before every piece between special tokens, and only where the
// piece does not begin with a space.
//
// Known differences from the fast implementation:
//
//   - Letters and numbers are those of Go's unicode package (15.0 in Go 1.26), the reference's are those of Unicode 14:
//     4,388 code points, all of which Go knows and the reference does not.
//   - A begin token is put first when tokenizer_config.json says add_bos_token, even if tokenizer.json does not.
//   - Special tokens are cut out in one pass, the leftmost first and of those the longest; the reference makes two
//     passes, by the flag "normalized", which differs only for special tokens that overlap.
//   - Special tokens decode to their own text; the reference reads their letters as bytes where it can.
//   - An id outside the vocabulary decodes to U+FFFD; the reference leaves it out.
//   - clean_up_tokenization_spaces is not applied: Decode is the inverse of EncodePlain.
package tokenizer

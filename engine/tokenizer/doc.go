// Package tokenizer turns text into token ids and back, like the tokenizers in the folders of
// language models: the byte-level BPE of GPT-2, OPT, Phi, Falcon, Llama 3, Qwen, DeepSeek, Pythia
// and gpt-oss, the BPE with byte fallback of Llama 2, Mistral and Gemma, and SentencePiece's
// Unigram of Persimmon.
//
// # Model
//
// Encoding has five steps. First, special tokens written in the text ("</s>") are cut out. Second,
// the text between them is normalized (Llama: spaces become "▁", one more is put in front; Qwen:
// composed characters), and special tokens that count only there are cut out. Third, the patterns
// of the pre-tokenizer split the rest into words. Fourth, each word becomes tokens. In a BPE model
// its bytes or characters are merged pair by pair: the pair that is first in the list of merges
// before all others, the leftmost among equals. In a Unigram model it is split so that the sum of
// the tokens' scores is greatest. Fifth, the template puts a begin token before the whole, or an
// end token after it.
//
// A character without a token becomes the tokens of its bytes, "<0xE6>", if the model has them, and
// the unknown token otherwise. A byte-level vocabulary has all 256 bytes, so nothing is unknown to
// it.
//
// A Tokenizer is read from a Hugging Face folder (Load) or from its own document (Parse), which
// MarshalText writes. A flash image contains the document; a trace names its hash. GPT-2's pipeline
// keeps the first form of the document ("windrow byte-level bpe"), so that hashes in old traces
// hold; all others are a "windrow tokenizer".
//
// Loading is strict, because a tokenizer that is read wrongly still produces ids and the model
// still talks. An unknown component or setting, a pattern without a scanner, a duplicate key, a
// hole in the ids or an empty list of merges is an error that names file and line.
//
// A chat template is a program in Jinja, which this package does not run.
//
// # Reading guide
//
// Start with tokenizer.go (Encode, top to bottom) and pipeline.go (the steps around the model),
// then special.go and prefixes.go (special tokens), unicode.go and charsmap.go (normal forms and
// SentencePiece's table), scan.go and split.go (patterns as scanners), bpe.go and heap.go (the
// merge loops) and unigram.go. decode.go is the way back, for whole lists and for streams.
// lexicon.go and merges.go are the tables that hold most of a tokenizer's memory. load.go,
// config.go, tokenizerjson.go, components.go, and for tokenizer.model sentencepiece.go and
// protobuf.go read the folder; document.go and general.go read our own forms, and writer.go writes
// them. All end in build.go, which checks everything once. strict.go reads JSON, refuses duplicate
// keys and keeps line numbers.
//
// # Invariants
//
//  1. Ids and texts equal those of the reference on every vector in testdata (made by
//     tools/tokenizer_vectors).
//  2. Decode(EncodePlain(s)) == s for valid UTF-8 and a byte-level vocabulary whose special tokens
//     swallow no white space; with byte fallback also where s has no "▁" and no special token.
//  3. The pieces of a Stream, with Flush, joined are Decode of the same ids; each piece is whole
//     characters.
//  4. Parse(MarshalText(t)) is t: same bytes, same hash.
//  5. Encoding takes O(n log n) time for any text of n bytes.
//  6. Loading a tokenizer.json of n bytes allocates at most 4·n and a fixed part in all, including
//     the n bytes of the file, whatever it holds: lists are walked twice, first to count, and
//     become tables of numbers.
//
// # References
//
// For tokenizer.json, and for vocab.json with merges.txt, the reference is the fast implementation:
// the tokenizers library 0.20.3 behind the class of transformers 4.46.3 that tokenizer_config.json
// names. So LlamaTokenizer puts BOS first unless add_bos_token is false, and EOS last if
// add_eos_token is true, whatever the template in tokenizer.json says. legacy changes nothing,
// because tokenizer.json was made by it. The slow GPT2Tokenizer gives the same ids unless
// add_prefix_space is set: then it always puts one space before the whole text, whereas the fast
// one puts it before every piece between special tokens that does not begin with a space.
//
// For tokenizer.model the reference is the slow LlamaTokenizer over SentencePiece 0.2.3, and for
// decoding SentencePiece itself. There legacy false means that a space is put only before the whole
// text.
//
// # Deviations
//
// Known differences from the references:
//
//   - Letters and numbers of the split patterns are those of Go's unicode package (15.0 in Go
//     1.26); the reference has Unicode 14. They differ in 4,388 code points, all of which only Go
//     knows. For single_word the reference has a later version than Go: 5,055 code points. Of the
//     classes that o200k's and DeepSeek's patterns tell apart, 4,442 code points are only in Go's.
//   - The normal forms are those of Unicode 15, the reference's of version 9 or 10. NFC
//     of every single character is the same; among several marks in a row, the order of some 200
//     newer ones differs. NFKC also knows 134 newer characters.
//   - Bytes that a byte-level vocabulary has no token for vanish, as in the reference.
//   - The tokenizer of a GGUF file follows the original: Qwen's texts are normalized, which
//     llama.cpp leaves out.
//   - transformers 5 reads a folder of class LlamaTokenizer as if legacy were false, whatever
//     tokenizer.json says about the blank in front. Here tokenizer.json counts, as before.
//   - A begin token is put first when tokenizer_config.json says add_bos_token, even if
//     tokenizer.json does not.
//   - add_prefix_space for a LlamaTokenizer must agree with tokenizer.json; transformers would make
//     another tokenizer from tokenizer.model instead.
//   - Special tokens of a byte-level vocabulary decode to their own text; the reference reads their
//     letters as bytes where it can. Those of tokenizer.model decode to their own text without more
//     blanks around them.
//   - An id outside the vocabulary decodes to U+FFFD; the reference leaves it out.
//   - clean_up_tokenization_spaces is not applied: Decode is the inverse of EncodePlain.
//   - Text that is not UTF-8, which the references refuse, is encoded byte by byte.
package tokenizer

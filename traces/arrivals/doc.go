// Package arrivals reads traces of requests as services and simulators publish them: when each
// request came, how many tokens its prompt had and how many were generated for it.
//
// # Model
//
// A Reader streams a file once and yields a Request per call of Next. Its memory does not depend on
// the length of the file: it is one buffer of MaxLine bytes, and for lists of conversations the
// longest of them. Sorting is the exception and has a bound. Times become nanoseconds; of decimals
// with more digits than that the nearest.
//
// A line is a request, or it is left out and counted under a Reason, or it is bad. There are no
// other fates: nothing is clipped or filled in. A bad line ends the reading with an error that
// names the line, unless Options.SkipBad tolerates it, in which case it is counted too. Left out
// without being bad are requests that ask nothing of a model: those without prompt tokens or
// without output tokens (BurstGPT records failures as 0 response tokens).
//
// # Formats
//
//	azure-2023   CSV: TIMESTAMP,ContextTokens,GeneratedTokens; "2023-11-16 18:17:03.9799600", no
//	             zone, CRLF, no newline at the end
//	azure-2024   the same columns; "2024-05-10 00:00:00.009930+00:00", and without fraction where
//	             it is 0
//	burstgpt     CSV: Timestamp (seconds), Request tokens, Response tokens, and where it is there
//	             Session ID
//	mooncake     JSON lines: timestamp (milliseconds), input_length, output_length
//	vidur        CSV: arrived_at (seconds), num_prefill_tokens, num_decode_tokens
//	sharegpt     a JSON list of {id, conversations: [{from, value}]}: texts, which Options.Count
//	             turns into numbers; no times
//
// Columns are found by their names. Columns and keys that are not used (Model, hash_ids, NumImages)
// are listed in Stats.Ignored. The formats are told apart by the first bytes (detect.go);
// Options.Format overrides that.
//
// Sources of the layouts: the READMEs and data of Azure/AzurePublicDataset (2023, 2024 and the
// multimodal trace of 2025), HPMLL/BurstGPT (releases 1.1 and 2.0), kvcache-ai/Mooncake
// (FAST25-release/traces), microsoft/vidur (data/processed_traces).
//
// # Conversations
//
// Each answered turn of a ShareGPT conversation is a request of its own. Prompt is the whole
// context, as the other formats count it: all earlier turns and the new message; History is the
// part that the earlier turns make up, which a server that keeps its keys and values need not
// compute again. Tokens of a chat template are not counted. A conversation that is not as it should
// be is left out whole, since a turn without its history has another length. Of a key that a
// conversation has twice the last counts.
//
// # Reading guide
//
// arrivals.go has the contracts. reader.go is Next from top to bottom, detect.go tells formats
// apart, csv.go, jsonlines.go and sharegpt.go read one kind of file each, fields.go reads numbers
// and times. sort.go is what Options.Sort does. summary.go and histogram.go describe a whole trace
// in constant memory.
//
// # Invariants
//
//  1. Whatever the bytes, no panic, and the same bytes give the same requests, counts and error.
//  2. At is 0 for the first request, does not fall from one to the next, and 0 ≤ History < Prompt ≤
//     MaxTokens, 0 < Output ≤ MaxTokens.
//  3. Every data line is a request, is counted in Stats.Skipped, or is the one that the error
//     names.
//  4. Reading with Sort gives the requests of the file whose lines are sorted by time, equal times
//     in the order of the file.
//  5. A line of a CSV without sessions allocates nothing.
package arrivals

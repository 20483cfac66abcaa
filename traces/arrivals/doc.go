// Package arrivals reads traces of requests as services and simulators publish them: the arrival
// time of each request, the number of its prompt tokens and the number of its generated tokens.
//
// # Model
//
// A Reader streams a file once. Each call of Next yields one Request. The memory of a Reader does
// not depend on the length of the file: it is one buffer of MaxLine bytes, and the longest
// conversation of a ShareGPT list. Sorting holds all requests in memory and has a bound. Times are
// in nanoseconds; longer decimals are rounded to the nearest.
//
// A line is a request, or it is left out and counted under a Reason, or it is bad. No value is
// clipped or filled in. A bad line ends the reading with an error that names the line. Blank lines
// at the end of a file are no lines.
// Options.SkipBad tolerates a number of bad lines and counts them. Requests without prompt tokens
// or without output tokens are not bad but left out: they ask nothing of a model, or they failed
// (BurstGPT records failures as 0 response tokens). Options.KeepFailed keeps the latter.
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
//	bailian      the same keys with the timestamp in seconds, and chat_id, parent_chat_id, type
//	             and turn
//	vidur        CSV: arrived_at (seconds), num_prefill_tokens, num_decode_tokens
//	sharegpt     a JSON list of {id, conversations: [{from, value}]}: texts, which Options.Count
//	             turns into numbers; no times
//
// Columns are found by their names. Stats.Ignored lists the columns and keys that are not used
// (Model, hash_ids, NumImages). detect.go finds the format from the first bytes; Options.Format
// overrides it. JSON lines with other keys are refused unless Options.Format says what they are:
// the unit of their times is not known.
//
// Sources of the layouts: the READMEs and data of Azure/AzurePublicDataset (2023, 2024 and the
// multimodal trace of 2025), HPMLL/BurstGPT (releases 1.1 and 2.0), kvcache-ai/Mooncake
// (FAST25-release/traces), alibaba-edu/qwen-bailian-usagetraces-anon, microsoft/vidur
// (data/processed_traces).
//
// # Conversations
//
// Each answered turn of a ShareGPT conversation is a request of its own. Prompt is the whole
// context, as in the other formats: all earlier turns and the new message. History is the number of
// tokens of the earlier turns; a server that keeps their keys and values need not compute them
// again. Tokens of a chat template are not counted. A malformed conversation is left out whole,
// because a turn without its history has another length. Of a key that a conversation has twice,
// the last value counts.
//
// # Reading guide
//
// arrivals.go has the contracts. reader.go is Next, top to bottom. detect.go finds the format.
// csv.go, jsonlines.go and sharegpt.go each read one kind of file. fields.go reads numbers and
// times. sort.go implements Options.Sort. summary.go and histogram.go summarise a trace in constant
// memory.
//
// # Invariants
//
//  1. No input panics. The same bytes give the same requests, counts and error.
//  2. At is 0 for the first request and never decreases. 0 ≤ History < Prompt ≤ MaxTokens and 0 <
//     Output ≤ MaxTokens; Output is 0 for a failed request that KeepFailed keeps.
//  3. Every data line is a request, or is counted in Stats.Skipped, or is the line that the error
//     names.
//  4. Sort gives the requests of the same file with its lines sorted by time; lines of equal times
//     keep their order.
//  5. A line of a CSV without sessions allocates nothing.
package arrivals

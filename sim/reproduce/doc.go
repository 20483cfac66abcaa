// Package reproduce computes the tables of the two papers with the models of this program and puts
// both numbers beside each other.
//
// A row is one published number: where it stands and how good it is (published.csv, copied), what
// our number was computed from, how far they are apart, and what kind of row it is:
//
//	calibrated  the published number fixes a parameter of a machine or a workload, so that
//	            agreement proves nothing
//	predicted   computed without the published number of the row
//	miss        predicted, outside its tolerance, and known to be: the reason says which
//	            explanations were tried
//
// A calibrated parameter is named in the row that fixes it and in the inputs of every row that uses
// it.
//
// # What computes what
//
// Reads are those that sim.Run sends through the flash station on a synthetic trace (traces/synth);
// computing and copying are terms of devicemodels.Host.At. Three machines are calibrated, each on
// as little as possible:
//
//   - M1 Max, flash: the 8 KiB and 16 KiB rates and the sequential rate of Table 2. All other reads
//     of that machine are predicted.
//   - M1 Max, CPU: the compute time of OPT-6.7B's naive row (a dense rate) and the memory time of
//     its "all" row (a copy rate). Compute of an "all" row is then all resident weights and all
//     cached rows at the dense rate of the model's own naive row: the paper multiplies with
//     matrix[:num_rows], not with the active rows alone (section 3.3, Figure 6).
//   - RTX 4090 and Metal: see machines.go. Jetson: see neuro.go.
//
// # Reading guide
//
// Start with Run and Row (reproduce.go), then machines.go (calibrations), workload.go (one
// simulated trace), table2.go, table3.go, and the two small models of their own: speculative.go
// (speculative decoding) and pipeline.go with paging.go (NeuroPrefetcher and paging by the
// operating system). misses.go lists the known misses.
//
// Invariants tested here: no predicted row depends on its own published number; every published
// number is a copy; the known misses still are.
package reproduce

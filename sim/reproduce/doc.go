// Package reproduce computes the tables of the two papers with the models of this program, and puts
// the published numbers beside the computed ones.
//
// A row is one published number. It has the source and the quality of the number (published.csv, a
// copy), the inputs of our number, the error, and a status:
//
//	calibrated  the published number fixes a parameter of a machine or a workload, so that
//	            agreement proves nothing
//	predicted   computed without the published number of the row
//	miss        predicted, outside its tolerance, and known to be; the reason names the
//	            explanations that were tried
//
// A calibrated parameter is named in the row that fixes it, and in the inputs of every row that
// uses it.
//
// # Sources of our numbers
//
// Reads are those that sim.Run sends through the flash station on a synthetic trace (traces/synth).
// Compute and copies are terms of devicemodels.Host.At. Three machines are calibrated, each by as
// few numbers as possible:
//
//   - M1 Max, flash: the 8 KiB and 16 KiB rates and the sequential rate of Table 2. All other reads
//     of that machine are predicted.
//   - M1 Max, CPU: the compute time of OPT-6.7B's naive row (a dense rate) and the memory time of
//     its "all" row (a copy rate). The compute of an "all" row is then all resident weights and all
//     cached rows at the dense rate of the model's own naive row. The paper multiplies with
//     matrix[:num_rows], not with the active rows alone (section 3.3, Figure 6).
//   - RTX 4090 and Metal: see machines.go. Jetson: see neuro.go.
//
// # Reading guide
//
// Start with Run and Row (reproduce.go). Then read machines.go (calibrations), workload.go (one
// simulated trace), table2.go and table3.go. Two models are small ones of their own: speculative.go
// (speculative decoding), and pipeline.go with paging.go (NeuroPrefetcher, and paging by the
// operating system). misses.go lists the known misses. document.go describes the rows for a reader.
//
// # Invariants
//
// No predicted row depends on its own published number. Every published number is a copy. The known
// misses are still misses.
package reproduce

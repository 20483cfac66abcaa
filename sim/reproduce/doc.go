// Package reproduce runs the published settings of the two papers with the simulator and the
// presets that ship, and puts the published numbers beside the results.
//
// A row is one published number. It has the source and the quality of the number (published.csv, a
// copy), the inputs of our number, the error, a tolerance with its reason, and a kind:
//
//	simulated       a run of sim.Run (or sim/speculative) with a preset: a prediction
//	arithmetic      follows from shapes or from the synthetic trace, without a run
//	calibrated      fixes a number of a preset or of a trace, so that agreement proves nothing
//	identity        repeats another row, or adds up others
//	not reproduced  there is no number of ours; the reason says why
//
// A row outside its tolerance has a reason too: the explanations that were tried (misses.go).
//
// # Calibration
//
// No time and no rate stands in this package. They are those of the presets. Calibrate fits the
// numbers of a preset that no table states to named rows, by running the simulator on their
// settings. The presets hold the results and name the rows (devicemodels.Calibration).
//
// # Reading guide
//
// Start with Run and Row (reproduce.go). Then read scenario.go (one published setting as a run),
// table2.go, table3.go, speculative.go, shares.go, figures.go and neuro.go (the rows), flash.go
// (the rates of drives alone), calibrate.go, and misses.go. document.go describes the rows for a
// reader.
//
// # Invariants
//
// No simulated row depends on its own published number. Every published number is a copy. The known
// misses are still misses. A wrong number in a preset puts a row outside its tolerance.
package reproduce

// Command avo writes the AVX2 assembly of package kernels/cpu and its Go declarations.
//
// It is a module of its own, so that the generator's dependencies stay out of the program's. Its
// output is committed; it has to run only after a kernel here was changed:
//
//	go generate ./kernels/cpu
//
// Every kernel takes raw pointers and an element count, and leaves bounds checks to its Go caller.
// Start with dot in kernels.go: the others have the same three parts (a main loop over full blocks,
// a loop over single vectors, a loop over single elements); those in quant.go have two, for blocks
// and for groups. The test generates again and compares with what is committed.
package main

// Package model holds the weights of an OPT model, in memory and as a flash image, and packs the
// one from a Hugging Face folder.
//
// A flash image is a safetensors file in an order that suits reading from flash:
//
//	header                  padded so that the first bundles start at a multiple of 4096
//	resident tensors        norms and biases (F32), then embedding, positions and attention (F16):
//	                        always in memory
//	layers.0.ffn.bundles    [d_ffn, stride/2] F16: one record for each neuron
//	layers.0.ffn.pad        U8, only where the next bundles (or the end of the file) need it to be
//	                        a multiple of 4096
//	layers.1.ffn.bundles    ...
//
// Record i of a layer is what one neuron needs: row i of fc1 (the weights into it), then column i
// of fc2 (the weights out of it), d_model elements each, then zeros up to stride. So one read of
// P·d_model·2 bytes brings a neuron, where a checkpoint would need one read for the row and d_model
// reads for the column (LLM in a flash, section 3.2). What does not lie in tensors is in the
// metadata of the header; facts.go lists it.
//
// Start with weights.go: its table of resident tensors is the only place that knows their names,
// shapes and order, in an image and in a Hugging Face folder. Then image.go reads an image,
// writeImage (write.go) writes one, pack.go and synth.go feed it. Everything is a stream: packing
// needs tens of MiB, whatever the size of the model.
//
// Errors are of the kinds checkpoint.ErrFormat and checkpoint.ErrUnsupported.
//
// Invariants:
//
//  1. Every weight is finite. NaN and Inf are refused when a folder is read or packed and when an
//     image is loaded.
//  2. Bundles start at multiples of 4096 and the file's length is one, so an aligned read of a
//     record stays in the file.
//  3. The same folder and options, or the same shape and seed, give the same image, byte for byte.
//  4. LoadFolder and Pack followed by OpenImage give the same bits.
package model

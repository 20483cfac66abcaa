// Package model holds the weights of a language model, in memory and as a flash image. It packs an
// image from a Hugging Face folder or a GGUF file.
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
//	hashes                  of the header and of every block of the tensors above (hashes.go)
//
// Record i of a layer holds the weights of neuron i: row i of fc1 (the weights into it), then
// column i of fc2 (the weights out of it), d_model elements each, then zeros up to stride. Models
// with a gate have its row in front. One read of P·d_model·2 bytes fetches a neuron; a checkpoint
// would need one read for the row and d_model reads for the column (LLM in a flash, section 3.2).
// All other facts are in the metadata of the header; facts.go lists them.
//
// A family is a file of its own, family_NAME.go: it reads config.json, names the tensors of a
// Hugging Face folder, and says which traits its models may have. The result is an Arch. Package
// engine computes what the Arch says, whatever the family.
//
// Start with family.go. The table of resident tensors in weights.go is the only place with their
// names, shapes and order, in an image and in a folder. image.go reads an image, writeImage
// (write.go) writes one, pack.go and synth.go feed it. hashes.go and check.go find damage.
// Everything streams: packing needs tens of MiB, whatever the size of the model.
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
//  5. Exactly one hash covers each byte of an image. Weights and Bundles return no byte that was
//     not compared with its hash, if the image has hashes.
package model

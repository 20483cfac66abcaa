// Package source holds the device code of kernels/cuda and kernels/metal as text. The kernels are
// written once, in the vocabulary of port.h; metal/port.h defines the same words in the Metal
// Shading Language. Programs use the PTX compiled from this text. The text itself is read by the
// test that compiles the PTX again, by the Metal driver, and by the stand-ins, which compile it for
// the host.
//
// Read port.h first, then rows.h, then any of the kernels: kernels.cu lists them.
package source

import "embed"

// CUDA holds the CUDA sources, in one folder. kernels.cu includes all others.
//
//go:embed *.cu *.h
var CUDA embed.FS

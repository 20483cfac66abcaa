// Package source holds the device code of kernels/cuda as text. Programs use the PTX that is made of it; this is for those who compile it: the
// test that makes the PTX again, and the stand-in, which compiles it for the host.
//
// Read port.h first, then rows.h, then any of the kernels: kernels.cu lists them.
package source

import "embed"

// Files are the sources, in one folder. kernels.cu includes all others.
//
//go:embed *.cu *.h
var Files embed.FS

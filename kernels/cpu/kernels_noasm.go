//go:build !amd64 || purego

package cpu

func features() string { return "generic" }

// There is no portable prefetch, so the distance of the next row is ignored.

func dot(w []uint16, x []float32, _ int) float32     { return dotGeneric(w, x) }
func axpy(a float32, w []uint16, y []float32, _ int) { axpyGeneric(a, w, y) }
func dotF32(a, b []float32) float32                  { return dotF32Generic(a, b) }
func axpyF32(a float32, x, y []float32)              { axpyF32Generic(a, x, y) }
func widen(dst []float32, src []uint16)              { widenGeneric(dst, src) }
func stream(b []byte) uint64                         { return streamGeneric(b) }

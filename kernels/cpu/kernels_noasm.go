//go:build !amd64 || purego

package cpu

func features() string { return "generic" }

// There is no portable prefetch, so the distance of the next row is ignored.

func dot(w []uint16, x []float32, _ int) float32         { return dotGeneric(w, x) }
func axpy(a float32, w []uint16, y []float32, _ int)     { axpyGeneric(a, w, y) }
func dotBF16(w []uint16, x []float32, _ int) float32     { return dotBF16Generic(w, x) }
func axpyBF16(a float32, w []uint16, y []float32, _ int) { axpyBF16Generic(a, w, y) }
func dotF32(a, b []float32, _ int) float32               { return dotF32Generic(a, b) }
func axpyF32(a float32, x, y []float32, _ int)           { axpyF32Generic(a, x, y) }
func dotQ8(w []byte, x []float32, _ int) float32         { return dotQ8Generic(w, x) }
func axpyQ8(a float32, w []byte, y []float32, _ int)     { axpyQ8Generic(a, w, y) }
func dotQ4(w []byte, x []float32, _ int) float32         { return dotQ4Generic(w, x) }
func axpyQ4(a float32, w []byte, y []float32, _ int)     { axpyQ4Generic(a, w, y) }
func widen(dst []float32, src []uint16)                  { widenGeneric(dst, src) }
func stream(b []byte) uint64                             { return streamGeneric(b) }

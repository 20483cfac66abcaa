//go:build !unix

package flashio

// mapAligned takes memory of the Go heap.
func mapAligned(n int, align int) []byte {
	a := roundAlign(align)
	b := make([]byte, n+a)
	head := int(-bufferAddress(b) & uintptr(a-1))
	return b[head : head+n : head+n]
}

// unmap leaves the memory to the garbage collector.
func unmap([]byte) error { return nil }

//go:build !unix

package flashio

// AlignedBuffer returns n zero bytes at an address that is a multiple of align, rounded up to a
// power of two of at least 4096. On this system they are in the Go heap. The result is nil when n
// is not positive.
func AlignedBuffer(n int, align int) []byte {
	if n <= 0 || align > 1<<30 {
		return nil
	}
	a := roundAlign(align)
	b := make([]byte, n+a)
	head := int(-bufferAddress(b) & uintptr(a-1))
	return b[head : head+n : head+n]
}

// FreeBuffer frees a buffer of AlignedBuffer. On this system the garbage collector does.
func FreeBuffer([]byte) error { return nil }

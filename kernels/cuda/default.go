//go:build !(cuda && cgo && linux)

package cuda

// OpenDriver opens the driver of this build: the machine's own library, or with the build tag cuda
// the linked one.
func OpenDriver() (Driver, error) { return OpenLibrary("") }

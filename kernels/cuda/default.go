//go:build !(cuda && cgo && linux)

package cuda

// OpenDriver opens the driver of this build: the machine's own library, or with the build tag cuda
// what the program is linked to.
func OpenDriver() (Driver, error) { return OpenLibrary("") }

//go:build amd64 || arm64

package cuda

import "syscall"

const systemLibrary = "nvcuda.dll"

func openLibrary(name string) (uintptr, error) {
	h, err := syscall.LoadLibrary(name)
	return uintptr(h), err
}

func findSymbol(library uintptr, name string) (uintptr, error) {
	return syscall.GetProcAddress(syscall.Handle(library), name)
}

// closeLibrary's error would say only that the library stays, which harms nobody.
func closeLibrary(library uintptr) { _ = syscall.FreeLibrary(syscall.Handle(library)) }

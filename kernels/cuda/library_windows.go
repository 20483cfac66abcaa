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

// closeLibrary ignores the error: a library that stays loaded does no harm.
func closeLibrary(library uintptr) { _ = syscall.FreeLibrary(syscall.Handle(library)) }

//go:build amd64 || arm64

package cuda

import "github.com/ebitengine/purego"

const systemLibrary = "libcuda.so.1"

func openLibrary(name string) (uintptr, error) {
	return purego.Dlopen(name, purego.RTLD_NOW|purego.RTLD_LOCAL)
}

func findSymbol(library uintptr, name string) (uintptr, error) {
	return purego.Dlsym(library,
		name)
}

// closeLibrary ignores the error: a library that stays loaded does no harm.
func closeLibrary(library uintptr) { _ = purego.Dlclose(library) }

//go:build !(linux && giouring)

package uring

func openKernel(fd, depth int) (Kernel, error) { return nil, ErrNotBuilt }

//go:build !(linux && giouring)

package uring

func openKernel(fd, depth int) (kernel, error) { return nil, ErrNotBuilt }

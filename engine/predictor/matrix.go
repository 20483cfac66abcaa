package predictor

import "github.com/windrow-sim/windrow/kernels/cpu"

// The three products of training, on row-major float32 matrices. Each works in blocks that stay in
// a core's second-level cache, along the longest axis, so that a kernel call pays. The order of the
// sums is fixed.
const (
	blockBytes  = 128 << 10
	blockColums = 1024
)

// mulNT computes c = a·bᵀ for a (n, k), b (m, k) and c (n, m).
func mulNT(c, a, b []float32, n, m, k int) {
	rows := max(1, blockBytes/(4*k))
	for lo := 0; lo < m; lo += rows {
		hi := min(m, lo+rows)
		for i := range n {
			x := a[i*k : (i+1)*k]
			for j := lo; j < hi; j++ {
				c[i*m+j] = cpu.DotF32(x, b[j*k:(j+1)*k])
			}
		}
	}
}

// mulNN computes c += a·b for a (n, k), b (k, m) and c (n, m). Zeros in a, half of it behind a
// ReLU, take no time.
func mulNN(c, a, b []float32, n, k, m int) {
	const depth = blockBytes / (4 * blockColums)
	for lo := 0; lo < m; lo += blockColums {
		hi := min(m, lo+blockColums)
		for from := 0; from < k; from += depth {
			to := min(k, from+depth)
			for i := range n {
				y := c[i*m+lo : i*m+hi]
				for j := from; j < to; j++ {
					if v := a[i*k+j]; v != 0 {
						cpu.AxpyF32(v, b[j*m+lo:j*m+hi], y)
					}
				}
			}
		}
	}
}

// mulTN computes c += aᵀ·b for a (n, k), b (n, m) and c (k, m). Zeros in a cost nothing.
func mulTN(c, a, b []float32, n, k, m int) {
	for lo := 0; lo < m; lo += blockColums {
		hi := min(m, lo+blockColums)
		for j := range k {
			y := c[j*m+lo : j*m+hi]
			for i := range n {
				if v := a[i*k+j]; v != 0 {
					cpu.AxpyF32(v, b[i*m+lo:i*m+hi], y)
				}
			}
		}
	}
}

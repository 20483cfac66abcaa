package input

import (
	"fmt"
	"testing"
)

// BenchmarkReadAt is the price of reads that end with their context, by their size.
func BenchmarkReadAt(b *testing.B) {
	for _, size := range []int{512, 64 << 10, 4 << 20} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			path, _ := file(b, 4<<20)
			f, err := Open(b.Context(), path)
			if err != nil {
				b.Fatal(err)
			}
			defer f.Close()
			buf := make([]byte, size)
			b.SetBytes(int64(size))
			for b.Loop() {
				if _, err := f.ReadAt(buf, 0); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

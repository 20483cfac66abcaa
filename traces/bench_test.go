package traces

import (
	"fmt"
	"testing"
)

// benchTrace has 256 tokens of 32 layers with 16384 units: 17 MB.
func benchTrace() *Memory {
	m := testTrace(0, false)
	m.Head.Layers, m.Head.Units = 32, 16384
	for i := range 256 {
		m.List = append(m.List, Token{Pos: uint32(i), Active: testMasks(&m.Head, uint64(i)<<32)})
	}
	return m
}

const benchBytes = 256 * 32 * (2048 + 15)

func BenchmarkWrite(b *testing.B) {
	src := benchTrace()
	path := save(b, src, WriteOptions{})
	b.SetBytes(benchBytes)
	for b.Loop() {
		saveAs(b, path, src, WriteOptions{})
	}
}

func BenchmarkOpen(b *testing.B) {
	path := save(b, benchTrace(), WriteOptions{})
	for _, skip := range []bool{true, false} {
		b.Run(fmt.Sprintf("skiphash=%t", skip), func(b *testing.B) {
			b.SetBytes(benchBytes)
			for b.Loop() {
				r, err := OpenWith(b.Context(), path, OpenOptions{SkipHash: skip})
				if err != nil {
					b.Fatal(err)
				}
				if err := r.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkScan reads all tokens and counts the bits of all masks.
func BenchmarkScan(b *testing.B) {
	for _, compress := range []string{"none", "zstd"} {
		r := open(b, save(b, benchTrace(), WriteOptions{Compress: compress}))
		b.Run("compress="+compress, func(b *testing.B) {
			b.SetBytes(benchBytes)
			b.ReportAllocs()
			t := Token{Reuse: &Buffer{}}
			n := 0
			for b.Loop() {
				for i := range r.Tokens() {
					if err := r.Token(i, &t); err != nil {
						b.Fatal(err)
					}
					for _, m := range t.Active {
						n += m.Count()
					}
				}
			}
			if n == 0 {
				b.Fatal("no bits")
			}
		})
	}
}

func BenchmarkToken(b *testing.B) {
	r := open(b, save(b, benchTrace(), WriteOptions{}))
	b.ReportAllocs()
	var t Token
	i := 0
	for b.Loop() {
		if err := r.Token(i%256, &t); err != nil {
			b.Fatal(err)
		}
		i++
	}
}

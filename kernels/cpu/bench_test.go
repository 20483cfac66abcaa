//go:build linux

package cpu

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/windrow-sim/windrow/internal/rng"
	"github.com/windrow-sim/windrow/kernels/ref"
)

// The large benchmarks compare a kernel with StreamRead, pass by pass, so that whatever else loads
// the memory loads both. They report medians: the kernel's GB/s of weights, the roofline's, and
// of-roof, the median of the ratios.
//
// A ratio says something about N workers only while all N were running. Passes whose processor time
// is below 95 % of N times the wall time, in the kernel or in the roofline, are left out;
// full-passes is the share that remains. Of fewer than minFull passes nothing more is reported.
//
//	go test -run '^$' -bench . -benchtime 200x ./kernels/cpu

const (
	benchCols = 4096
	benchRows = 4096
	matrices  = 8 // 256 MiB in all, more than a last-level cache
	passBytes = benchRows * benchCols * halfBytes
	minFull   = 10
)

// weights is the ring of matrices that a pass takes the next of.
func weights() []uint16 {
	r := rng.Stream(rng.DefaultSeed, "bench")
	w := make([]uint16, matrices*benchRows*benchCols)
	for i := range w {
		w[i] = uint16(r.Uint32())&0x83ff | 0x3000 // ±0.125 to ±0.25
	}
	return w
}

func row(w []uint16, i int) []uint16 { return w[i*benchCols : (i+1)*benchCols] }

// usage is the wall and processor time of one pass.
type usage struct{ wall, cpu time.Duration }

func (u usage) rate() float64 { return passBytes / float64(u.wall.Nanoseconds()) } // GB/s

func (u usage) full(workers int) bool {
	return u.cpu.Seconds() >= 0.95*float64(workers)*u.wall.Seconds()
}

func measure(f func()) usage {
	start, cpu := time.Now(), processTime()
	f()
	return usage{cpu: processTime() - cpu, wall: time.Since(start)}
}

func processTime() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &ts); err != nil {
		return 0 // no pass counts as full then
	}
	return time.Duration(ts.Nano())
}

// against runs kernel and the roofline alternately on successive matrices of w. It returns the
// kernel's median GB/s, or 0 if it is unknown.
func against(b *testing.B, p *Pool, w []uint16, kernel func(matrix int)) float64 {
	var rates, roofs, ratios []float64
	all := bytesOf(w)
	roofline := func(m int) {
		p.Run(benchRows, 64, func(lo, hi int) {
			StreamRead(all[m*passBytes+lo*benchCols*halfBytes : m*passBytes+hi*benchCols*halfBytes])
		})
	}
	passes := 0
	for b.Loop() {
		roof := measure(func() { roofline(passes % matrices) })
		got := measure(func() { kernel((passes + matrices/2) % matrices) })
		passes++
		if !roof.full(p.Workers()) || !got.full(p.Workers()) {
			continue
		}
		rates, roofs = append(rates, got.rate()), append(roofs, roof.rate())
		ratios = append(ratios, got.rate()/roof.rate())
	}
	b.ReportMetric(0, "ns/op") // of both together: means nothing
	b.ReportMetric(float64(len(ratios))/float64(passes), "full-passes")
	if len(ratios) < minFull {
		return 0
	}
	b.ReportMetric(median(rates), "GB/s")
	b.ReportMetric(median(roofs), "roof-GB/s")
	b.ReportMetric(median(ratios), "of-roof")
	return median(rates)
}

func median(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}

// BenchmarkCold reads 4096 × 4096 matrices from memory: in order, and as 8 KiB rows in random
// order, as a sparse layer does.
func BenchmarkCold(b *testing.B) {
	w := weights()
	order := rng.Stream(rng.DefaultSeed, "order").Perm(matrices * benchRows)
	x, y := floats(rng.Stream(rng.DefaultSeed, "x"), benchCols), make([]float32, benchRows)
	for _, workers := range []int{1, 2} {
		p := NewPool(workers)
		defer p.Close()
		// scattered gives f the rows of a matrix's worth of random order, each with the one that
		// follows.
		scattered := func(f func(row, next []uint16, i int)) func(int) {
			return func(m int) {
				ids := order[m*benchRows : (m+1)*benchRows]
				p.Run(benchRows, 64, func(lo, hi int) {
					for i := lo; i < hi; i++ {
						f(row(w, ids[i]), row(w, ids[min(i+1, hi-1)]), i)
					}
				})
			}
		}
		// columns adds the rows in order, each worker to the stretch of the sum that it owns, as a
		// down projection does.
		columns := func(f func(w []uint16, y []float32, next []uint16)) func(int) {
			return func(m int) {
				ids := order[m*benchRows : (m+1)*benchRows]
				p.Run(benchCols, benchCols/workers, func(lo, hi int) {
					for i, id := range ids {
						f(row(w, id)[lo:hi], x[lo:hi], row(w, ids[min(i+1, len(ids)-1)])[lo:hi])
					}
				})
			}
		}
		cases := []struct {
			name   string
			kernel func(matrix int)
		}{
			{"MatVec", func(m int) {
				p.MatVec(w[m*benchRows*benchCols:][:benchRows*benchCols],
					benchRows, benchCols, x, y)
			}},
			{"RandomDot", scattered(func(row, _ []uint16, i int) { y[i] = Dot(row, x) })},
			{"RandomDotNext", scattered(func(row, next []uint16, i int) {
				y[i] = DotNext(row, x,
					next)
			})},
			{"RandomStream", scattered(func(row, _ []uint16, _ int) { StreamRead(bytesOf(row)) })},
			{"RandomAxpy", columns(func(w []uint16, y []float32, _ []uint16) { Axpy(1e-9, w, y) })},
			{"RandomAxpyNext", columns(func(w []uint16, y []float32, next []uint16) {
				AxpyNext(1e-9, w, y, next)
			})},
		}
		for _, c := range cases {
			b.Run(fmt.Sprintf("%s/workers=%d", c.name, workers), func(b *testing.B) {
				against(b, p, w, c.kernel)
			})
		}
	}
}

// BenchmarkColdFormats is BenchmarkCold for every format. All take the same bytes for rows of 4096
// weights, as many as a pass holds: the float16 patterns of weights are harmless numbers and scales
// in the other formats too.
func BenchmarkColdFormats(b *testing.B) {
	w := weights()
	all := bytesOf(w)
	x, y := floats(rng.Stream(rng.DefaultSeed, "x"), benchCols), make([]float32,
		passBytes/ref.Q4.Size(benchCols))
	for _, f := range ref.Formats() {
		size := f.Size(benchCols)
		rows := passBytes / size
		order := rng.Stream(rng.DefaultSeed, "order").Perm(matrices * rows)
		scattered := func(m, i int) []byte {
			at := order[m*rows+min(i, rows-1)] * size
			return all[at : at+size]
		}
		for _, workers := range []int{1, 2} {
			p := NewPool(workers)
			defer p.Close()
			cases := []struct {
				name   string
				kernel func(matrix int)
			}{
				{"MatVec", func(m int) {
					p.MatVecFormat(f, all[m*passBytes:][:rows*size], rows,
						benchCols, x, y[:rows])
				}},
				{"RandomDot", func(m int) {
					p.Run(rows, 64, func(lo, hi int) {
						for i := lo; i < hi; i++ {
							y[i] = DotFormat(f, scattered(m, i), x, scattered(m, min(i+1, hi-1)))
						}
					})
				}},
				{"RandomAxpy", func(m int) {
					p.Run(benchCols, benchCols/workers, func(lo, hi int) {
						first, last := f.Size(lo), f.Size(hi)
						for i := range rows {
							AxpyFormat(f, 1e-9, scattered(m, i)[first:last], x[lo:hi],
								scattered(m, i+1)[first:last])
						}
					})
				}},
			}
			for _, c := range cases {
				b.Run(fmt.Sprintf("%s/%s/workers=%d", c.name, f, workers), func(b *testing.B) {
					if rate := against(b, p, w, c.kernel); rate > 0 {
						b.ReportMetric(rate*benchCols/float64(size), "Gweights/s")
					}
				})
			}
		}
	}
}

// BenchmarkStreamRead is the roofline by itself, over 256 MiB.
func BenchmarkStreamRead(b *testing.B) {
	all := bytesOf(weights())
	b.SetBytes(int64(len(all)))
	for b.Loop() {
		StreamRead(all)
	}
}

// BenchmarkCached runs the kernels on operands that stay in the first-level cache; bytes are those
// of the weights.
func BenchmarkCached(b *testing.B) {
	for _, n := range []int{128, 1024, 4096} {
		r := rng.Stream(rng.DefaultSeed, "cached")
		w, x, y := halves(r, n), floats(r, n), floats(r, n)
		v := wide(w)
		for _, k := range implementations() {
			for _, c := range []struct {
				name  string
				bytes int
				f     func()
			}{
				{"Dot", 2, func() { y[0] = k.dot(w, x) }},
				{"Axpy", 2, func() { k.axpy(1e-9, w, y) }},
				{"DotF32", 4, func() { y[0] = k.dotF32(v, x) }},
				{"AxpyF32", 4, func() { k.axpyF32(1e-9, v, y) }},
				{"F16SliceToF32", 2, func() { k.widen(v, w) }},
			} {
				b.Run(fmt.Sprintf("%s/%d/%s", c.name, n, k.name), func(b *testing.B) {
					b.SetBytes(int64(n * c.bytes))
					for b.Loop() {
						c.f()
					}
				})
			}
		}
		b.Run(fmt.Sprintf("Dot/%d/ref", n), func(b *testing.B) {
			b.SetBytes(int64(n * halfBytes))
			for b.Loop() {
				y[0] = ref.Dot(w, x)
			}
		})
	}
}

// BenchmarkPoolRun is the cost of a Run that does nothing: back to back, when workers are awake,
// and after a pause in which they fell asleep.
func BenchmarkPoolRun(b *testing.B) {
	for _, pause := range []time.Duration{0, 200 * time.Microsecond} {
		b.Run(fmt.Sprintf("pause=%s", pause), func(b *testing.B) {
			p := NewPool(2)
			defer p.Close()
			nothing := func(lo, hi int) {}
			var spent time.Duration
			b.ReportAllocs()
			for b.Loop() {
				time.Sleep(pause)
				start := time.Now()
				p.Run(2, 1, nothing)
				spent += time.Since(start)
			}
			b.ReportMetric(float64(spent.Nanoseconds())/float64(b.N), "ns/op")
		})
	}
}

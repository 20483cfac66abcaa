package gpu

import (
	"fmt"
	"slices"

	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/kernels/cuda"
	"github.com/windrow-sim/windrow/kernels/ref"
)

// shapes are the sizes of calls.
type shapes struct {
	dim       int
	matrices  []int        // rows of mat-vecs over dim columns
	layers    []layerShape // feed-forward parts
	heads     int          // of keys and values, headDim each
	headDim   int
	positions []int
	transfers []int64 // bytes
	records   []int   // of a scatter
	moves     []int   // rows
}

// layerShape is a feed-forward layer: its units, the rows of each, and how many of them are active.
type layerShape struct {
	units, kinds int
	active       []int
}

// full are the calls on sizes of OPT-6.7B (two rows for each unit) and Mistral-7B (three; its keys
// have 8 heads, its head 32,000 rows).
func full(l *lab) []call {
	return l.calls(&shapes{
		dim: 4096, matrices: []int{1024, 4096, 16384, 32000, 50272},
		layers: []layerShape{{16384, 2, []int{492, 1638, 4915}},
			{14336, 3, []int{430, 1434, 4301}}},
		heads: 32, headDim: 128, positions: []int{128, 512, 2048},
		transfers: []int64{64 << 10, 512 << 10, 4 << 20, 32 << 20}, records: []int{16, 64, 256,
			1024}, moves: []int{32, 256, 2048},
	})
}

// small are the same calls for a device that computes slowly and tells no times.
func small(l *lab) []call {
	return l.calls(&shapes{
		dim: 64, matrices: []int{16, 64}, layers: []layerShape{{256, 2, []int{16}},
			{256, 3, []int{16}}}, heads: 2, headDim: 32, positions: []int{8, 130},
		transfers: []int64{4096, 65536}, records: []int{2, 8}, moves: []int{4, 8},
	})
}

func (l *lab) calls(s *shapes) (list []call) {
	for _, part := range []func(*shapes) []call{l.transfers, l.scatters, l.moves, l.matrices,
		l.rows, l.attention, l.smallest} {
		list = append(list, part(s)...)
	}
	return list
}

// transfers are copies from pinned memory.
func (l *lab) transfers(s *shapes) (list []call) {
	host := l.pinned(slices.Max(s.transfers))
	for _, size := range s.transfers {
		if !l.fits(size) {
			continue
		}
		list = append(list, call{of: "transfer", shape: units.Bytes(size).String(),
			bytes: units.Bytes(size), once: func() error {
				return l.ToDevice(l.next(size).Ptr, host[:size], l.stream)
			}})
	}
	return list
}

func (l *lab) pinned(size int64) (b []byte) {
	if l.err == nil {
		b, l.err = l.HostAlloc(size, false)
	}
	return b
}

// scatters take the records of both kinds of layers from mapped pinned memory, where they lie one
// after the other, to places far apart.
func (l *lab) scatters(s *shapes) (list []call) {
	row, most := ref.F16.Size(s.dim), slices.Max(s.records)
	for _, layer := range s.layers {
		record := layer.kinds * row
		if !l.fits(int64(layer.units) * int64(row)) {
			continue
		}
		buffer := l.pinned(int64(record * most))
		if l.err != nil {
			return nil
		}
		staging, err := l.Mapped(buffer)
		if l.err = err; err != nil {
			return nil
		}
		offsets := make([]uint64, most)
		for i := range offsets {
			offsets[i] = uint64(i * record)
		}
		where, places := put(l, offsets), put(l, spread(most, layer.units, 0))
		for _, n := range s.records {
			list = append(list, call{of: "scatter", shape: fmt.Sprintf("%d records of %v", n,
				units.Bytes(record)), bytes: units.Bytes(n * record), once: func() error {
				a := l.buffers(&layer, row)
				return l.Scatter(l.stream, &a, staging, where, places, n)
			}})
		}
	}
	return list
}

// buffers are row buffers in the pool.
func (l *lab) buffers(layer *layerShape, row int) cuda.RowBuffers {
	a := cuda.RowBuffers{Places: layer.units, Size: row}
	size := int64(layer.units) * int64(row)
	a.Up, a.Down = l.next(size), l.next(size)
	if layer.kinds == 3 {
		a.Gate = l.next(size)
	}
	return a
}

// spread are n of the numbers below of, ascending, evenly apart; variants differ.
func spread(n, of, variant int) []int32 {
	list := make([]int32, n)
	for i := range list {
		list[i] = int32(i*of/n + variant%max(of/n, 1))
	}
	return list
}

// moves close gaps: the last rows go to the first places.
func (l *lab) moves(s *shapes) (list []call) {
	layer, row := s.layers[0], ref.F16.Size(s.dim)
	if !l.fits(int64(layer.units) * int64(row)) {
		return nil
	}
	for _, n := range s.moves {
		from, to := make([]int32, n), make([]int32, n)
		for i := range n {
			from[i], to[i] = int32(layer.units-1-i), int32(i*layer.units/(2*n))
		}
		source, target := put(l, from), put(l, to)
		bytes := units.Bytes(n * layer.kinds * row)
		list = append(list, call{of: "move", shape: fmt.Sprintf("%d units of %v", n,
			units.Bytes(layer.kinds*row)), bytes: bytes, once: func() error {
			a := l.buffers(&layer, row)
			return l.Move(l.stream, &a, source, target, n)
		}})
	}
	return list
}

// formats are those that device models have rates for.
func formats() []ref.Format { return []ref.Format{ref.F16, ref.BF16, ref.F32, ref.Q8} }

// nameOf is the name of a format in device models; f16 has none, its rates are the device's own.
func nameOf(f ref.Format) string {
	switch f {
	case ref.BF16:
		return "bf16"
	case ref.F32:
		return "f32"
	case ref.Q8:
		return "q8"
	}
	return ""
}

// matrices are mat-vecs: all sizes in f16, of other formats one.
func (l *lab) matrices(s *shapes) (list []call) {
	x, y := l.room(int64(4*s.dim)), l.room(int64(4*slices.Max(s.matrices)))
	if l.err == nil {
		l.err = l.Fill(x.Ptr, fill, x.Size, l.stream)
	}
	for _, f := range formats() {
		for _, rows := range s.matrices {
			size := int64(rows) * int64(f.Size(s.dim))
			if !l.fits(size) || f != ref.F16 && rows != s.dim {
				continue
			}
			list = append(list, call{of: "dense", precision: nameOf(f),
				shape: fmt.Sprintf("%d x %d %v", rows, s.dim, f), bytes: units.Bytes(size),
				once: func() error {
					return l.MatVec(l.stream, &cuda.MatVec{Format: f, W: l.next(size), X: x, Y: y,
						Rows: rows, Cols: s.dim, Tokens: 1})
				}})
		}
	}
	return list
}

// rows are feed-forward parts over some of a layer's rows, which are computed whatever their
// values, as the engine does it with the rows of a mask.
func (l *lab) rows(s *shapes) (list []call) {
	for _, layer := range s.layers {
		x, act, out := l.room(int64(4*s.dim)), l.room(int64(4*layer.units)), l.room(int64(4*s.dim))
		scratch := l.room(cuda.FFNScratch(layer.units, s.dim, 1))
		if l.err == nil {
			l.err = l.Fill(x.Ptr, fill, x.Size, l.stream)
		}
		for _, f := range formats() {
			for i, n := range layer.active {
				row := f.Size(s.dim)
				if !l.fits(int64(layer.units)*int64(row)) || f != ref.F16 &&
					(i != len(layer.active)/2 || layer.kinds != s.layers[0].kinds) {
					continue
				}
				// Several lists, so that calls do not meet each other's rows in a cache.
				const variants = 4
				var lists [variants]cuda.Mem
				for v := range lists {
					lists[v] = put(l, spread(n, layer.units, v))
				}
				turn := 0
				bytes := units.Bytes(n * layer.kinds * row)
				list = append(list, call{of: "rows", precision: nameOf(f),
					shape: fmt.Sprintf("%d of %d units, %d rows of %d %v", n, layer.units,
						layer.kinds, s.dim, f), bytes: bytes, once: func() error {
						b := l.buffers(&layer, row)
						turn++
						units := lists[turn%variants]
						return l.FFN(l.stream, &cuda.FFN{
							Format: f, Gate: b.Gate, Up: b.Up, Down: b.Down, Slots: units,
							Units: units,
							X:     x, Act: act, Out: out, Scratch: scratch,
							Rows: n, Dim: s.dim, Total: layer.units, Tokens: 1, Every: true,
						})
					}})
			}
		}
	}
	return list
}

// attention reads keys and values in float32, as the engine keeps them.
func (l *lab) attention(s *shapes) (list []call) {
	longest := slices.Max(s.positions)
	q, out := l.room(int64(4*s.heads*s.headDim)), l.room(int64(4*s.heads*s.headDim))
	scratch, seqs := l.room(cuda.AttentionScratch(s.heads, s.headDim, 1, longest)),
		put(l, []int32{0})
	if l.err == nil {
		l.err = l.Fill(q.Ptr, fill, q.Size, l.stream)
	}
	for _, n := range s.positions {
		size := int64(4 * s.heads * s.headDim * n)
		if !l.fits(2 * size) {
			continue
		}
		position := put(l, []int32{int32(n - 1)})
		list = append(list, call{of: "kv", shape: fmt.Sprintf("%d positions, %d heads of %d f32", n,
			s.heads, s.headDim), bytes: units.Bytes(2 * size), once: func() error {
			return l.Attention(l.stream, &cuda.Attention{
				Cache: cuda.Cache{Format: ref.F32, Keys: l.next(size), Vals: l.next(size),
					Sequences: 1, Context: n, KVHeads: s.heads, Dim: s.headDim},
				Q: q, Out: out, Seqs: seqs, Positions: position, Scratch: scratch,
				Heads: s.heads, Tokens: 1, Longest: n, Scale: 1,
			})
		}})
	}
	return list
}

// smallest is a norm: on the device, asked for, and waited for.
func (l *lab) smallest(s *shapes) (list []call) {
	x, w := l.room(int64(4*s.dim)), l.room(int64(4*s.dim))
	for _, m := range []cuda.Mem{x, w} {
		if l.err == nil {
			l.err = l.Fill(m.Ptr, fill, m.Size, l.stream)
		}
	}
	once := func() error {
		return l.Norm(l.stream, &cuda.Norm{X: x, Y: x, W: w, Rows: 1, Dim: s.dim, Epsilon: 1e-5,
			RMS: true})
	}
	for _, c := range []call{{of: "kernel", side: onDevice}, {of: "launch", side: asking},
		{of: "sync", side: waiting}} {
		c.shape, c.once = fmt.Sprintf("norm of %d", s.dim), once
		list = append(list, c)
	}
	return list
}

package stats_test

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/windrow-sim/windrow/internal/mask"
	"github.com/windrow-sim/windrow/internal/rng"
	"github.com/windrow-sim/windrow/traces"
	"github.com/windrow-sim/windrow/traces/batch"
	"github.com/windrow-sim/windrow/traces/stats"
	"github.com/windrow-sim/windrow/traces/synth"
)

func streamOf(t testing.TB, src traces.Source) *batch.Stream {
	t.Helper()
	s, err := batch.NewStream(src)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func unionsOf(t testing.TB, src traces.Source, opt stats.UnionOptions) *stats.Unions {
	t.Helper()
	u, err := stats.ComputeUnions(streamOf(t, src), opt)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// plainUnions counts for every step and every first lane how many masks of a batch each unit is in.
func plainUnions(t *testing.T, m *traces.Memory, size, lanes, layer int,
	predicted bool) (least [batch.MaxAtLeast]float64, dropped [batch.MaxAtLeast]float64) {
	t.Helper()
	l, err := streamOf(t, m).Lanes(lanes)
	if err != nil {
		t.Fatal(err)
	}
	order, batches, activations := l.Order(), 0, 0
	var token traces.Token
	for step := range l.Steps {
		for first := range l.Count {
			counts := make([]int, m.Head.Units)
			for _, shift := range order[:size] {
				if err := l.Read((first+shift)%l.Count, step, &token); err != nil {
					t.Fatal(err)
				}
				mask := token.Active[layer]
				if predicted {
					mask = token.Predicted[layer]
				}
				for u := range counts {
					if has(mask, u) {
						counts[u]++
						activations++
					}
				}
			}
			batches++
			for i := range least {
				for _, n := range counts {
					if n > i {
						least[i]++
					} else {
						dropped[i] += float64(n)
					}
				}
			}
		}
	}
	for i := range least {
		least[i] /= float64(batches)
		if activations > 0 {
			dropped[i] /= float64(activations)
		}
	}
	return least, dropped
}

func TestUnionsEqualPlain(t *testing.T) {
	for seed, lengths := range [][]int{{40}, {9, 9, 9, 9}, {5, 1, 17, 30}, {6, 5, 6, 5, 4, 7, 6, 6,
		5}} {
		m := random(uint64(seed), 1, 97, lengths...)
		m.Head.UnitBytes = 10
		for _, predicted := range []bool{false, true} {
			sizes := []int{1, 2, 3, 5, 8, 11}
			u := unionsOf(t, m, stats.UnionOptions{Sizes: sizes, Predicted: predicted})
			for i, b := range u.Batches {
				least, dropped := plainUnions(t, m, sizes[i], u.Lanes, 0, predicted)
				for j, k := range b.AtLeast {
					want := stats.Kept{M: j + 1, Units: least[j], Share: least[j] / 97,
						BytesPerToken: least[j] * 10 / float64(b.Size), Dropped: dropped[j]}
					if d := cmp.Diff(want, k, approx); d != "" {
						t.Errorf("lengths %v, batches of %d, predicted %v (-plain +pass):\n%s",
							lengths, b.Size, predicted, d)
					}
				}
				if !(math.Abs(b.LayerUnits[0]-b.Union().Units) < 1e-9) {
					t.Errorf("the only layer needs %g units, the mean is %g", b.LayerUnits[0],
						b.Union().Units)
				}
			}
		}
	}
}

// What must hold of any trace: unions grow with the batch, are no larger than all masks together or
// than the layer, and units kept and activations dropped go opposite ways with M.
func TestUnionProperties(t *testing.T) {
	r := rng.Stream(9, "stats/unions")
	for range 20 {
		var lengths []int
		for range 1 + r.IntN(5) {
			lengths = append(lengths, 1+r.IntN(60))
		}
		m := random(r.Uint64(), 2, 1+r.IntN(200), append(lengths, 64)...)
		u := unionsOf(t, m, stats.UnionOptions{})
		if len(u.Batches) != stats.MaxBatch || u.Lanes != stats.MaxBatch ||
			u.Tokens != u.Lanes*u.Steps {
			t.Fatalf("%d batches of %d lanes, %d tokens", len(u.Batches), u.Lanes, u.Tokens)
		}
		active := u.Batches[0].Union().Units
		before := 0.0
		for i, b := range u.Batches {
			union := b.Union()
			if b.Size != i+1 || union.Units < before ||
				union.Units > math.Min(float64(b.Size)*active, float64(u.Units))*(1+1e-12) {
				t.Errorf("batches of %d need %g units, of %d %g; one needs %g of %d", b.Size,
					union.Units, b.Size-1, before, active, u.Units)
			}
			if union.Dropped != 0 || union.M != 1 {
				t.Errorf("batches of %d: the union drops %g", b.Size, union.Dropped)
			}
			before = union.Units
			for j, k := range b.AtLeast[1:] {
				if last := b.AtLeast[j]; k.Units > last.Units || k.Dropped < last.Dropped ||
					k.Dropped > 1 {
					t.Errorf("batches of %d: %+v after %+v", b.Size, k, last)
				}
				if k.M > b.Size && (k.Units != 0 || k.Dropped != 1) {
					t.Errorf("batches of %d keep %g units of %d sequences, and drop %g", b.Size,
						k.Units, k.M, k.Dropped)
				}
			}
		}
	}
}

// union(1) is the active share, and a batch in one pass is what its own steps need: exactly, where
// lanes come out even.
func TestUnionsEqualTheirOwnSteps(t *testing.T) {
	m := random(11, 3, 130, 34, 34, 34, 34) // each begins with two tokens of a prompt
	u := unionsOf(t, m, stats.UnionOptions{Sizes: []int{1, 2, 4, 8, 16, 32}})
	for _, b := range u.Batches {
		src, err := streamOf(t, m).Union(b.Size, 1)
		if err != nil {
			t.Fatal(err)
		}
		s := compute(t, src, stats.Options{})
		if got := s.Total.Active.Mean; math.Abs(got-b.Union().Share) > 1e-12 {
			t.Errorf("batches of %d need %g in one pass and %g step by step", b.Size,
				b.Union().Share, got)
		}
		for l := range s.PerLayer {
			if got := s.PerLayer[l].Active.Mean * 130; math.Abs(got-b.LayerUnits[l]) > 1e-9 {
				t.Errorf("batches of %d, layer %d: %g and %g units", b.Size, l, b.LayerUnits[l],
					got)
			}
		}
	}
}

// Two sequences of two tokens, units 0…3: {0,1} {1} | {1,2} {3}.
func TestUnionsHandCounted(t *testing.T) {
	m := &traces.Memory{Head: traces.Header{Layers: 1, Units: 4, UnitBytes: 100}}
	for i, word := range []uint64{0b0011, 0b0010, 0b0110, 0b1000} {
		m.List = append(m.List, traces.Token{Seq: uint32(i / 2), Pos: uint32(i % 2),
			Phase: traces.Decode, Active: []mask.Mask{{word}}})
	}
	u := unionsOf(t, m, stats.UnionOptions{Sizes: []int{1, 2}})
	want := []stats.Kept{
		{M: 1, Units: 2.5, Share: 0.625, BytesPerToken: 125},
		{M: 2, Units: 0.5, Share: 0.125, BytesPerToken: 25, Dropped: 4.0 / 6},
	}
	if d := cmp.Diff(want, u.Batches[1].AtLeast[:2], approx); d != "" ||
		u.Formed != "2 sequences of 2 generated tokens" {
		t.Errorf("%s (-want +got):\n%s", u.Formed, d)
	}
	if one := u.Batches[0].Union(); one.Units != 1.5 || one.BytesPerToken != 150 {
		t.Errorf("batches of one: %+v", one)
	}
}

func TestUnionsAreDeterministic(t *testing.T) {
	m := random(12, 5, 100, 80, 70)
	var want []byte
	for _, workers := range []int{1, 0, 2, 3, 50} {
		got, err := json.Marshal(unionsOf(t, m, stats.UnionOptions{Sizes: []int{1, 4, 7, 20},
			Group: true, Workers: workers}))
		if err != nil {
			t.Fatal(err)
		}
		if want == nil {
			want = got
		}
		if string(got) != string(want) {
			t.Errorf("%d workers give another result", workers)
		}
	}
}

// clustered makes sequences of two kinds, in random order, whose masks have nothing in common.
func clustered(perKind, tokens int) *traces.Memory {
	r := rng.Stream(13, "stats/clusters")
	kinds := slices.Concat(slices.Repeat([]int{0}, perKind), slices.Repeat([]int{1}, perKind))
	r.Shuffle(len(kinds), func(i, j int) { kinds[i], kinds[j] = kinds[j], kinds[i] })
	m := &traces.Memory{Head: traces.Header{Layers: 2, Units: 128}}
	for seq, kind := range kinds {
		for pos := range tokens {
			t := traces.Token{Seq: uint32(seq), Pos: uint32(pos), Phase: traces.Decode}
			for range 2 {
				mask := make([]uint64, 2)
				mask[kind] = r.Uint64() & 0xffff_ffff // half of the kind's 64 units at most
				t.Active = append(t.Active, mask)
			}
			m.List = append(m.List, t)
		}
	}
	return m
}

func TestGroupingFindsKinds(t *testing.T) {
	u := unionsOf(t, clustered(8, 12), stats.UnionOptions{Sizes: []int{1, 2, 4, 8, 16},
		Group: true})
	var sizes []int
	for _, g := range u.Groups {
		sizes = append(sizes, g.Size)
		// A batch of one kind needs 32 units of 128 at most.
		if g.Known > 0.25 || g.Before > 0.25 || !(g.Known < g.InOrder) || g.Batches != 16/g.Size {
			t.Errorf("%+v", g)
		}
	}
	if !slices.Equal(sizes, []int{2, 4, 8}) { // 1 and 16 leave no choice
		t.Errorf("groups of %v", sizes)
	}
	if last := u.Groups[2]; !(last.InOrder > 0.4) {
		t.Errorf("eight of two kinds in order need %g, both kinds have half", last.InOrder)
	}
}

// Where all masks are one, every way of grouping needs that one.
func TestGroupingOfEqualsGainsNothing(t *testing.T) {
	m := random(14, 1, 64, 18)
	for i := range m.List {
		m.List[i].Active[0][0] = 0x00ff00ff00ff00ff
	}
	u := unionsOf(t, m, stats.UnionOptions{Sizes: []int{2, 3, 8}, Group: true})
	for _, g := range u.Groups {
		if g.InOrder != 0.5 || g.Known != 0.5 || g.Before != 0.5 {
			t.Errorf("%+v", g)
		}
	}
}

func TestChunksEqualPlain(t *testing.T) {
	m := random(15, 2, 97, 300, 7, 64, 1)
	m.Head.UnitBytes = 10
	for _, predicted := range []bool{false, true} {
		chunks, err := stats.ComputeChunks(m, predicted)
		if err != nil {
			t.Fatal(err)
		}
		if len(chunks) != 9 || chunks[8].Tokens != stats.MaxChunk {
			t.Fatalf("%+v", chunks)
		}
		for _, c := range chunks {
			sum, n := 0, 0
			for from := 0; from+c.Tokens <= len(m.List); {
				if m.List[from+c.Tokens-1].Seq != m.List[from].Seq { // the rest of a sequence
					for seq := m.List[from].Seq; m.List[from].Seq == seq; {
						from++
					}
					continue
				}
				for l := range 2 {
					var masks []mask.Mask
					for _, token := range m.List[from : from+c.Tokens] {
						if predicted {
							masks = append(masks, token.Predicted[l])
						} else {
							masks = append(masks, token.Active[l])
						}
					}
					sum += count(union(masks, nil))
				}
				n, from = n+1, from+c.Tokens
			}
			units := float64(sum) / float64(2*n)
			want := stats.Chunk{Tokens: c.Tokens, Chunks: n, Units: units, Share: units / 97,
				BytesPerToken: units * 2 * 10 / float64(c.Tokens)}
			if d := cmp.Diff(want, c, approx); d != "" {
				t.Errorf("predicted %v (-plain +pass):\n%s", predicted, d)
			}
		}
	}
}

// Where chunks come out even, a longer one needs no less, and no more than two of half its length.
func TestChunksAreMonotone(t *testing.T) {
	chunks, err := stats.ComputeChunks(random(16, 2, 300, 512, 256), false)
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range chunks[1:] {
		if half := chunks[i]; c.Units < half.Units || c.Units > 2*half.Units ||
			c.Chunks*2 != half.Chunks {
			t.Errorf("%+v after %+v", c, half)
		}
	}
}

func TestUnionErrors(t *testing.T) {
	m := random(17, 2, 70, 10)
	bare := random(17, 2, 70, 10)
	bare.Head.HasPredicted = false
	empty := &traces.Memory{Head: m.Head}
	for _, c := range []struct {
		want string
		src  traces.Source
		opt  stats.UnionOptions
	}{
		{"must ascend", m, stats.UnionOptions{Sizes: []int{2, 2}}},
		{"must ascend", m, stats.UnionOptions{Sizes: []int{0, 2}}},
		{"must ascend", m, stats.UnionOptions{Sizes: []int{}}},
		{"9 lanes of 8 tokens", m, stats.UnionOptions{Sizes: []int{9}}},
		{"less than two steps of 5", m, stats.UnionOptions{Sizes: []int{5}, Group: true}},
		{"the trace has none", bare, stats.UnionOptions{Predicted: true}},
		{"nothing to unite", empty, stats.UnionOptions{}},
	} {
		if _, err := stats.ComputeUnions(streamOf(t, c.src), c.opt); err == nil ||
			!strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "stats: ") {
			t.Errorf("%+v: error %v, want %q", c.opt, err, c.want)
		}
	}
	if _, err := stats.ComputeChunks(bare, true); err == nil {
		t.Error("chunks of predicted masks that are not there: no error")
	}
	bare.List[2].Active[1][1] |= 1 << 6
	if _, err := stats.ComputeChunks(bare, false); err == nil || !strings.Contains(err.Error(),
		"token 2: active mask of layer 1") {
		t.Errorf("chunks of a stray bit: error %v", err)
	}
}

// BenchmarkUnions measures all batches of 1 to 64 on 256 tokens of the OPT-6.7B shape, 32 layers of
// 16,384 units, with one worker.
func BenchmarkUnions(b *testing.B) {
	m, err := synth.Collect(b.Context(), synth.Options{Like: "opt-6.7b", Tokens: 256, Seed: 42})
	if err != nil {
		b.Fatal(err)
	}
	s := streamOf(b, m)
	for b.Loop() {
		if _, err := stats.ComputeUnions(s, stats.UnionOptions{Workers: 1}); err != nil {
			b.Fatal(err)
		}
	}
}

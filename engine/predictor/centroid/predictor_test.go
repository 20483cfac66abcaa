package centroid

import (
	"errors"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/engine/checkpoint"
	"github.com/windrow-sim/windrow/internal/mask"
	"github.com/windrow-sim/windrow/internal/output/outputtest"
)

// small is a quickly trained predictor.
func small(t *testing.T) (*Predictor, *memory) {
	t.Helper()
	s := newWorld(gated, 6, 0.02).tokens(200)
	return trained(t, s, TrainOptions{Hidden: []int{16}, Epochs: 2, Rate: 0.01, Model: "model 1",
		Trace: "trace 1", Feature: "residual"}), s
}

func layerMasksOf(s Shape) []mask.Mask {
	masks := make([]mask.Mask, s.Layers)
	for l := 1; l < s.Layers; l++ {
		masks[l] = mask.New(s.Units)
	}
	return masks
}

// TestPredictIsNetworkThenActive takes Predict apart, in float64 and with the checked Active; with
// and without threads.
func TestPredictIsNetworkThenActive(t *testing.T) {
	p, s := small(t)
	plain, err := p.NewRunner(25, nil)
	if err != nil {
		t.Fatal(err)
	}
	threaded, err := p.NewRunner(25, newTestPool(t, 3))
	if err != nil {
		t.Fatal(err)
	}
	got, again := layerMasksOf(gated), layerMasksOf(gated)
	want := mask.New(gated.Units)
	for i := range 40 {
		filled, err := plain.Predict(s.features[i], got)
		if err != nil {
			t.Fatal(err)
		}
		if other, err := threaded.Predict(s.features[i], again); err != nil || other != filled {
			t.Fatalf("with threads %+v (%v), without %+v", other, err, filled)
		}
		ids := plainIDs(p, s.features[i])
		var sum Filled
		for layer := 1; layer < gated.Layers; layer++ {
			f, err := p.Codebook().Active(layer, ids[2*(layer-1):2*layer], 25, want)
			if err != nil {
				t.Fatal(err)
			}
			sum = Filled{sum.Agreed + f.Agreed, sum.Padded + f.Padded, sum.Truncated + f.Truncated}
			if !slices.Equal(got[layer], want) || !slices.Equal(again[layer], want) ||
				want.Count() != 25 {
				t.Fatalf("token %d, layer %d: %v, want %v", i, layer, got[layer].AppendUnits(nil),
					want.AppendUnits(nil))
			}
		}
		if sum != filled || sum.Agreed+sum.Padded-sum.Truncated != 25*3 {
			t.Fatalf("counts %+v, want %+v", filled, sum)
		}
	}
}

// plainIDs is the network in float64.
func plainIDs(p *Predictor, feature []float32) (ids []int) {
	x := make([]float64, len(feature))
	for j, v := range feature {
		x[j] = float64((v - p.mean[j]) * p.scale[j])
	}
	for l, d := range p.layers {
		y := make([]float64, d.out)
		for r := range y {
			y[r] = float64(d.b[r])
			for j, v := range x {
				y[r] += v * halfValue(d.w[r*d.in+j])
			}
			if l < len(p.layers)-1 {
				y[r] = max(y[r], 0)
			}
		}
		x = y
	}
	for _, v := range p.book.vocabs {
		best := 0
		for i := range v.Count() {
			if x[i] > x[best] {
				best = i
			}
		}
		ids, x = append(ids, best), x[v.Count():]
	}
	return ids
}

// halfValue is a finite float16 by its definition.
func halfValue(h uint16) float64 {
	sign, exp, frac := 1.0, int(h>>10&31), float64(h&1023)
	if h>>15 != 0 {
		sign = -1
	}
	if exp == 0 {
		return sign * math.Ldexp(frac, -24)
	}
	return sign * math.Ldexp(1024+frac, exp-25)
}

func TestPredictSkipsDenseLayers(t *testing.T) {
	p, s := small(t)
	r, err := p.NewRunner(10, nil)
	if err != nil {
		t.Fatal(err)
	}
	masks := layerMasksOf(gated)
	masks[0], masks[2] = mask.Mask{7}, nil
	f, err := r.Predict(s.features[0], masks)
	if err != nil || masks[2] != nil || masks[0][0] != 7 || masks[1].Count() != 10 ||
		masks[3].Count() != 10 || f.Agreed+f.Padded-f.Truncated != 20 {
		t.Errorf("%v %+v: masks %v", err, f, masks)
	}
}

func TestPredictDoesNotAllocate(t *testing.T) {
	p, s := small(t)
	r, err := p.NewRunner(20, nil)
	if err != nil {
		t.Fatal(err)
	}
	masks := layerMasksOf(gated)
	if n := testing.AllocsPerRun(50, func() { _, err = r.Predict(s.features[0], masks) }); n != 0 ||
		err != nil {
		t.Errorf("%v allocations a prediction (%v)", n, err)
	}
}

func TestPredictRefusals(t *testing.T) {
	p, s := small(t)
	for _, k := range []int{-1, gated.Units + 1} {
		if _, err := p.NewRunner(k, nil); !errors.Is(err, ErrOptions) {
			t.Errorf("K_max %d: %v", k, err)
		}
	}
	r, err := p.NewRunner(gated.Units, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Predict(s.features[0][:3], layerMasksOf(gated)); !errors.Is(err, ErrMismatch) {
		t.Error(err)
	}
	if _, err := r.Predict(s.features[0], layerMasksOf(gated)[:2]); !errors.Is(err, ErrMismatch) {
		t.Error(err)
	}
	masks := layerMasksOf(gated)
	masks[1] = masks[1][:1]
	if _, err := r.Predict(s.features[0], masks); !errors.Is(err, ErrMismatch) {
		t.Error(err)
	}
	dst := mask.New(gated.Units)
	for _, c := range []struct {
		layer int
		ids   []int
		kMax  int
		dst   mask.Mask
	}{{0, []int{0, 0}, 1, dst}, {4, []int{0, 0}, 1, dst}, {1, []int{0}, 1, dst}, {1, []int{0, 99},
		1, dst}, {1, []int{-1, 0}, 1, dst}, {1, []int{0, 0}, 71, dst}, {1, []int{0, 0}, 1,
		dst[:1]}} {
		if _, err := p.Codebook().Active(c.layer, c.ids, c.kMax, c.dst); !errors.Is(err,
			ErrOptions) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if err := p.Fits("model 1", gated); err != nil {
		t.Error(err)
	}
	if err := p.Fits("model 2", gated); !errors.Is(err, ErrMismatch) {
		t.Error(err)
	}
	if err := p.Fits("model 1", Shape{Layers: 3, Projections: 2, Units: 70, Width: 12}); !errors.Is(
		err, ErrMismatch) {
		t.Error(err)
	}
}

// TestCostsByHand counts a predictor of known shape: 12 → 16 → 36 logits in 6 heads of 6 centroids,
// 2 words a mask, 3 layers of 70 units.
func TestCostsByHand(t *testing.T) {
	p, _ := small(t)
	for _, v := range p.book.vocabs {
		if v.Count() != 6 {
			t.Fatalf("%d centroids, the test counts on 6", v.Count())
		}
	}
	if got, want := p.Parameters(), int64(12*16+16+16*36+36); got != want {
		t.Errorf("%d parameters, want %d", got, want)
	}
	if got, want := p.FLOPs(), int64(2*12+2*(12*16+16*36)); got != want {
		t.Errorf("%d operations, want %d", got, want)
	}
	if got, want := int(p.Bytes()),
		4*2*12+2*(12*16+16*36)+4*(16+36)+6*6*(2*8+4)+3*70*8; got != want {
		t.Errorf("%d bytes, want %d", got, want)
	}
}

func TestSaveAndLoad(t *testing.T) {
	p, s := small(t)
	dir := t.TempDir()
	path, second := filepath.Join(dir, "p.safetensors"), filepath.Join(dir, "q.safetensors")
	if err := p.Save(path); err != nil {
		t.Fatal(err)
	}
	q, err := Load(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if q.Facts() != p.Facts() || q.Facts().Model != "model 1" || q.Facts().Feature != "residual" ||
		q.Facts().Training.Tokens != 160 || q.Codebook().Shape() != gated {
		t.Errorf("facts %+v, shape %+v", q.Facts(), q.Codebook().Shape())
	}
	if q.book.made != p.book.made || q.book.vocabs[0].metric != p.book.vocabs[0].metric ||
		!slices.Equal(q.book.Hottest(3), p.book.Hottest(3)) || q.Bytes() != p.Bytes() {
		t.Error("the codebook differs")
	}
	a, err := p.NewRunner(20, nil)
	if err != nil {
		t.Fatal(err)
	}
	b, err := q.NewRunner(20, nil)
	if err != nil {
		t.Fatal(err)
	}
	one, two := layerMasksOf(gated), layerMasksOf(gated)
	for _, x := range s.features {
		f, err1 := a.Predict(x, one)
		g, err2 := b.Predict(x, two)
		if f != g || err1 != nil || err2 != nil || !slices.EqualFunc(one, two, slices.Equal) {
			t.Fatalf("%+v and %+v (%v, %v)", f, g, err1, err2)
		}
	}
	if err := q.Save(second); err != nil {
		t.Fatal(err)
	}
	x, err1 := os.ReadFile(path)
	y, err2 := os.ReadFile(second)
	if string(x) != string(y) || err1 != nil || err2 != nil {
		t.Error("saving what was loaded gives other bytes", err1, err2)
	}
}

// TestSaveIsAtomic fills the disk: nothing is left, and an older file stays.
func TestSaveIsAtomic(t *testing.T) {
	p, _ := small(t)
	path := filepath.Join(t.TempDir(), "p.safetensors")
	if err := os.WriteFile(path, []byte("before"), 0o666); err != nil {
		t.Fatal(err)
	}
	full := errors.New("no space left")
	outputtest.Use(t, &outputtest.Full{Room: 3000, Err: full})
	err := p.Save(path)
	if !errors.Is(err, full) {
		t.Errorf("got %v", err)
	}
	text, err := os.ReadFile(path)
	entries, _ := os.ReadDir(filepath.Dir(path))
	if string(text) != "before" || len(entries) != 1 {
		t.Errorf("%q (%v), %d files", text, err, len(entries))
	}
}

// rewrite copies a predictor's file with changes.
func rewrite(t *testing.T, from, to string, meta func(map[string]string),
	change func(info *checkpoint.TensorInfo, data []byte) []byte, extra ...checkpoint.TensorInfo) {
	t.Helper()
	f, err := checkpoint.Open(t.Context(), from)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var infos []checkpoint.TensorInfo
	var contents [][]byte
	for _, info := range append(f.Tensors(), extra...) {
		data := make([]byte, info.Size)
		if _, ok := f.Tensor(info.Name); ok {
			if err := f.ReadTensor(info.Name, data); err != nil {
				t.Fatal(err)
			}
		}
		if data = change(&info, data); data != nil {
			infos, contents = append(infos, info), append(contents, data)
		}
	}
	m := maps.Clone(f.Metadata())
	meta(m)
	w, err := checkpoint.NewWriter(to, infos, m, checkpoint.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	for i, info := range infos {
		if err := w.Begin(info.Name); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(contents[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Commit(); err != nil {
		t.Fatal(err)
	}
}

func TestLoadRefusals(t *testing.T) {
	p, _ := small(t)
	good := filepath.Join(t.TempDir(), "good.safetensors")
	if err := p.Save(good); err != nil {
		t.Fatal(err)
	}
	set := func(key, value string) func(map[string]string) {
		return func(m map[string]string) { m[key] = value }
	}
	// edit changes one tensor; nil leaves it out.
	type edit = func(info *checkpoint.TensorInfo, data []byte) []byte
	tensor := func(name string, f edit) edit {
		return func(info *checkpoint.TensorInfo, data []byte) []byte {
			if info.Name == name {
				return f(info, data)
			}
			return data
		}
	}
	bytesAt := func(at int, v ...byte) edit {
		return func(_ *checkpoint.TensorInfo, data []byte) []byte {
			copy(data[at:], v)
			return data
		}
	}
	same := func(_ *checkpoint.TensorInfo, data []byte) []byte { return data }
	keep := func(map[string]string) {}
	for name, c := range map[string]struct {
		meta  func(map[string]string)
		edit  edit
		extra []checkpoint.TensorInfo
		want  error
		says  string
	}{
		"another kind": {set("format", "pt"), same, nil, ErrUnsupported,
			"not a centroid predictor"},
		"a later version": {set("version", "2"), same, nil, ErrUnsupported, "version"},
		"no shape":        {set("shape", ""), same, nil, ErrFormat, "shape"},
		"a huge shape": {
			set("shape", `{"layers":4,"projections":2,"units":1048577,"width":12}`), same, nil,
			ErrFormat, "units"},
		"another shape": {set("shape", `{"layers":4,"projections":2,"units":65,"width":12}`),
			same, nil, ErrFormat, "beyond unit"},
		"fewer layers": {set("shape", `{"layers":3,"projections":2,"units":70,"width":12}`),
			same, nil, ErrFormat, "tensor"},
		"an unknown field": {set("facts", `{"colour":1}`), same, nil, ErrFormat, "facts"},
		"a distance": {set("clustering", `{"distance":"x","miss_cost":1,"extra_cost":1}`),
			same, nil, ErrFormat, "distance"},
		"a cost": {set("clustering",
			`{"distance":"hamming","miss_cost":0,"extra_cost":1}`), same, nil, ErrFormat, "cost"},
		"hidden":    {set("hidden", "[17]"), same, nil, ErrFormat, "network.0.weight"},
		"no hidden": {set("hidden", "[]"), same, nil, ErrFormat, "network.0.weight"},
		"hidden 0":  {set("hidden", "[0]"), same, nil, ErrFormat, "hidden"},
		"a stray bit": {keep, tensor("layers.2.1.centroids", bytesAt(15, 0x80)), nil,
			ErrFormat, "beyond unit 69"},
		"an infinite bias": {keep, tensor("network.1.bias", bytesAt(0, 0, 0, 0x80, 0x7f)), nil,
			ErrFormat, "+Inf"},
		"an infinite weight": {keep, tensor("network.0.weight", bytesAt(2, 0, 0xfc)), nil,
			ErrFormat, "finite"},
		"a mean": {keep, tensor("input.mean", bytesAt(4, 1, 0, 0xc0, 0x7f)), nil,
			ErrFormat, "NaN"},
		"no hotness": {keep, tensor("layers.1.hotness", func(*checkpoint.TensorInfo,
			[]byte) []byte {
			return nil
		}), nil, ErrFormat, "hotness"},
		"no centroids": {keep, tensor("layers.1.0.centroids", func(*checkpoint.TensorInfo,
			[]byte) []byte {
			return nil
		}), nil, ErrFormat, "centroids"},
		"another type": {keep, tensor("layers.1.hotness", func(i *checkpoint.TensorInfo,
			data []byte) []byte {
			i.DType = checkpoint.F32
			return data
		}), nil,
			ErrFormat, "hotness"},
		"a tensor too many": {keep, same, []checkpoint.TensorInfo{
			{Name: "more", DType: checkpoint.U8, Shape: []int64{3}, Size: 3}}, ErrFormat,
			"tensors"},
	} {
		path := filepath.Join(t.TempDir(), "bad.safetensors")
		rewrite(t, good, path, c.meta, c.edit, c.extra...)
		if _, err := Load(t.Context(), path); !errors.Is(err, c.want) ||
			!strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: got %v, want %v that says %q", name, err, c.want, c.says)
		}
	}
}

// TestLoadOfCopies: a copy loads, one that lost its last byte and one that does not exist do not.
func TestLoadOfCopies(t *testing.T) {
	p, _ := small(t)
	dir := t.TempDir()
	good, path := filepath.Join(dir, "good.safetensors"), filepath.Join(dir, "same.safetensors")
	if err := p.Save(good); err != nil {
		t.Fatal(err)
	}
	rewrite(t, good, path, func(map[string]string) {}, func(_ *checkpoint.TensorInfo,
		data []byte) []byte {
		return data
	})
	if _, err := Load(t.Context(), path); err != nil {
		t.Errorf("without a change: %v", err)
	}
	if _, err := Load(t.Context(), filepath.Join(t.TempDir(), "none")); !errors.Is(err,
		fs.ErrNotExist) {
		t.Error(err)
	}
	data, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data[:len(data)-1], 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(t.Context(), path); !errors.Is(err, ErrFormat) {
		t.Error(err)
	}
}

// FuzzLoad changes bytes of a good file: it is refused, or the loaded predictor predicts.
func FuzzLoad(f *testing.F) {
	p := byHand()
	p.book.made = Clustering{Distance: "hamming", MissCost: 1, ExtraCost: 1}
	path := filepath.Join(f.TempDir(), "p.safetensors")
	if err := p.Save(path); err != nil {
		f.Fatal(err)
	}
	good, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(uint16(0), byte(0))
	f.Add(uint16(len(good)-1), byte(0xff))
	f.Add(uint16(200), byte(1))
	f.Fuzz(func(t *testing.T, at uint16, change byte) {
		data := slices.Clone(good)
		data[int(at)%len(data)] ^= change
		path := filepath.Join(t.TempDir(), "p.safetensors")
		if err := os.WriteFile(path, data, 0o666); err != nil {
			t.Fatal(err)
		}
		q, err := Load(t.Context(), path)
		if err != nil {
			if change == 0 {
				t.Error(err)
			}
			return
		}
		r, err := q.NewRunner(1, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Predict(make([]float32, q.book.shape.Width),
			layerMasksOf(q.book.shape)); err != nil {
			t.Error(err)
		}
	})
}

package model

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/engine/checkpoint"
	"github.com/windrow-sim/windrow/kernels/ref"
)

// goodFacts returns the facts of a synthetic image of the tiny shape.
func goodFacts() facts {
	f := factsOf(tiny())
	f.name, f.origin, f.source, f.tokenizer = "m", "test", strings.Repeat("0", 64), []byte("{}")
	return f
}

func TestFactsRoundTrip(t *testing.T) {
	got, err := decodeFacts(goodFacts().encode())
	if err != nil || fmt.Sprint(got) != fmt.Sprint(goodFacts()) {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestMetadataThatContradictsItself(t *testing.T) {
	for _, c := range []struct {
		key, value string
		kind       error
		want       string
	}{
		{"format", "pt", checkpoint.ErrFormat, "not a flash image"},
		{"format_version", "3", checkpoint.ErrUnsupported, `format_version is "3"`},
		{"architecture", "{}", checkpoint.ErrFormat, "d_model is 0"},
		{"architecture", `{"family":"opt","moe":true}`, checkpoint.ErrFormat, "moe"},
		{"arch", "llama", checkpoint.ErrFormat, "arch"},
		{"activation", "silu", checkpoint.ErrFormat, "activation"},
		{"dtype", "F32", checkpoint.ErrUnsupported, "F32 of 2 bytes"},
		{"dtype", "I8", checkpoint.ErrUnsupported, "dtype"},
		{"bundle_format", "Q5", checkpoint.ErrUnsupported, "bundle_format"},
		{"bundle_format", "Q4", checkpoint.ErrUnsupported, "multiple of 32"},
		{"d_model", "sixteen", checkpoint.ErrFormat, "not a number"},
		{"d_model", "32", checkpoint.ErrFormat, "not those of its architecture"},
		{"record_bytes", "128", checkpoint.ErrFormat, "record_bytes is 128"},
		{"stride", "32", checkpoint.ErrFormat, "stride 32"},
		{"stride", "65", checkpoint.ErrFormat, "stride 65"},
		{"source_sha256", "none", checkpoint.ErrFormat, "source_sha256"},
		{"tokenizer", "{ }", checkpoint.ErrFormat, "tokenizer_sha256"},
	} {
		meta := goodFacts().encode()
		meta[c.key] = c.value
		_, err := decodeFacts(meta)
		refused(t, err, c.kind, c.want)
	}
}

// TestVersionOne reads the metadata of images that were written before there were families.
func TestVersionOne(t *testing.T) {
	meta := goodFacts().encode()
	meta["format_version"] = "1"
	delete(meta, "architecture")
	delete(meta, "bundle_format")
	got, err := decodeFacts(meta)
	if err != nil || fmt.Sprint(got) != fmt.Sprint(goodFacts()) {
		t.Errorf("got %+v, %v", got, err)
	}
	for _, c := range [][2]string{{"layers", "0"}, {"layers", "99999999"}, {"kv_heads", "3"},
		{"rows_per_unit", "4"}, {"dtype", "BF16"}} {
		changed := maps.Clone(meta)
		changed[c[0]] = c[1]
		if _, err := decodeFacts(changed); err == nil {
			t.Errorf("%s = %s was taken", c[0], c[1])
		}
	}
}

// TestOpenImageChecksTheTensors writes images that differ from their metadata in one tensor.
func TestOpenImageChecksTheTensors(t *testing.T) {
	for name, c := range map[string]struct {
		change func(list []checkpoint.TensorInfo) []checkpoint.TensorInfo
		align  string // the tensor on a multiple of 4096
		want   string
	}{
		"unchanged": {align: bundlesName(0)},
		"extra tensor": {align: bundlesName(0),
			change: func(l []checkpoint.TensorInfo) []checkpoint.TensorInfo {
				return append(l, checkpoint.TensorInfo{Name: "later", DType: checkpoint.U8,
					Shape: []int64{4096}})
			}},
		"missing": {align: bundlesName(0), want: `"layers.0.attn_norm.weight" is missing`,
			change: func(l []checkpoint.TensorInfo) []checkpoint.TensorInfo {
				return l[1:]
			}},
		"type": {align: bundlesName(0), want: "the metadata means F32[16]",
			change: func(l []checkpoint.TensorInfo) []checkpoint.TensorInfo {
				l[0].DType = "I32"
				return l
			}},
		"length": {align: bundlesName(0), want: "not a multiple of 4096",
			change: func(l []checkpoint.TensorInfo) []checkpoint.TensorInfo {
				return append(l, checkpoint.TensorInfo{Name: "later", DType: checkpoint.U8,
					Shape: []int64{8}})
			}},
		"alignment": {align: "end", want: "starts at",
			change: func(l []checkpoint.TensorInfo) []checkpoint.TensorInfo {
				return append(l, checkpoint.TensorInfo{Name: "late", DType: checkpoint.U8,
					Shape: []int64{4088}},
					checkpoint.TensorInfo{Name: "end", DType: checkpoint.U8, Shape: []int64{0}})
			}},
	} {
		t.Run(name, func(t *testing.T) {
			list := factsOf(tiny()).tensors()
			if c.change != nil {
				list = c.change(list)
			}
			opt := checkpoint.WriterOptions{HeaderAlign: 4096, AlignTensor: c.align}
			path := filepath.Join(t.TempDir(), "x")
			w, err := checkpoint.NewWriter(path, list, goodFacts().encode(), opt)
			if err != nil {
				t.Fatal(err)
			}
			defer w.Abort()
			for _, x := range w.Tensors() {
				w.Begin(x.Name)
				w.Write(make([]byte, x.Size))
			}
			if err := w.Commit(); err != nil {
				t.Fatal(err)
			}
			img, err := OpenImage(t.Context(), path)
			if c.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				img.Close()
				return
			}
			refused(t, err, checkpoint.ErrFormat, c.want)
		})
	}
}

func TestBundlesChecksLayerSizeAndNumbers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	if err := Synth(t.Context(), tiny(), "s", 1, path, SynthOptions{}); err != nil {
		t.Fatal(err)
	}
	path = withoutHashes(t, path)
	img, err := OpenImage(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer img.Close()
	dst := make([]byte, img.LayerBytes())
	for _, layer := range []int{-1, 2} {
		if err := img.Bundles(layer, dst); err == nil {
			t.Errorf("layer %d was read", layer)
		}
	}
	if err := img.Bundles(0, dst[1:]); err == nil {
		t.Error("a short buffer was filled")
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt([]byte{0, 0x7C}, img.Geometry().Base[1]+2*77); err != nil {
		t.Fatal(err)
	}
	refused(t, img.Bundles(1, dst), checkpoint.ErrFormat, bundlesName(1), "index 77")
}

func TestSynthIsRandomSmallAndRepeatable(t *testing.T) {
	s := tiny()
	s.DModel, s.HeadDim, s.DFFN = 66, 33, 500
	s.Heads, s.KVHeads = 2, 2
	dir := t.TempDir()
	open := func(name string, seed uint64, opt SynthOptions) (*Image, []byte) {
		path := filepath.Join(dir, name)
		if err := Synth(t.Context(), s, "s", seed, path, opt); err != nil {
			t.Fatal(err)
		}
		img, err := OpenImage(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { img.Close() })
		all, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return img, all
	}
	a, bytesA := open("a", 1, SynthOptions{Tokenizer: []byte("{}")})
	_, bytesB := open("b", 1, SynthOptions{Tokenizer: []byte("{}")})
	c, _ := open("c", 2, SynthOptions{})
	wide, _ := open("d", 1, SynthOptions{Stride: 4096})
	if string(bytesA) != string(bytesB) {
		t.Error("the same seed gave another image")
	}
	if a.Hash == c.Hash || a.Hash != wide.Hash || a.Origin != "synth seed=1 active=0.5" ||
		string(a.TokenizerJSON) != "{}" {
		t.Errorf("hashes %s %s %s, origin %q", a.Hash, c.Hash, wide.Hash, a.Origin)
	}
	checkSynthWeights(t, a)
	narrow, padded := make([]byte, a.LayerBytes()), make([]byte, wide.LayerBytes())
	if err := a.Bundles(1, narrow); err != nil {
		t.Fatal(err)
	}
	if err := wide.Bundles(1, padded); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	record := int(s.RecordBytes(ref.F16))
	for i := range s.DFFN {
		r := string(narrow[i*record:][:record])
		if string(padded[i*4096:][:record]) != r {
			t.Fatalf("record %d depends on the stride", i)
		}
		if seen[r] {
			t.Fatalf("record %d repeats another", i)
		}
		seen[r] = true
	}
}

func checkSynthWeights(t *testing.T, img *Image) {
	t.Helper()
	w, err := img.Weights(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var sum, squares float64
	n := 0
	for _, m := range []Matrix{w.Embed, w.Pos, w.Layers[1].O.W} {
		list, err := ref.Bytes16(m.Data)
		if err != nil {
			t.Fatal(err)
		}
		for i, h := range list {
			v := math.Abs(float64(ref.F16ToF32(h)))
			if v >= 0.05 || v < 1.0/512 {
				t.Fatalf("weight %d is %v", i, v)
			}
			sum += float64(ref.F16ToF32(h))
			squares += v * v
			n++
		}
	}
	if dev := math.Sqrt(squares / float64(n)); math.Abs(dev/weightDeviation-1) > 0.03 ||
		math.Abs(sum/float64(n)) > 0.1*weightDeviation {
		t.Errorf("deviation %v, want %v; mean %v", dev, weightDeviation, sum/float64(n))
	}
	if n := w.Layers[0].FFNNorm; n.W[3] != 1 || n.B[3] != 0 {
		t.Errorf("norm %v %v", n.W[3], n.B[3])
	}
	if b := w.Layers[0].UpBias; b[0] == b[1] || math.Abs(float64(b[0])) > 0.05 {
		t.Errorf("biases %v", b[:2])
	}
}

func TestSynthActiveShare(t *testing.T) {
	s := tiny()
	s.DModel, s.HeadDim, s.DFFN = 256, 64, 4096
	for _, share := range []float64{0, 0.1} {
		path := filepath.Join(t.TempDir(), "x")
		if err := Synth(t.Context(), s, "s", 3, path, SynthOptions{
			ActiveShare: share}); err != nil {
			t.Fatal(err)
		}
		img, err := OpenImage(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		defer img.Close()
		w, err := img.Weights(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		bundles := make([]byte, img.LayerBytes())
		if err := img.Bundles(0, bundles); err != nil {
			t.Fatal(err)
		}
		r := rand.New(rand.NewPCG(1, 2)) // a normalised input: mean 0, variance 1
		x := make([]float64, s.DModel)
		norm := 0.0
		for i := range x {
			x[i] = r.NormFloat64()
			norm += x[i] * x[i]
		}
		active := 0
		for i := range s.DFFN {
			v := 0.0
			for k := range x {
				v += x[k] * float64(ref.F16ToF32(binary.LittleEndian.Uint16(bundles[i*1024+2*k:])))
			}
			if v*math.Sqrt(float64(s.DModel)/norm)+float64(w.Layers[0].UpBias[i]) > 0 {
				active++
			}
		}
		want := share
		if share == 0 {
			want = 0.5
		}
		if got := float64(active) / float64(s.DFFN); math.Abs(got-want) > 0.03 {
			t.Errorf("active share %v, want %v", got, want)
		}
	}
}

func TestSynthRefusesBadOptions(t *testing.T) {
	out := t.TempDir()
	bad := tiny()
	bad.Heads = 3
	for _, err := range []error{
		Synth(t.Context(), bad, "s", 1, filepath.Join(out, "x"), SynthOptions{}),
		Synth(t.Context(), tiny(), "s", 1, filepath.Join(out, "x"), SynthOptions{ActiveShare: 1.5}),
		Synth(t.Context(), tiny(), "s", 1, filepath.Join(out, "x"), SynthOptions{
			ActiveShare: math.NaN()}),
		Synth(t.Context(), tiny(), "s", 1, filepath.Join(out, "x"), SynthOptions{Stride: 63}),
	} {
		if err == nil {
			t.Error("accepted")
		}
	}
	folderIsEmpty(t, out)
}

// FuzzFirstNonFinite compares the search by words with a plain one.
func FuzzFirstNonFinite(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0x7C, 0, 0, 0, 0, 0, 0xFC}, uint8(0))
	f.Add([]byte{0xFF, 0x7B, 0x80, 0x7F, 1, 2, 0x80, 0xFF}, uint8(1))
	f.Add([]byte{1, 2, 3, 4, 0, 0, 0x80, 0x7F, 9, 9, 0xC0, 0xFF}, uint8(2))
	f.Fuzz(func(t *testing.T, p []byte, kind uint8) {
		dtype := []checkpoint.DType{checkpoint.F16, checkpoint.BF16, checkpoint.F32}[kind%3]
		size := int(dtype.Size())
		p = p[:len(p)/size*size]
		want := -1
		for i := 0; i*size < len(p) && want < 0; i++ {
			var v float32
			switch dtype {
			case checkpoint.F16:
				v = ref.F16ToF32(binary.LittleEndian.Uint16(p[2*i:]))
			case checkpoint.BF16:
				v = math.Float32frombits(uint32(binary.LittleEndian.Uint16(p[2*i:])) << 16)
			default:
				v = math.Float32frombits(binary.LittleEndian.Uint32(p[4*i:]))
			}
			if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
				want = i
			}
		}
		if got := firstNonFinite(dtype, p); got != want {
			t.Fatalf("%s %x: %d, want %d", dtype, p, got, want)
		}
	})
}

// FuzzTranspose compares the tiled transposition with the definition.
func FuzzTranspose(f *testing.F) {
	f.Add(uint8(33), uint8(65), uint8(3))
	f.Add(uint8(1), uint8(1), uint8(0))
	f.Fuzz(func(t *testing.T, d8, n8, extra uint8) {
		d, n, es := int(d8)+1, int(n8)+1, 2+int(extra)%2*2
		stride, offset := 2*es*d+es*int(extra), es*d
		src := make([]byte, es*d*n)
		for i := range src {
			src[i] = byte(i*7 + i>>8)
		}
		got := make([]byte, n*stride)
		transpose(got, stride, offset, src, d, n, es)
		want := make([]byte, n*stride)
		for i := range d {
			for j := range n {
				copy(want[j*stride+offset+es*i:][:es], src[(i*n+j)*es:])
			}
		}
		if string(got) != string(want) {
			t.Fatalf("%d x %d differs", d, n)
		}
	})
}

// discard is a file that keeps nothing.
type discard struct{ n int64 }

func (d *discard) Write(p []byte) (int, error) { d.n += int64(len(p)); return len(p), nil }

func BenchmarkSynthBundles(b *testing.B) {
	s := Shape{DModel: 4096, Layers: 1, DFFN: 4096, Rows: 2, DTypeSize: 2}
	fill := &synthFiller{shape: s, stride: int(s.RecordBytes(ref.F16)), seed: 1}
	out := &discard{}
	b.SetBytes(int64(s.DFFN * fill.stride))
	for b.Loop() {
		fill.bundles(b.Context(), 0, func(p []byte) error { _, err := out.Write(p); return err })
	}
}

func BenchmarkPack(b *testing.B) {
	s := Shape{DModel: 1024, Layers: 2, DFFN: 4096, Heads: 16, KVHeads: 16, HeadDim: 64,
		Vocab: 1000, MaxPos: 62, Rows: 2, DTypeSize: 2}
	dir, out := newFixture(s).write(b, 1), filepath.Join(b.TempDir(), "x")
	for b.Loop() {
		report, err := Pack(b.Context(), dir, out, PackOptions{})
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(int64(report.Bytes))
	}
}

func BenchmarkBundler(b *testing.B) {
	s := Shape{DModel: 1024, DFFN: 4096, Rows: 2, DTypeSize: 2}
	fix := newFixture(Shape{DModel: 1024, DFFN: 4096, Layers: 1, Vocab: 2, MaxPos: 2})
	src, err := checkpoint.OpenFolder(b.Context(), fix.write(b, 1), checkpoint.FolderOptions{})
	if err != nil {
		b.Fatal(err)
	}
	defer src.Close()
	open := func(name string) tensor {
		info, _ := src.Tensor("model.decoder." + name)
		r, err := src.Section("model.decoder." + name)
		if err != nil {
			b.Fatal(err)
		}
		return tensor{TensorInfo: info, r: r, s: &scratch{}}
	}
	bundler := newBundler(factsOf(s), 4, bundleMemory)
	b.SetBytes(int64(s.DFFN) * int64(s.RecordBytes(ref.F16)))
	for b.Loop() {
		if err := bundler.layer(b.Context(), []tensor{open(upSource(0)), open(downSource(0))},
			func([]byte) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
}

// TestSynthGated makes a random model with gates and loads it: Llama's architecture with grouped
// queries.
func TestSynthGated(t *testing.T) {
	s := tiny()
	s.Rows, s.KVHeads = 3, 2
	path := filepath.Join(t.TempDir(), "x")
	if err := Synth(t.Context(), s, "gated", 1, path, SynthOptions{}); err != nil {
		t.Fatal(err)
	}
	img, err := OpenImage(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer img.Close()
	if img.Arch.Family != Llama || img.RecordBytes() != 96 || img.Arch.Shape != s {
		t.Errorf("%+v, records of %v", img.Arch, img.RecordBytes())
	}
	if _, err := img.Weights(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestErrorsAreShort: what a file says is quoted in part, however long it is.
func TestErrorsAreShort(t *testing.T) {
	long := strings.Repeat("\xd9long", 1<<20)
	for _, key := range []string{"format_version", "arch", "activation", "dtype", "bundle_format",
		"d_model", "stride", "source_sha256", "tokenizer_sha256", "architecture"} {
		meta := goodFacts().encode()
		meta[key] = long
		if _, err := decodeFacts(meta); err == nil || len(err.Error()) > 1000 {
			t.Errorf("%s: %.300v", key, err)
		}
	}
	for _, text := range []string{`{"family":"` + long[:10000] + `"}`, `{"` + long[:10000] + `":1}`,
		`{"activation":"` + long[:10000] + `"}`} {
		if _, err := decodeArch(text); err == nil || len(err.Error()) > 1000 {
			t.Errorf("%.300v", err)
		}
	}
}

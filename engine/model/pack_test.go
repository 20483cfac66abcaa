package model

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"syscall"
	"testing"

	"github.com/windrow-sim/windrow/engine/checkpoint"
	"github.com/windrow-sim/windrow/internal/output/outputtest"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/kernels/ref"
)

// checkRecords compares every record with the row of fc1 and the column of fc2 it is made of.
func checkRecords(t *testing.T, f *fixture, img *Image) {
	t.Helper()
	d, ffn := f.shape.DModel, f.shape.DFFN
	geo := img.Geometry()
	file, err := os.ReadFile(img.Path)
	if err != nil {
		t.Fatal(err)
	}
	for l := range f.shape.Layers {
		up, down := f.tensors[upSource(l)], f.tensors[downSource(l)]
		dst := make([]byte, img.LayerBytes())
		if err := img.Bundles(l, dst); err != nil {
			t.Fatal(err)
		}
		for i := range ffn {
			var want []float32
			want = append(want, up[i*d:(i+1)*d]...)
			for k := range d {
				want = append(want, down[k*ffn+i])
			}
			record := append(encodeAs(checkpoint.F16, want), make([]byte, geo.Stride-geo.Record)...)
			at := geo.Base[l] + int64(i)*int64(geo.Stride)
			if !bytes.Equal(file[at:][:geo.Stride], record) {
				t.Fatalf("layer %d: record %d in the file is not row and column %d", l, i, i)
			}
			if !bytes.Equal(dst[i*int(geo.Stride):][:geo.Stride], record) {
				t.Fatalf("layer %d: record %d as read is not row and column %d", l, i, i)
			}
		}
	}
}

func TestPackPutsRowsAndColumnsTogether(t *testing.T) {
	odd := tiny()
	odd.DModel, odd.Heads, odd.KVHeads, odd.HeadDim, odd.DFFN, odd.Vocab = 15, 5, 5, 3, 131, 37
	for name, c := range map[string]struct {
		shape Shape
		files int
		opt   PackOptions
	}{
		"tiny":             {tiny(), 1, PackOptions{}},
		"shards":           {tiny(), 3, PackOptions{}},
		"odd sizes":        {odd, 1, PackOptions{}},
		"blocks of 7":      {odd, 2, PackOptions{memory: 7 * 8 * 15}},
		"one neuron":       {odd, 1, PackOptions{memory: 1}},
		"stride":           {tiny(), 1, PackOptions{Stride: 4096}},
		"stride in blocks": {odd, 1, PackOptions{Stride: 70, memory: 64 * 200}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(c.shape)
			img, report := pack(t, f.write(t, c.files), c.opt)
			checkRecords(t, f, img)
			geo := img.Geometry()
			st, err := os.Stat(img.Path)
			if err != nil {
				t.Fatal(err)
			}
			if st.Size()%4096 != 0 || geo.Size != st.Size() ||
				report.Bytes != units.Bytes(st.Size()) {
				t.Errorf("file %d, geometry %d, report %d bytes", st.Size(), geo.Size, report.Bytes)
			}
			for l, base := range geo.Base {
				if base%4096 != 0 {
					t.Errorf("layer %d starts at %d", l, base)
				}
			}
			if img.file.DataOffset()%8 != 0 {
				t.Errorf("data starts at %d", img.file.DataOffset())
			}
			for _, x := range img.file.Tensors() {
				if x.Offset%x.DType.Size() != 0 {
					t.Errorf("%s starts at %d, not aligned to its elements", x.Name, x.Offset)
				}
			}
			if img.Shape != c.shape || report.Arch.Shape != c.shape {
				t.Errorf("shape %+v", img.Shape)
			}
			if want := units.Bytes(c.shape.Layers*c.shape.DFFN) *
				geo.Stride; img.BundleBytes() != want || report.Bundles != want {
				t.Errorf("bundles %d bytes, want %d", img.BundleBytes(), want)
			}
		})
	}
}

func TestFolderEqualsImage(t *testing.T) {
	dir := newFixture(tiny()).write(t, 2)
	img, report := pack(t, dir, PackOptions{})
	w, bundles, config, err := LoadFolder(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	fromImage, err := img.Weights(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(w, fromImage) {
		t.Error("resident weights differ")
	}
	if !reflect.DeepEqual(config.Arch, img.Arch) {
		t.Errorf("config %+v", config)
	}
	for l, want := range bundles {
		got := make([]byte, img.LayerBytes())
		if err := img.Bundles(l, got); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("layer %d differs", l)
		}
	}
	memory := 0
	for _, r := range w.residents() {
		if r.matrix != nil {
			memory += len(r.matrix.Data)
		} else {
			memory += 4 * len(*r.vector)
		}
	}
	if img.ResidentBytes() != units.Bytes(memory) || report.Resident != units.Bytes(memory) {
		t.Errorf("resident %d bytes, in memory %d", img.ResidentBytes(), memory)
	}
}

func TestWeightsGoWhereTheyBelong(t *testing.T) {
	f := newFixture(tiny())
	w, _, _, err := LoadFolder(t.Context(), f.write(t, 1))
	if err != nil {
		t.Fatal(err)
	}
	half := func(source string, m Matrix) {
		t.Helper()
		got := make([]float32, m.Rows*m.Cols)
		ref.F16.Decode(got, m.Data)
		if !reflect.DeepEqual(got, f.tensors[source]) {
			t.Errorf("%s differs", source)
		}
	}
	full := func(source string, got []float32) {
		t.Helper()
		if !reflect.DeepEqual(got, f.tensors[source]) {
			t.Errorf("%s differs", source)
		}
	}
	half("embed_tokens.weight", w.Embed)
	half("embed_positions.weight", w.Pos)
	full("final_layer_norm.weight", w.FinalNorm.W)
	full("final_layer_norm.bias", w.FinalNorm.B)
	for i, l := range w.Layers {
		p := fmt.Sprintf("layers.%d.", i)
		half(p+"self_attn.q_proj.weight", l.Q.W)
		half(p+"self_attn.k_proj.weight", l.K.W)
		half(p+"self_attn.v_proj.weight", l.V.W)
		half(p+"self_attn.out_proj.weight", l.O.W)
		full(p+"self_attn.q_proj.bias", l.Q.B)
		full(p+"self_attn.k_proj.bias", l.K.B)
		full(p+"self_attn.v_proj.bias", l.V.B)
		full(p+"self_attn.out_proj.bias", l.O.B)
		full(p+"self_attn_layer_norm.weight", l.AttnNorm.W)
		full(p+"self_attn_layer_norm.bias", l.AttnNorm.B)
		full(p+"final_layer_norm.weight", l.FFNNorm.W)
		full(p+"final_layer_norm.bias", l.FFNNorm.B)
		full(p+"fc1.bias", l.UpBias)
		full(p+"fc2.bias", l.DownBias)
	}
}

func TestPackIsRepeatableAndHashesOnlyTheWeights(t *testing.T) {
	f := newFixture(tiny())
	a, ra := pack(t, f.write(t, 1), PackOptions{Name: "m", Tokenizer: []byte(`{"x":"é"}`)})
	b, _ := pack(t, f.write(t, 3), PackOptions{Name: "m", Tokenizer: []byte(`{"x":"é"}`),
		memory: 1000})
	first, _ := os.ReadFile(a.Path)
	second, _ := os.ReadFile(b.Path)
	if len(first) == 0 || !bytes.Equal(first, second) {
		t.Error("the same tensors gave another image")
	}
	if a.Name != "m" || string(a.TokenizerJSON) != `{"x":"é"}` ||
		a.TokenizerHash != digest(a.TokenizerJSON) || a.Hash != ra.SourceSHA256 {
		t.Errorf("metadata was lost: %+v", a)
	}
	f.prefix = "decoder."
	if c, _ := pack(t, f.write(t, 1), PackOptions{Stride: 512}); c.Hash != a.Hash {
		t.Error("prefix or stride changed the hash of the weights")
	}
	f.tensors["layers.1.fc2.weight"][5] += 1
	if c, _ := pack(t, f.write(t, 1), PackOptions{}); c.Hash == a.Hash {
		t.Error("another weight, the same hash")
	}
}

func TestConversionIsAskedFor(t *testing.T) {
	for _, dtype := range []checkpoint.DType{checkpoint.F32, checkpoint.BF16} {
		t.Run(string(dtype), func(t *testing.T) {
			f := newFixture(tiny())
			f.dtype = dtype
			if dtype == checkpoint.BF16 {
				for _, list := range f.tensors {
					for i, v := range list {
						list[i] = math.Float32frombits(math.Float32bits(v) &^ 0xFFFF)
					}
				}
			} else {
				// not a float16: vectors must keep their bits
				f.tensors["layers.0.fc1.bias"][3] = 0.1
				f.tensors["layers.0.fc2.weight"][3] = 0.1
			}
			dir := f.write(t, 1)
			if img, _ := pack(t, dir, PackOptions{}); img.DType != string(dtype) {
				t.Errorf("%s became %s", dtype, img.DType)
			}
			img, _ := pack(t, dir, PackOptions{Format: format(ref.F16)})
			checkRecords(t, f, img)
			w, err := img.Weights(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if got, want := w.Layers[0].UpBias[3], f.tensors["layers.0.fc1.bias"][3]; got != want {
				t.Errorf("bias %v became %v", want, got)
			}
		})
	}
}

func TestNonFiniteWeightsAreNamed(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(-1))
	for name, c := range map[string]struct {
		tensor string
		value  float32
		dtype  checkpoint.DType
		want   string
	}{
		"NaN in fc2":    {"layers.1.fc2.weight", nan, checkpoint.F16, "not finite"},
		"Inf in a bias": {"layers.0.fc1.bias", inf, checkpoint.F16, "not finite"},
		"NaN in F32":    {"embed_tokens.weight", nan, checkpoint.F32, "not finite"},
		"Inf in BF16":   {"layers.0.fc1.weight", inf, checkpoint.BF16, "not finite"},
		"too large for F16": {"layers.0.fc1.weight", 65520, checkpoint.F32,
			"beyond the range of F16"},
		"too large in fc2": {"layers.0.fc2.weight", -1e9, checkpoint.F32,
			"beyond the range of F16"},
		"too large resident": {"embed_tokens.weight", 1e9, checkpoint.BF16,
			"beyond the range of F16"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(tiny())
			f.dtype = c.dtype
			f.tensors[c.tensor][13] = c.value
			out := t.TempDir()
			_, err := Pack(t.Context(), f.write(t, 1), filepath.Join(out, "x"), PackOptions{
				Format: format(ref.F16)})
			refused(t, err, checkpoint.ErrFormat, "model.decoder."+c.tensor, "index 13", c.want)
			folderIsEmpty(t, out)
			if c.dtype == checkpoint.F16 {
				_, _, _, err = LoadFolder(t.Context(), f.write(t, 1))
				refused(t, err, checkpoint.ErrFormat, "model.decoder."+c.tensor, "index 13", c.want)
			}
		})
	}
}

func TestCancelledPackLeavesNothing(t *testing.T) {
	dir := newFixture(tiny()).write(t, 1)
	total, _ := pack(t, dir, PackOptions{})
	end := total.Geometry().Size
	for stop := int64(1); stop < end; stop += end / 20 {
		ctx, cancel := context.WithCancel(t.Context())
		out := t.TempDir()
		_, err := Pack(ctx, dir, filepath.Join(out, "x"), PackOptions{memory: 1000,
			Progress: func(done, _ int64) {
				if done >= stop {
					cancel()
				}
			}})
		cancel()
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("stopped at %d: %v", stop, err)
		}
		folderIsEmpty(t, out)
	}
}

func TestProgressReachesItsTotal(t *testing.T) {
	var last, all int64
	pack(t, newFixture(tiny()).write(t, 1), PackOptions{Stride: 512, Progress: func(done,
		total int64) {
		if done < last {
			t.Errorf("from %d back to %d", last, done)
		}
		last, all = done, total
	}})
	if last != all || all == 0 {
		t.Errorf("ended at %d of %d", last, all)
	}
}

func TestFullDiskLeavesNothing(t *testing.T) {
	dir := newFixture(tiny()).write(t, 1)
	whole, _ := pack(t, dir, PackOptions{})
	size := int(whole.file.Size())
	for _, room := range []int{0, 3000, size / 2, size - 1} {
		fill := func() {
			outputtest.Use(t, &outputtest.Full{Room: int64(room), Err: syscall.ENOSPC})
		}
		fill()
		out := t.TempDir()
		_, err := Pack(t.Context(), dir, filepath.Join(out, "x"), PackOptions{})
		if !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("room for %d: %v", room, err)
		}
		folderIsEmpty(t, out)
		fill()
		if err := Synth(t.Context(), tiny(), "s", 1, filepath.Join(out, "x"),
			SynthOptions{}); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("synth, room for %d: %v", room, err)
		}
		folderIsEmpty(t, out)
	}
}

func TestPackWhereItCannotWrite(t *testing.T) {
	dir := newFixture(tiny()).write(t, 1)
	if _, err := Pack(t.Context(), dir, filepath.Join(t.TempDir(), "none", "x"),
		PackOptions{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing folder: %v", err)
	}
	if _, err := Pack(t.Context(), dir, filepath.Join(dir, "config.json", "x"),
		PackOptions{}); err == nil {
		t.Error("wrote below a file")
	}
	locked := t.TempDir()
	if err := os.Chmod(locked, 0o555); err != nil || os.Getuid() <= 0 {
		t.Skip("this user may write everywhere")
	}
	if _, err := Pack(t.Context(), dir, filepath.Join(locked, "x"), PackOptions{}); !errors.Is(err,
		fs.ErrPermission) {
		t.Errorf("read-only folder: %v", err)
	}
	folderIsEmpty(t, locked)
}

// TestPackMemoryIsBounded packs a model of 21 MB with a bundler of 1 MiB and counts all that is
// ever allocated.
func TestPackMemoryIsBounded(t *testing.T) {
	s := tiny()
	s.DModel, s.HeadDim, s.DFFN, s.Layers = 256, 64, 2048, 8
	dir := newFixture(s).write(t, 1)
	out := filepath.Join(t.TempDir(), "x")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	report, err := Pack(t.Context(), dir, out, PackOptions{memory: 1 << 20})
	runtime.ReadMemStats(&after)
	if err != nil {
		t.Fatal(err)
	}
	// The bundler's buffers, one block to read and one to convert, and headers, names and tables.
	const slack = 4 << 20
	if got := after.TotalAlloc - before.TotalAlloc; got > 1<<20+slack {
		t.Errorf("%d bytes allocated for an image of %d", got, report.Bytes)
	} else if uint64(report.Bytes) < 3*got {
		t.Errorf("%d bytes allocated: the image of %d is too small to tell", got, report.Bytes)
	}
}

func TestBundlerFitsForEveryModel(t *testing.T) {
	for _, d := range []int{768, 4096, 9216, 12288} {
		s := Shape{DModel: d, DFFN: 4 * d, Rows: 2, DTypeSize: 2}
		b := newBundler(factsOf(s), 4, bundleMemory)
		if n := len(b.raw) + len(b.down) + len(b.out); n > bundleMemory || n < bundleMemory/3 &&
			b.block < b.ffn {
			t.Errorf("d_model %d: %d bytes of buffers", d, n)
		}
	}
}

func TestUnusedAndMissingTensorsAreNamed(t *testing.T) {
	for name, c := range map[string]struct {
		change func(f *fixture)
		kind   error
		want   string
	}{
		"projection": {func(f *fixture) { f.add("project_in.weight", 16, 8) },
			checkpoint.ErrUnsupported, "model.decoder.project_in.weight"},
		"experts": {func(f *fixture) { f.add("layers.0.experts.0.fc1.weight", 4, 4) },
			checkpoint.ErrUnsupported, "experts.0.fc1"},
		"layer 2": {func(f *fixture) { f.add("layers.2.fc1.bias", 4) },
			checkpoint.ErrUnsupported, "layers.2.fc1.bias"},
		"no prefix": {func(f *fixture) { f.add("/score.weight", 4) }, checkpoint.ErrUnsupported,
			"score.weight"},
		"missing": {func(f *fixture) { f.remove("final_layer_norm.bias") }, checkpoint.ErrFormat,
			"final_layer_norm.bias"},
		"both prefixes": {func(f *fixture) { f.add("/decoder.final_layer_norm.bias", 16) },
			checkpoint.ErrFormat,
			`"decoder.final_layer_norm.bias" and "model.decoder.final_layer_norm.bias"`},
		"shape": {func(f *fixture) { f.add("layers.0.fc2.weight", 64, 16) }, checkpoint.ErrFormat,
			"shape [64 16], but the configuration means [16 64]"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(tiny())
			c.change(f)
			_, _, _, err := LoadFolder(t.Context(), f.write(t, 1))
			refused(t, err, c.kind, c.want)
		})
	}
	f := newFixture(tiny())
	f.add("version", 1)
	if _, _, _, err := LoadFolder(t.Context(), f.write(t, 1)); err != nil {
		t.Errorf("the relic decoder.version: %v", err)
	}
}

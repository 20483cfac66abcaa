package checkpoint

import (
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/windrow-sim/windrow/engine/checkpoint/gguf"
	"github.com/windrow-sim/windrow/engine/checkpoint/torch"
)

func TestOpenAnyKnowsTheFormatByItsFirstBytes(t *testing.T) {
	single := folder(t, map[string]string{"config.json": "{}", "model.safetensors": "a b"})
	renamed := filepath.Join(t.TempDir(), "x.bin") // an extension is only a name
	if err := os.Link(filepath.Join(single, "model.safetensors"), renamed); err != nil {
		t.Skip(err)
	}
	for path, want := range map[string]Tensors{
		single:                     &Folder{},
		renamed:                    &File{},
		"torch/testdata/sharded":   &Folder{},
		"torch/testdata/views.bin": &torch.File{},
		"gguf/testdata/llama.gguf": &gguf.File{},
	} {
		got, err := OpenAny(t.Context(), path, FolderOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer got.Close()
		sameKind := false
		switch want.(type) {
		case *Folder:
			_, sameKind = got.(*Folder)
		case *File:
			_, sameKind = got.(*File)
		case *torch.File:
			_, sameKind = got.(*torch.File)
		case *gguf.File:
			_, sameKind = got.(*gguf.File)
		}
		if !sameKind {
			t.Errorf("%s is a %T", path, got)
		}
		readsWhole(t, got)
	}
	_, err := OpenAny(t.Context(), "torch/testdata/legacy.bin", FolderOptions{})
	refused(t, err, ErrUnsupported, "before 1.6")
	_, err = OpenAny(t.Context(), "any.go", FolderOptions{})
	refused(t, err, ErrFormat, "not a safetensors file")
	none, err := OpenAny(t.Context(), filepath.Join(single, "none"), FolderOptions{})
	if !errors.Is(err, fs.ErrNotExist) || none != nil {
		t.Errorf("%v, %v", none, err)
	}
	none, err = OpenAny(t.Context(), t.TempDir(), FolderOptions{})
	if !errors.Is(err, fs.ErrNotExist) || none != nil {
		t.Errorf("%v, %v", none, err)
	}
}

// readsWhole demands the contract of Tensors: sizes that follow from type and shape, and that many
// bytes.
func readsWhole(t *testing.T, ts Tensors) {
	t.Helper()
	if len(ts.Tensors()) == 0 {
		t.Fatal("no tensors")
	}
	for _, x := range ts.Tensors() {
		if size, err := byteSize(x.DType, x.Shape); err != nil || size != x.Size {
			t.Errorf("%+v, but %d bytes, %v", x, size, err)
		}
		s, err := ts.Section(x.Name)
		if err != nil {
			t.Fatal(err)
		}
		if all, err := io.ReadAll(s); err != nil || int64(len(all)) != x.Size {
			t.Errorf("%+v: %d bytes, %v", x, len(all), err)
		}
	}
	if _, err := ts.Section("no tensor of this name"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing tensor: %v", err)
	}
}

func TestOpenModelHasNamesAndConfiguration(t *testing.T) {
	m, err := OpenModel(t.Context(), "gguf/testdata/llama.gguf", FolderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	readsWhole(t, m)
	var layers, kv int
	var kind string
	for name, dst := range map[string]any{"num_hidden_layers": &layers, "num_key_value_heads": &kv,
		"model_type": &kind} {
		if ok, err := m.Config().Get(name, dst); !ok || err != nil {
			t.Errorf("%s: %v, %v", name, ok, err)
		}
	}
	if layers != 1 || kv != 2 || kind != "llama" {
		t.Errorf("%d layers, %d heads of keys, type %q", layers, kv, kind)
	}
	if _, ok := m.Tensor("model.layers.0.mlp.up_proj.weight"); !ok {
		t.Error("the names are not those of the original")
	}
	m, err = OpenModel(t.Context(), "torch/testdata/sharded", FolderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	readsWhole(t, m)

	none, err := OpenModel(t.Context(), "torch/testdata/views.bin", FolderOptions{})
	if refused(t, err, ErrUnsupported, "name the folder"); none != nil {
		t.Errorf("%v", none)
	}
}

func TestReadRowsIsTheSameInAnyPieces(t *testing.T) {
	for path, names := range map[string][]string{
		"gguf/testdata/llama.gguf": {"token_embd.weight", "output.weight",
			"blk.0.attn_norm.weight", "blk.0.attn_q.weight", "blk.0.ffn_gate.weight"},
		"torch/testdata/views.bin":  {"whole", "transposed", "columns", "batch", "half", "vector"},
		"torch/testdata/dtypes.bin": {"f32", "f16", "bf16", "empty2"},
	} {
		ts, err := OpenAny(t.Context(), path, FolderOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer ts.Close()
		for _, name := range names {
			x, _ := ts.Tensor(name)
			whole := make([]float32, x.Elements())
			if err := ReadRows(ts, name, 0, x.Shape[0], whole); err != nil {
				t.Fatal(err)
			}
			row := len(whole) / int(x.Shape[0])
			for from := range x.Shape[0] {
				for _, n := range []int64{0, 1, 2, 3} {
					to := min(from+n, x.Shape[0])
					part := make([]float32, int(to-from)*row)
					if err := ReadRows(ts, name, from, to, part); err != nil ||
						!slices.Equal(part, whole[int(from)*row:int(to)*row]) {
						t.Fatalf("%s, rows %d to %d: %v, %v", name, from, to, part, err)
					}
				}
			}
			if len(whole) > 0 && slices.Max(whole) == slices.Min(whole) {
				t.Errorf("%s holds the same number everywhere", name)
			}
		}
	}
}

// TestReadRowsOfEveryType reads the numbers that testdata/make.py of package torch stores:
// sin(1.7·i + 0.3).
func TestReadRowsOfEveryType(t *testing.T) {
	ts, err := OpenAny(t.Context(), "torch/testdata/dtypes.bin", FolderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer ts.Close()
	// half of the last place at 1, and a little
	for name, within := range map[string]float64{"f32": 1e-6, "f16": 1.0 / 2048, "bf16": 1.0 /
		256} {
		x, _ := ts.Tensor(name)
		got := make([]float32, x.Elements())
		if err := ReadRows(ts, name, 0, x.Shape[0], got); err != nil {
			t.Fatal(err)
		}
		for i, v := range got {
			if want := math.Sin(1.7*float64(i) + 0.3); math.Abs(float64(v)-want) > within {
				t.Errorf("%s, element %d: %v, want %v", name, i, v, want)
			}
		}
	}
}

func TestReadRowsRefuses(t *testing.T) {
	ts, err := OpenAny(t.Context(), "torch/testdata/dtypes.bin", FolderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer ts.Close()
	for name, c := range map[string]struct {
		tensor   string
		from, to int64
		n        int
	}{
		"behind": {"f32", 1, 3, 6}, "before": {"f32", -1, 1, 6}, "reversed": {"f32", 2, 1, 0},
		"a small buffer": {"f32", 0, 2, 5},
		"a large buffer": {"f32", 0, 2, 7}, "a scalar": {"i64", 0, 1, 1}, "none": {"x", 0, 1, 1},
	} {
		if err := ReadRows(ts, c.tensor, c.from, c.to, make([]float32, c.n)); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
	refused(t, ReadRows(ts, "flags", 0, 2, make([]float32, 2)), ErrUnsupported, "dtype BOOL")
}

// TestLargeTensorsAreReadInPieces reads from a sparse safetensors tensor of 2 GiB and watches the
// heap.
func TestLargeTensorsAreReadInPieces(t *testing.T) {
	const size, heap = int64(2) << 30, 64 << 20
	path := filepath.Join(t.TempDir(), "large.safetensors")
	if err := os.WriteFile(path,
		raw(`{"a":{"dtype":"F16","shape":[32768,32768],"data_offsets":[0,2147483648]}}`, 0),
		0o666); err != nil {
		t.Fatal(err)
	}
	st, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, st.Size()+size); err != nil {
		t.Skip(err)
	}
	ts, err := OpenAny(t.Context(), path, FolderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer ts.Close()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	rows := make([]float32, 64*32768)
	for _, from := range []int64{0, 16384, 32768 - 64} {
		rows[0], rows[len(rows)-1] = 1, 1
		if err := ReadRows(ts, "a", from, from+64, rows); err != nil || slices.Max(rows) != 0 {
			t.Fatalf("rows from %d: %v", from, err)
		}
	}
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; grown > heap {
		t.Errorf("%d bytes were allocated", grown)
	}
}

func BenchmarkReadRows(b *testing.B) {
	const rows, row = 512, 4096
	for name, bytes := range map[string]int{"Q4_0": 18, "Q8_0": 34} {
		number := map[string]byte{"Q4_0": 2, "Q8_0": 8}[name]
		b.Run(name, func(b *testing.B) {
			path := filepath.Join(b.TempDir(), "a.gguf")
			head := []byte(
				"GGUF\x03\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00" +
					"\x01\x00\x00\x00\x00\x00\x00\x00a\x02\x00\x00\x00\x00\x10\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00" +
					string([]byte{number}) + "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00")
			head = append(head, make([]byte, (32-len(head)%32)%32)...)
			for i := range rows * row / 32 * bytes {
				head = append(head, byte(i*7))
			}
			if err := os.WriteFile(path, head, 0o666); err != nil {
				b.Fatal(err)
			}
			ts, err := OpenAny(b.Context(), path, FolderOptions{})
			if err != nil {
				b.Fatal(err)
			}
			defer ts.Close()
			dst := make([]float32, 64*row)
			b.SetBytes(int64(4 * len(dst)))
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				from := int64(i % (rows / 64) * 64)
				if err := ReadRows(ts, "a", from, from+64, dst); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

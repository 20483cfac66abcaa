package model

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/engine/checkpoint"
)

// withoutHashes writes an image as windrow 0.1 did, and returns its path.
func withoutHashes(t testing.TB, path string) string {
	t.Helper()
	return rewrite(t, path, func(list []checkpoint.TensorInfo, meta map[string]string,
	) []checkpoint.TensorInfo {
		delete(meta, hashesName)
		return slices.DeleteFunc(list, func(x checkpoint.TensorInfo) bool {
			return strings.HasPrefix(x.Name, hashesName)
		})
	})
}

// rewrite copies an image with other tensors or metadata. Tensors that were not there are zeros.
func rewrite(t testing.TB, path string, change func([]checkpoint.TensorInfo,
	map[string]string) []checkpoint.TensorInfo) string {
	t.Helper()
	file, err := checkpoint.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	meta := file.Metadata()
	list := change(file.Tensors(), meta)
	w, err := checkpoint.NewWriter(path+".copy", list, meta, checkpoint.WriterOptions{
		HeaderAlign: imageAlign, AlignTensor: bundlesName(0)})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	for _, x := range w.Tensors() {
		data := make([]byte, x.Size)
		if old, ok := file.Tensor(x.Name); ok {
			if err := file.ReadTensor(x.Name, data[:old.Size]); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Begin(x.Name); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(data); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Commit(); err != nil {
		t.Fatal(err)
	}
	return path + ".copy"
}

// manyBlocks is a shape whose embedding and bundles have several blocks of hashes.
func manyBlocks() Shape {
	s := tiny()
	s.Vocab, s.DFFN = 20000, 10000
	return s
}

// synthesised writes a random image with a tokenizer.
func synthesised(t testing.TB, s Shape) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.flash.safetensors")
	if err := Synth(context.Background(), s, "s", 1, path, SynthOptions{
		Tokenizer: []byte("{}")}); err != nil {
		t.Fatal(err)
	}
	return path
}

// flipped calls a function while one bit of a file is flipped.
func flipped(t *testing.T, path string, at int64, bit uint, f func()) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	b := make([]byte, 1)
	flip := func() {
		if _, err := file.ReadAt(b, at); err != nil {
			t.Fatal(err)
		}
		b[0] ^= 1 << bit
		if _, err := file.WriteAt(b, at); err != nil {
			t.Fatal(err)
		}
	}
	flip()
	f()
	flip()
}

// TestEveryFlippedBitIsFound flips a bit in the first, the middle and the last byte of every
// tensor, and in bytes all over the header. CheckImage names the tensor and the block, Verify
// fails, and what is read when a model is opened is not used.
func TestEveryFlippedBitIsFound(t *testing.T) {
	path := synthesised(t, manyBlocks())
	file, err := checkpoint.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	random := rand.New(rand.NewPCG(3, 4))
	for _, x := range file.Tensors() {
		for _, at := range []int64{x.Offset, x.Offset + x.Size/2, x.Offset + x.Size - 1} {
			flipped(t, path, at, uint(random.IntN(8)), func() {
				damageIsNamed(t, path, x, at)
				resident := !strings.Contains(x.Name, ".ffn.bundles") &&
					!strings.Contains(x.Name, "pad")
				if err := openWeights(path); resident && !errors.Is(err, checkpoint.ErrFormat) {
					t.Errorf("%s at %d: the weights were opened: %v", x.Name, at, err)
				}
			})
		}
	}
	header := file.DataOffset()
	at := []int64{0, 7, 8, header / 2, header - 1}
	for range 300 {
		at = append(at, random.Int64N(header))
	}
	for _, at := range at {
		flipped(t, path, at, uint(random.IntN(8)), func() {
			c, err := CheckImage(t.Context(), path, nil)
			found := err == nil && c.Damaged > 0 && c.Damage[0].Part == headerPart
			if !found && !errors.Is(err, checkpoint.ErrFormat) &&
				!errors.Is(err, checkpoint.ErrUnsupported) {
				t.Errorf("header byte %d: %+v, %v", at, c, err)
			}
			if img, err := OpenImage(t.Context(), path); err == nil {
				img.Close()
				t.Errorf("header byte %d: the image was opened", at)
			}
		})
	}
	if err := openWeights(path); err != nil {
		t.Errorf("with no bit flipped: %v", err)
	}
}

func damageIsNamed(t *testing.T, path string, x checkpoint.TensorInfo, at int64) {
	t.Helper()
	c, err := CheckImage(t.Context(), path, nil)
	if err != nil || c.Damaged != 1 || len(c.Damage) != 1 {
		t.Fatalf("%s at %d: %+v, %v", x.Name, at, c, err)
	}
	d := c.Damage[0]
	// The table's last hash is that of the others: wrong itself, it accuses them.
	inside := d.Offset <= at && at < d.Offset+int64(d.Bytes)+hashSize
	if d.Part != x.Name || !inside || d.Bytes > hashBlock {
		t.Errorf("%s at %d: the damage is %+v", x.Name, at, d)
	}
	img, err := OpenImage(t.Context(), path)
	if err == nil {
		err = img.Verify(t.Context(), nil)
		img.Close()
	}
	var damage *Damage
	if !errors.As(err, &damage) || !errors.Is(err, checkpoint.ErrFormat) {
		t.Fatalf("%s at %d: %v", x.Name, at, err)
	}
	for _, says := range []string{path, x.Name, fmt.Sprint(damage.Offset), "again"} {
		if !strings.Contains(err.Error(), says) {
			t.Errorf("%q does not say %q", err, says)
		}
	}
}

func openWeights(path string) error {
	img, err := OpenImage(context.Background(), path)
	if err != nil {
		return err
	}
	defer img.Close()
	_, err = img.Weights(context.Background())
	return err
}

// TestBundlesAreComparedWhole flips a bit of records in every block: reading the layer finds it.
func TestBundlesAreComparedWhole(t *testing.T) {
	path := synthesised(t, manyBlocks())
	img, err := OpenImage(context.Background(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer img.Close()
	dst := make([]byte, img.LayerBytes())
	for at := int64(5); at < int64(img.LayerBytes()); at += hashBlock {
		flipped(t, path, img.Geometry().Base[1]+at, 3, func() {
			refused(t, img.Bundles(1, dst), checkpoint.ErrFormat, bundlesName(1),
				fmt.Sprint(img.Geometry().Base[1]+at-5))
		})
		if err := img.Bundles(1, dst); err != nil {
			t.Fatal(err)
		}
	}
}

// TestOpenFindsHoles replaces as many bytes as two layers have with zeros, wherever they begin:
// opening the image finds it by its sample.
func TestOpenFindsHoles(t *testing.T) {
	shape := manyBlocks()
	shape.Layers = 4
	path := synthesised(t, shape)
	img, err := OpenImage(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	base, layer := img.Geometry().Base[0], int64(img.LayerBytes())
	img.Close()
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for at := base; at <= base+2*layer; at += 56 << 10 {
		holed := bytes.Clone(whole)
		clear(holed[at:][:2*layer])
		if err := os.WriteFile(path, holed, 0o666); err != nil {
			t.Fatal(err)
		}
		_, err := OpenImage(t.Context(), path)
		refused(t, err, checkpoint.ErrFormat, "ffn.bundles", "is damaged")
	}
}

// TestSampledIsABlock: the sample of a layer lies in the layer, and those of many layers are spread
// over it.
func TestSampledIsABlock(t *testing.T) {
	for _, n := range []int64{1, 2, 7, 100, 1 << 40} {
		quarters := map[int64]bool{}
		for layer := range 32 {
			block := sampled(layer, n)
			if block < 0 || block >= n {
				t.Fatalf("block %d of %d", block, n)
			}
			quarters[block*4/n] = true
		}
		if n >= 4 && len(quarters) != 4 {
			t.Errorf("of %d blocks only %d quarters are sampled", n, len(quarters))
		}
	}
}

// TestImagesWithoutHashes opens what windrow 0.1 wrote. It says that there are no hashes.
func TestImagesWithoutHashes(t *testing.T) {
	path := withoutHashes(t, synthesised(t, tiny()))
	img, err := OpenImage(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer img.Close()
	if _, err := img.Weights(t.Context()); err != nil || img.Hashed() {
		t.Errorf("hashed %v, %v", img.Hashed(), err)
	}
	refused(t, img.Verify(t.Context(), nil), checkpoint.ErrUnsupported, path, "no hashes",
		"pack it again")
	if c, err := CheckImage(t.Context(), path, nil); err != nil || c.Hashed || c.Blocks != 0 {
		t.Errorf("%+v, %v", c, err)
	}
}

// TestHashesThatContradictTheImage: a table that does not cover the file is refused, and so is one
// of another kind.
func TestHashesThatContradictTheImage(t *testing.T) {
	type tensors = []checkpoint.TensorInfo
	table := func(l tensors) *checkpoint.TensorInfo { return &l[len(l)-1] }
	for name, c := range map[string]struct {
		change func(tensors, map[string]string) tensors
		kind   error
		want   string
	}{
		"no metadata": {func(l tensors, meta map[string]string) tensors {
			delete(meta, hashesName)
			return l
		}, checkpoint.ErrFormat, "only one"},
		"no table": {func(l tensors, _ map[string]string) tensors { return l[:len(l)-1] },
			checkpoint.ErrFormat, "only one"},
		"another kind": {func(l tensors, meta map[string]string) tensors {
			meta[hashesName] = "md5"
			return l
		}, checkpoint.ErrUnsupported, `"md5"`},
		"one hash too many": {func(l tensors, _ map[string]string) tensors {
			table(l).Shape = []int64{table(l).Shape[0] + 1, hashSize}
			return l
		}, checkpoint.ErrFormat, "not the last one with"},
		"another type": {func(l tensors, _ map[string]string) tensors {
			table(l).DType = "I8"
			return l
		}, checkpoint.ErrFormat, "not the last one with"},
		"a tensor behind": {func(l tensors, _ map[string]string) tensors {
			return append(l, checkpoint.TensorInfo{Name: "later", DType: checkpoint.U8,
				Shape: []int64{4096}})
		}, checkpoint.ErrFormat, "not the last one with"},
	} {
		t.Run(name, func(t *testing.T) {
			path := rewrite(t, synthesised(t, tiny()), c.change)
			_, err := OpenImage(t.Context(), path)
			refused(t, err, c.kind, path, c.want)
			_, err = CheckImage(t.Context(), path, nil)
			refused(t, err, c.kind, path, c.want)
		})
	}
}

// TestImagesThatShrink: a block that reads short is an error, whoever reads it.
func TestImagesThatShrink(t *testing.T) {
	path := synthesised(t, manyBlocks())
	img, err := OpenImage(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer img.Close()
	_, err = CheckImage(t.Context(), path, func(done, total int64) {
		if done > total/2 {
			if err := os.Truncate(path, total-4096); err != nil {
				t.Fatal(err)
			}
		}
	})
	refused(t, err, checkpoint.ErrFormat, path, "truncated")
	refused(t, img.Verify(t.Context(), nil), checkpoint.ErrFormat, path, "truncated")
	if err := os.Truncate(path, 8192); err != nil {
		t.Fatal(err)
	}
	_, err = img.Weights(t.Context())
	refused(t, err, checkpoint.ErrFormat, path, "truncated")
	_, err = CheckImage(t.Context(), path, nil)
	refused(t, err, checkpoint.ErrFormat, path, "truncated")
}

// TestVerifyStops when its context ends, and tells its progress until all is done.
func TestVerifyStops(t *testing.T) {
	path := synthesised(t, manyBlocks())
	img, err := OpenImage(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer img.Close()
	ctx, cancel := context.WithCancel(t.Context())
	calls := 0
	err = img.Verify(ctx, func(done, total int64) {
		if calls++; calls == 3 {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) || calls != 3 {
		t.Errorf("%v after %d blocks", err, calls)
	}
	last := int64(0)
	if err := img.Verify(t.Context(), func(done, total int64) {
		if done <= last || done > total {
			t.Errorf("%d after %d of %d bytes", done, last, total)
		}
		last = done
	}); err != nil {
		t.Fatal(err)
	}
	if st, err := os.Stat(path); err != nil || last != st.Size()-hashSize {
		t.Errorf("%d bytes were compared, of %v", last, st)
	}
}

// TestBlockHasherTakesPiecesOfAnySize: the hashes are those of the blocks, however they come.
func TestBlockHasherTakesPiecesOfAnySize(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, size := range []int{0, 1, hashBlock - 1, hashBlock, hashBlock + 1, 3 * hashBlock} {
		data := make([]byte, size)
		for i := range data {
			data[i] = byte(random.Uint32())
		}
		var want, got [][hashSize]byte
		for part := range slices.Chunk(data, hashBlock) {
			want = append(want, hashOf(part))
		}
		b := blockHasher{done: func(sum [hashSize]byte) { got = append(got, sum) }}
		for rest := data; len(rest) > 0; {
			n := min(len(rest), 1+random.IntN(hashBlock*5/4))
			b.write(rest[:n])
			rest = rest[n:]
		}
		b.end()
		if !slices.Equal(got, want) || int64(len(got)) != blocksOf(int64(size)) {
			t.Errorf("%d bytes: %d hashes differ from %d", size, len(got), len(want))
		}
	}
}

// TestWeightsAreComparedAsTheyAreRead: a reader that skips bytes vouches for nothing.
func TestWeightsAreComparedAsTheyAreRead(t *testing.T) {
	path := synthesised(t, manyBlocks())
	img, err := OpenImage(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer img.Close()
	section, err := img.file.Section("embed")
	if err != nil {
		t.Fatal(err)
	}
	whole := img.hashes.reader("embed", section)
	if _, err := io.ReadAll(io.NewSectionReader(whole, 0, section.Size())); err != nil {
		t.Fatal(err)
	}
	if err := whole.end(); err != nil {
		t.Error(err)
	}
	skips := img.hashes.reader("embed", section)
	buf := make([]byte, 1000)
	for _, at := range []int64{0, 2000} {
		if _, err := skips.ReadAt(buf, at); err != nil {
			t.Fatal(err)
		}
	}
	if err := skips.end(); err == nil {
		t.Error("bytes that were not read were vouched for")
	}
}

// BenchmarkHash is the speed of the hash itself, on bytes that are in memory but in no cache.
func BenchmarkHash(b *testing.B) {
	data := make([]byte, 256<<20)
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		for block := range slices.Chunk(data, hashBlock) {
			hashOf(block)
		}
	}
}

// BenchmarkOpen opens a model of 0.3 GB with its resident weights, with and without hashes. Verify
// reads all of it besides.
func BenchmarkOpen(b *testing.B) {
	path := synthesised(b, Shape{DModel: 768, Layers: 12, DFFN: 3072, Heads: 12, KVHeads: 12,
		HeadDim: 64, Vocab: 50272, MaxPos: 2048, Rows: 2, DTypeSize: 2})
	plain := withoutHashes(b, path)
	for name, path := range map[string]string{"hashed": path, "plain": plain} {
		b.Run("image/"+name, func(b *testing.B) {
			for b.Loop() {
				img, err := OpenImage(b.Context(), path)
				if err != nil {
					b.Fatal(err)
				}
				img.Close()
			}
		})
		b.Run("weights/"+name, func(b *testing.B) {
			for b.Loop() {
				if err := openWeights(path); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("verify", func(b *testing.B) {
		for b.Loop() {
			if _, err := CheckImage(b.Context(), path, nil); err != nil {
				b.Fatal(err)
			}
		}
	})
}

package model

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/windrow-sim/windrow/engine/checkpoint"
	"github.com/windrow-sim/windrow/internal/alloctest"
	"github.com/windrow-sim/windrow/kernels/ref"
)

// refusedKind reports whether an error says that a file is broken or unknown.
func refusedKind(err error) bool {
	return errors.Is(err, checkpoint.ErrFormat) || errors.Is(err, checkpoint.ErrUnsupported)
}

// seeds are facts of images of several families.
func seeds() []facts {
	plain := goodFacts()
	hashed := goodFacts()
	hashed.hashed, hashed.tokenizer = true, nil
	gated := tiny()
	gated.Rows, gated.DModel, gated.HeadDim = 3, 32, 8
	quantised := facts{name: "g", origin: "test", source: plain.source, arch: synthArch(gated),
		precision: Precision{ref.F16, ref.Q4}}
	quantised.stride = quantised.record()
	return []facts{plain, hashed, quantised}
}

// FuzzFacts puts any architecture and any other value into the metadata of an image. Reading takes
// memory in proportion to it. Facts that are accepted mean the same when they are written again,
// and name tensors of a size that a file can have.
func FuzzFacts(f *testing.F) {
	for _, s := range seeds() {
		meta := s.encode()
		for _, key := range []string{"stride", "format_version", "bundle_format", "layers",
			"activation"} {
			f.Add(meta["architecture"], key, meta[key], meta["bundle_format"])
		}
	}
	f.Add(`{"family":"opt"}`, "format_version", "1", "F16")
	f.Fuzz(func(t *testing.T, architecture, key, value, bundles string) {
		meta := goodFacts().encode()
		meta["architecture"], meta["bundle_format"] = architecture, bundles
		if arch, err := decodeArch(architecture); err == nil {
			// Let the metadata agree, so that more than its contradictions is tried.
			repeated := facts{arch: arch, precision: Precision{Bundles: ref.F16}}
			repeated.precision.Resident, _ = ref.ParseFormat(meta["dtype"])
			if known, ok := ref.ParseFormat(bundles); ok {
				repeated.precision.Bundles = known
			}
			if repeated.precision.check(arch.Shape) == nil {
				repeated.stride = repeated.record()
			}
			for name, text := range repeated.encode() {
				if meta[name] == "" || name != "source_sha256" && name != "bundle_format" {
					meta[name] = text
				}
			}
			meta["architecture"] = architecture
		}
		meta[key] = value
		size := 0
		for name, text := range meta {
			size += len(name) + len(text)
		}
		var got facts
		var err error
		if used := alloctest.Bytes(func() { got, err = decodeFacts(meta) }); used > uint64(
			32*size+1<<16) { // JSON that is not UTF-8 is made so
			t.Fatalf("%d bytes allocated for metadata of %d", used, size)
		}
		if err != nil {
			if !refusedKind(err) {
				t.Fatalf("no kind: %v", err)
			}
			return
		}
		again, err := decodeFacts(got.encode())
		if err != nil || !reflect.DeepEqual(again, got) {
			t.Fatalf("%v\nread  %+v\nagain %+v", err, got, again)
		}
		if got.arch.Shape.Layers > 100 {
			return // OpenImage lists the tensors of a file that has as many
		}
		if total := got.dataSize(); total < int64(got.record()) {
			t.Fatalf("%d bytes of tensors with records of %d", total, got.record())
		}
	})
}

// FuzzImage opens files of zeros behind any header. Opening takes memory in proportion to the file;
// what is opened can be read to its end, and lies where the geometry says.
func FuzzImage(f *testing.F) {
	for _, s := range seeds() {
		header, err := checkpoint.HeaderBytes(s.tensors(), s.encode(), checkpoint.WriterOptions{
			HeaderAlign: imageAlign, AlignTensor: bundlesName(0)})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(header[8:], uint32(s.dataSize()))
	}
	path := filepath.Join(f.TempDir(), "x")
	f.Fuzz(func(t *testing.T, header []byte, data uint32) {
		const most = 1 << 20 // of data: the table and the weights are read
		file := append(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header...)
		size := len(file) + int(data%most)
		if err := errors.Join(os.WriteFile(path, file, 0o600),
			os.Truncate(path, int64(size))); err != nil {
			t.Fatal(err)
		}
		var img *Image
		var err error
		// A tensor of three bytes in the header has a name, a shape and a place when it is open;
		// the list of what the metadata means has them again.
		used := alloctest.Bytes(func() { img, err = OpenImage(t.Context(), path) })
		if used > uint64(16*size+1<<19) {
			t.Fatalf("%d bytes allocated for a file of %d", used, size)
		}
		if err != nil {
			if !refusedKind(err) {
				t.Fatalf("no kind: %v", err)
			}
			return
		}
		defer img.Close()
		geo := img.Geometry()
		for l, base := range geo.Base {
			end := base + int64(geo.Units)*int64(geo.Stride)
			if base < 0 || base%imageAlign != 0 || end > int64(size) || geo.Record > geo.Stride {
				t.Fatalf("layer %d: %+v in a file of %d", l, geo, size)
			}
			if err := img.Bundles(l, make([]byte, img.LayerBytes())); err != nil {
				t.Fatal(err)
			}
		}
		w, err := img.Weights(t.Context())
		if err != nil {
			t.Fatal(err) // zeros are finite
		}
		if w.Bytes() != img.ResidentBytes() {
			t.Fatalf("%v of weights, %v by the metadata", w.Bytes(), img.ResidentBytes())
		}
	})
}

// FuzzArch reads any text as an architecture: what is accepted is the same when it is written
// again.
func FuzzArch(f *testing.F) {
	for _, s := range seeds() {
		f.Add(s.arch.encode())
	}
	f.Add(`{"activation":"fatrelu:0.01"}`)
	f.Fuzz(func(t *testing.T, text string) {
		a, err := decodeArch(text)
		if err != nil {
			if !refusedKind(err) {
				t.Fatalf("no kind: %v", err)
			}
			return
		}
		if b, err := decodeArch(a.encode()); err != nil || !reflect.DeepEqual(a, b) {
			t.Fatalf("%v\nread  %+v\nagain %+v", err, a, b)
		}
		if _, err := json.Marshal(a); err != nil {
			t.Fatal(err)
		}
	})
}

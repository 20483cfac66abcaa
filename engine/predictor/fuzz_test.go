package predictor

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/windrow-sim/windrow/engine/checkpoint"
	"github.com/windrow-sim/windrow/internal/alloctest"
	"github.com/windrow-sim/windrow/internal/mask"
)

// Reading a file of n bytes may allocate this much in all: weights are read as float32, as blocks
// of bytes and as float16, and errors have a text.
const (
	allocPerByte = 16
	allocFixed   = 1 << 17
)

// inHalves splits a safetensors file into its header, without the length, and its data.
func inHalves(tb testing.TB, path string) (header, data []byte) {
	tb.Helper()
	file, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	n := binary.LittleEndian.Uint64(file)
	return file[8 : 8+n], file[8+n:]
}

// joined writes the file again.
func joined(t *testing.T, path string, header, data []byte) int {
	t.Helper()
	file := append(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header...)
	file = append(file, data...)
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	return len(file)
}

// hasKind demands that an error of a reader says what is wrong with the file.
func hasKind(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, checkpoint.ErrFormat) && !errors.Is(err, checkpoint.ErrUnsupported) &&
		!errors.Is(err, ErrMismatch) {
		t.Fatalf("no kind: %v", err)
	}
}

// FuzzLoad reads any header and weights as a low-rank predictor. It takes memory in proportion to
// the file. A predictor that is accepted predicts, and is the same when it is written and read
// again.
func FuzzLoad(f *testing.F) {
	path := filepath.Join(f.TempDir(), "p.safetensors")
	if err := tiny(f).Save(path); err != nil {
		f.Fatal(err)
	}
	header, data := inHalves(f, path)
	f.Add(header, data)
	f.Add(header, data[:len(data)-1])
	f.Add([]byte(`{"__metadata__":{"format":"windrow low-rank predictor","format_version":"1",`+
		`"kind":"relu","layers":"4096","width":"1","units":"1","cuts":"[0]"}}`), []byte{})
	f.Fuzz(func(t *testing.T, header, data []byte) {
		size := joined(t, path, header, data)
		var p *Predictor
		var err error
		if used := alloctest.Bytes(func() { p, err = Load(t.Context(), path) }); used > uint64(
			allocPerByte*size+allocFixed) {
			t.Fatalf("%d bytes allocated for a file of %d", used, size)
		}
		if err != nil {
			hasKind(t, err)
			return
		}
		if p.Width() <= 1<<12 && p.Units() <= 1<<12 { // of others For says that no model has them
			r := p.Runner(nil)
			need := make(mask.Mask, r.Words())
			for l := range min(p.Layers(), 8) {
				if err := r.Predict(l, make([]float32, p.Width()), need); err != nil {
					t.Fatalf("layer %d: %v", l, err)
				}
			}
		}
		if err := p.Save(path); err != nil {
			t.Fatal(err)
		}
		if q, err := Load(t.Context(), path); err != nil || !reflect.DeepEqual(p, q) {
			t.Fatalf("%v\nread  %+v\nagain %+v", err, p, q)
		}
	})
}

// FuzzState reads any header and weights as a finished layer of a training. What is accepted is a
// layer of this training, and is the same when it is kept and read again.
func FuzzState(f *testing.F) {
	st := &state{dir: f.TempDir(), fingerprint: "f"}
	p := tiny(f)
	for layer := range p.layers {
		rep := &LayerReport{Rank: p.layers[layer].Rank, Epochs: 3, BestEpoch: 2, Loss: 0.25,
			Threshold: 0.5, HeldOut: Score{Samples: 10}}
		if err := st.save(layer, p, rep); err != nil {
			f.Fatal(err)
		}
		header, data := inHalves(f, st.path(layer))
		f.Add(header, data)
	}
	f.Fuzz(func(t *testing.T, header, data []byte) {
		size := joined(t, st.path(0), header, data)
		training := &Predictor{kind: p.kind, width: p.width, units: p.units, layers: make([]Layer,
			1)}
		var rep LayerReport
		var ok bool
		var err error
		used := alloctest.Bytes(func() { ok, err = st.load(t.Context(), 0, training, &rep) })
		if used > uint64(allocPerByte*size+allocFixed) {
			t.Fatalf("%d bytes allocated for a file of %d", used, size)
		}
		if err != nil || !ok {
			hasKind(t, err)
			return
		}
		if err := training.checkLayer(&training.layers[0]); err != nil ||
			rep.Rank != training.layers[0].Rank {
			t.Fatalf("%v, a report of rank %d", err, rep.Rank)
		}
		if err := st.save(0, training, &rep); err != nil {
			t.Fatal(err)
		}
		again := *training
		again.layers = make([]Layer, 1)
		var repAgain LayerReport
		if ok, err := st.load(t.Context(), 0, &again, &repAgain); err != nil || !ok ||
			!reflect.DeepEqual(again, *training) || !reflect.DeepEqual(rep, repAgain) {
			t.Fatalf("%v\nread  %+v %+v\nagain %+v %+v", err, training, rep, again, repAgain)
		}
	})
}

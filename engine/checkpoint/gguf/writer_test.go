package gguf

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/engine/checkpoint/internal/tensor"
)

// writer writes GGUF files by hand, also ones that no program would.
type writer struct{ b []byte }

func (w *writer) u32(n uint32) *writer {
	w.b = binary.LittleEndian.AppendUint32(w.b, n)
	return w
}

func (w *writer) u64(n uint64) *writer {
	w.b = binary.LittleEndian.AppendUint64(w.b, n)
	return w
}

func (w *writer) text(s string) *writer {
	w.u64(uint64(len(s)))
	w.b = append(w.b, s...)
	return w
}

// header starts a file of version 3.
func header(tensors, keys uint64) *writer {
	return (&writer{[]byte(magic)}).u32(3).u64(tensors).u64(keys)
}

func (w *writer) keyU32(key string, n uint32) *writer { return w.text(key).u32(kindU32).u32(n) }
func (w *writer) keyText(key, s string) *writer       { return w.text(key).u32(kindText).text(s) }

func (w *writer) keyF32(key string, v float32) *writer {
	return w.text(key).u32(kindF32).u32(math.Float32bits(v))
}

func (w *writer) keyTexts(key string, list ...string) *writer {
	w.text(key).u32(kindArray).u32(kindText).u64(uint64(len(list)))
	for _, s := range list {
		w.text(s)
	}
	return w
}

// tensor describes a tensor; the dimensions come innermost first, as in the file.
func (w *writer) tensor(name string, number uint32, offset uint64, dims ...uint64) *writer {
	w.text(name).u32(uint32(len(dims)))
	for _, d := range dims {
		w.u64(d)
	}
	return w.u32(number).u64(offset)
}

// data pads the header to the alignment and appends the data.
func (w *writer) data(align int, data []byte) []byte {
	for len(w.b)%align != 0 {
		w.b = append(w.b, 0)
	}
	return append(w.b, data...)
}

func openBytes(b []byte) (*File, error) {
	return newFile(tensor.NewRaw("gguf", "test", bytes.NewReader(b), int64(len(b))))
}

// refused demands an error of a kind that contains every one of the texts.
func refused(t *testing.T, err, kind error, texts ...string) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Fatalf("got %v, want an error of kind %v", err, kind)
	}
	for _, s := range texts {
		if !strings.Contains(err.Error(), s) {
			t.Errorf("%q does not say %q", err, s)
		}
	}
}

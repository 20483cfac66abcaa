package torch

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/engine/checkpoint/internal/tensor"
)

// pickler writes pickles by hand, also ones that no Python would.
type pickler struct{ bytes.Buffer }

func newPickle() *pickler {
	p := &pickler{}
	p.WriteString("\x80\x02")
	return p
}

func (p *pickler) op(text string) *pickler {
	p.WriteString(text)
	return p
}

func (p *pickler) text(s string) *pickler {
	p.WriteByte('X')
	p.Write(binary.LittleEndian.AppendUint32(nil, uint32(len(s))))
	p.WriteString(s)
	return p
}

func (p *pickler) int(n int64) *pickler {
	p.WriteString("\x8a\x08")
	p.Write(binary.LittleEndian.AppendUint64(nil, uint64(n)))
	return p
}

func (p *pickler) ints(list ...int64) *pickler {
	p.op("(")
	for _, n := range list {
		p.int(n)
	}
	return p.op("t")
}

// tensor pushes a tensor of a storage; class is the name of the storage's class in torch.
func (p *pickler) tensor(class, key string, elements, start int64, shape,
	strides []int64) *pickler {
	p.op("ctorch._utils\n_rebuild_tensor_v2\n(")
	p.op("(").text("storage").op("ctorch\n" + class + "\n").text(key).text("cpu").int(elements).op(
		"tQ")
	return p.int(start).ints(shape...).ints(strides...).op("\x89ccollections\nOrderedDict\n)RtR")
}

// one is a dictionary with one tensor "a".
func one(class, key string, elements, start int64, shape, strides []int64) string {
	return newPickle().op("}").text("a").tensor(class, key, elements, start, shape,
		strides).op("s.").String()
}

// archived makes a file from a pickle and other entries, which are given as name, content, name,
// content …
func archived(t testing.TB, pickle string, entries ...string) []byte {
	t.Helper()
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	entries = append([]string{"data.pkl", pickle}, entries...)
	for i := 0; i < len(entries); i += 2 {
		w, err := z.CreateHeader(&zip.FileHeader{Name: "x/" + entries[i], Method: zip.Store})
		if err == nil {
			_, err = w.Write([]byte(entries[i+1]))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func openBytes(b []byte) (*File, error) {
	return newFile(tensor.NewRaw("torch", "test", bytes.NewReader(b), int64(len(b))))
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

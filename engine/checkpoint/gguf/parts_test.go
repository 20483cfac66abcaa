package gguf

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// shard describes one file of a model in several: what it says of itself, and its tensors.
type shard struct {
	number, count, total uint32
	arch                 string   // "" = no key
	tensors              []string // of one F32 each, which is 1, 2, 3, ... over all shards
}

// bytes makes the file; first is the value of its first tensor.
func (s shard) bytes(first float32) []byte {
	keys := uint64(3)
	if s.arch != "" {
		keys++
	}
	w := header(uint64(len(s.tensors)), keys).keyU32(splitNumber, s.number).keyU32(splitCount,
		s.count).keyU32(splitTensors, s.total)
	if s.arch != "" {
		w.keyText("general.architecture", s.arch)
	}
	data := make([]byte, 32*len(s.tensors))
	for i, name := range s.tensors {
		w.tensor(name, 0, uint64(32*i), 1)
		copy(data[32*i:], floats(first+float32(i)))
	}
	return w.data(32, data)
}

// three are the parts of a whole model.
func three() []shard {
	return []shard{{0, 3, 5, "llama", []string{"e", "a"}}, {1, 3, 5, "", []string{"d"}},
		{2, 3, 5, "", []string{"b", "c"}}}
}

// write writes shards under the names that they should have, and returns those.
func write(t *testing.T, shards []shard) (paths []string) {
	t.Helper()
	dir, first := t.TempDir(), float32(1)
	for i, s := range shards {
		path := filepath.Join(dir, fmt.Sprintf("a-b-%05d-of-%05d.gguf", i+1, len(shards)))
		if err := os.WriteFile(path, s.bytes(first), 0o600); err != nil {
			t.Fatal(err)
		}
		paths, first = append(paths, path), first+float32(len(s.tensors))
	}
	return paths
}

// openFiles counts the open files of this process, 0 where that cannot be told.
func openFiles() int {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(entries)
}

// TestField_X2_AnyPartFindsTheOthers: whichever file is named, the model is the same.
func TestField_X2_AnyPartFindsTheOthers(t *testing.T) {
	before := openFiles()
	for _, path := range write(t, three()) {
		f, err := Open(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		arch, _, err := Get[string](f, "general.architecture")
		if f.Name() != path || arch != "llama" || err != nil || len(f.Notes()) != 0 {
			t.Errorf("%s, architecture %q, %v, %q", f.Name(), arch, err, f.Notes())
		}
		var names []string
		for _, x := range f.Tensors() {
			names = append(names, x.Name)
			s, err := f.Section(x.Name)
			if err != nil {
				t.Fatal(err)
			}
			raw, err := io.ReadAll(s)
			if err != nil || !bytes.Equal(raw, floats(float32(len(names)))) {
				t.Errorf("%s is %v, %v", x.Name, raw, err)
			}
		}
		if !slices.Equal(names, []string{"e", "a", "d", "b", "c"}) {
			t.Errorf("tensors %q", names)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		if BaseName(path) != "a-b.gguf" {
			t.Errorf("base name %s", BaseName(path))
		}
	}
	// gguf-py's own parts, of which the first has no tensor
	parts, err := filepath.Glob("../../testdata/gguf/qwen2-tied-bf16-*.gguf")
	if err != nil || len(parts) != 4 {
		t.Fatal(parts, err)
	}
	for _, path := range parts {
		f, err := Open(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		if o, err := NewOriginal(f); err != nil || len(o.Tensors()) != 38 {
			t.Errorf("%v", err)
		}
		f.Close()
	}
	if after := openFiles(); after != before {
		t.Errorf("%d files are open, %d were", after, before)
	}
}

// TestField_X2_PartsThatDisagree: files that are missing, that do not belong together, or that have
// the name of another part are refused before any tensor is read, and none stays open.
func TestField_X2_PartsThatDisagree(t *testing.T) {
	for name, c := range map[string]struct {
		change func(list []shard)
		files  func(t *testing.T, paths []string)
		want   []string
	}{
		"swapped names": {nil, func(t *testing.T, paths []string) {
			rename(t, paths[1], "x")
			rename(t, paths[2], paths[1])
			rename(t, "x", paths[2])
		}, []string{"part 2 of 3 by its name", "split.no is 2, not 1"}},
		"one of four": {func(list []shard) { list[1].count = 4 }, nil,
			[]string{"one of 3", "split.count"}},
		"one missing": {nil, func(t *testing.T, paths []string) { remove(t, paths[2]) },
			[]string{"a-b-00003-of-00003.gguf", "missing beside it", "download"}},
		"two missing": {nil, func(t *testing.T, paths []string) {
			remove(t, paths[0])
			remove(t, paths[2])
		}, []string{"a-b-00001-of-00003.gguf, a-b-00003-of-00003.gguf;"}},
		"a tensor twice": {func(list []shard) { list[2].tensors[1] = "a" }, nil,
			[]string{`"a" is in two files, parts 1 and 3`}},
		"a tensor less": {func(list []shard) {
			for i := range list {
				list[i].total = 6
			}
		}, nil, []string{"split.tensors.count is 6", "have 5 tensors"}},
		"another total": {func(list []shard) { list[2].total = 9 }, nil,
			[]string{"another value of split.tensors.count"}},
		"another architecture": {func(list []shard) { list[2].arch = "qwen2" }, nil,
			[]string{"another value of general.architecture", "a-b-00001-of-00003.gguf"}},
		"another number": {func(list []shard) { list[0].number = 1 }, nil,
			[]string{"split.no is 1, not 0"}},
		"a part cut off": {nil, func(t *testing.T, paths []string) {
			if err := os.Truncate(paths[2], 100); err != nil {
				t.Fatal(err)
			}
		}, []string{"a-b-00003-of-00003.gguf", "truncated"}},
		"no part": {nil, func(t *testing.T, paths []string) {
			if err := os.WriteFile(paths[2], header(0, 0).b, 0o600); err != nil {
				t.Fatal(err)
			}
		}, []string{"a-b-00003-of-00003.gguf", "split.no is missing"}},
	} {
		t.Run(name, func(t *testing.T) {
			list := three()
			if c.change != nil {
				c.change(list)
			}
			paths := write(t, list)
			t.Chdir(filepath.Dir(paths[0]))
			if c.files != nil {
				c.files(t, paths)
			}
			before := openFiles()
			_, err := Open(t.Context(), paths[1]) // always there, with the keys of a part
			refused(t, err, errFormat, c.want...)
			if after := openFiles(); after != before {
				t.Errorf("%d files are open, %d were", after, before)
			}
		})
	}
}

func rename(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

// TestField_X2_NamesOfParts: the others are found by the name, so it must have its form.
func TestField_X2_NamesOfParts(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a.gguf", "a-1-of-3.gguf", "a-00004-of-00003.gguf",
		"a-00000-of-00003.gguf", "a-0000x-of-00003.gguf", "00001-of-00003"} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, three()[0].bytes(1), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Open(t.Context(), path)
		refused(t, err, errFormat, "one of the 3 files", "model-00001-of-00003.gguf",
			"llama-gguf-split --merge")
		if BaseName(path) != name {
			t.Errorf("%s is called %s", name, BaseName(path))
		}
	}
	// Many are missing.
	path := filepath.Join(dir, "m-00007-of-60000.gguf")
	if err := os.WriteFile(path, shard{6, 60000, 1, "", nil}.bytes(1), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Open(t.Context(), path)
	refused(t, err, errFormat, "m-00001-of-60000.gguf, m-00002", "m-00013-of-60000.gguf and "+
		"perhaps more")
	if err := os.WriteFile(path, shard{6, 1 << 20, 1, "", nil}.bytes(1), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = Open(t.Context(), path)
	refused(t, err, errFormat, "split.count is 1048576")
	// A model in one file may say so, or have been joined.
	for _, count := range []uint32{0, 1} {
		f, err := openBytes(shard{0, count, 1, "", []string{"a"}}.bytes(1))
		if err != nil {
			t.Fatal(err)
		}
		if f, err = f.whole(t.Context()); err != nil || len(f.Tensors()) != 1 {
			t.Errorf("%d: %v", count, err)
		}
	}
}

// FuzzJoin: whatever the parts, no panic, and an error with a kind or tensors that can be read.
func FuzzJoin(f *testing.F) {
	list := three()[:2]
	for i := range list {
		list[i].count, list[i].total = 2, 3
	}
	first, second := list[0].bytes(1), list[1].bytes(3)
	f.Add(first, second)
	f.Add(second, first)
	f.Add(first, first)
	f.Add(first, []byte(strings.Repeat("x", 40)))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		var parts []*File
		for _, data := range [][]byte{a, b} {
			part, err := openBytes(data)
			if err != nil {
				return
			}
			parts = append(parts, part)
		}
		whole, err := join("test", parts)
		if err != nil {
			if !errors.Is(err, errFormat) {
				t.Fatalf("no kind: %v", err)
			}
			return
		}
		if n := len(parts[0].tensors) + len(parts[1].tensors); len(whole.Tensors()) != n {
			t.Fatalf("%d tensors of %d", len(whole.Tensors()), n)
		}
		readsAll(t, whole)
	})
}

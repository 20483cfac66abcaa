package checkpoint

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/internal/refusal"
)

// folder makes a folder: names ending in .safetensors get the tensors that their text lists, others
// the text itself.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		var err error
		if filepath.Ext(name) == ".safetensors" {
			var tensors []TensorInfo
			for _, x := range strings.Fields(text) {
				tensors = append(tensors, TensorInfo{Name: x, DType: F16, Shape: []int64{2}})
			}
			err = write(path, tensors, nil, WriterOptions{})
		} else {
			err = os.WriteFile(path, []byte(text), 0o666)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const (
	shard1 = "model-00001-of-00002.safetensors"
	shard2 = "model-00002-of-00002.safetensors"
	index  = `{"metadata":{"total_size":12},"weight_map":{"a":"` + shard1 + `","b":"` + shard2 +
		`","c":"` + shard2 + `"}}`
)

func TestFolderWithOneFileAndWithShards(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"one file": {"config.json": `{"x":1}`, "model.safetensors": "a b c"},
		"shards":   {"config.json": `{"x":1}`, indexName: index, shard1: "a", shard2: "c b"},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := OpenFolder(t.Context(), folder(t, files), FolderOptions{})
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			var names string
			for _, x := range f.Tensors() {
				names += x.Name
				if err := f.ReadTensor(x.Name, make([]byte, x.Size)); err != nil {
					t.Error(err)
				}
				if s, err := f.Section(x.Name); err != nil || s.Size() != 4 {
					t.Errorf("section of %s: %v", x.Name, err)
				}
			}
			if names != "abc" || len(f.Notes()) != 0 {
				t.Errorf("tensors %q, notes %v", names, f.Notes())
			}
			if _, ok := f.Tensor("A"); ok {
				t.Error("names are compared without case")
			}
			if _, err := f.Section("d"); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("missing tensor: %v", err)
			}
			x := 0
			if ok, err := f.Config().Get("x", &x); !ok || err != nil || x != 1 {
				t.Errorf("config x = %d, %v", x, err)
			}
			if ok, _ := f.Config().Get("X", &x); ok {
				t.Error("names of config.json are compared without case")
			}
		})
	}
}

func TestField_M8_MissingShard(t *testing.T) {
	_, err := OpenFolder(t.Context(), folder(t, map[string]string{"config.json": "{}",
		indexName: index,
		shard1:    "a"}), FolderOptions{})
	refused(t, err, ErrFormat, "1 of 2 shards", shard2, "incomplete download")
	if strings.Contains(err.Error(), "stale") {
		t.Errorf("nothing speaks for a stale index: %v", err)
	}
}

func TestField_M10_StaleIndexAndStrayFiles(t *testing.T) {
	stray := map[string]string{"config.json": "{}", indexName: index, shard1: "a",
		shard2: "b c extra", "model.safetensors": "a b c"}
	f, err := OpenFolder(t.Context(), folder(t, stray), FolderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	notes := strings.Join(f.Notes(), "\n")
	if !strings.Contains(notes, "model.safetensors: not read") || !strings.Contains(notes,
		"does not list them: extra") {
		t.Errorf("notes %q", notes)
	}
	if _, ok := f.Tensor("extra"); ok {
		t.Error("a tensor that the index does not list is there")
	}
	f.Close()
	_, err = OpenFolder(t.Context(), folder(t, stray), FolderOptions{IgnoreIndex: true})
	refused(t, err, ErrFormat, `"a" is in`, "model.safetensors")

	// The index expects two shards, all weights are in one file of another name.
	stale := map[string]string{"config.json": "{}", indexName: index,
		"model-00001-of-00001.safetensors": "a b c"}
	_, err = OpenFolder(t.Context(), folder(t, stale), FolderOptions{})
	refused(t, err, ErrFormat, "2 of 2 shards are missing", "stale index",
		"model-00001-of-00001.safetensors")
	f, err = OpenFolder(t.Context(), folder(t, stale), FolderOptions{IgnoreIndex: true})
	if err != nil || len(f.Tensors()) != 3 {
		t.Fatalf("ignoring the index: %v", err)
	}
	f.Close()

	moved := map[string]string{"config.json": "{}", indexName: index, shard1: "a c", shard2: "b"}
	_, err = OpenFolder(t.Context(), folder(t, moved), FolderOptions{})
	refused(t, err, ErrFormat, `"c" in `+shard2, "stale")

	// A program names the remedy by its flag, for each of the refusals that have it.
	unlisted := map[string]string{"config.json": "{}", "model-00001-of-00002.safetensors": "a"}
	for _, files := range []map[string]string{stale, moved, unlisted} {
		_, err := OpenFolder(t.Context(), folder(t, files), FolderOptions{})
		text := refusal.Text(err, func(field string) string { return "--flag-of-" + field })
		if !errors.Is(err, ErrFormat) || !strings.Contains(text,
			"--flag-of-IgnoreIndex takes all files") {
			t.Errorf("%s", text)
		}
	}
}

func TestField_M14_DuplicateNamesInConfigAndIndex(t *testing.T) {
	_, err := OpenFolder(t.Context(), folder(t, map[string]string{"config.json": `{"a":1,"a":2}`,
		"model.safetensors": "a"}), FolderOptions{})
	refused(t, err, ErrFormat, "config.json", `"a" occurs twice`)
	_, err = OpenFolder(t.Context(), folder(t, map[string]string{
		"config.json":       `{"a":[{"b":1,"b":2}]}`,
		"model.safetensors": "a"}), FolderOptions{})
	refused(t, err, ErrFormat, `"b" occurs twice`)
	twice := `{"weight_map":{"a":"model.safetensors","a":"model.safetensors"}}`
	_, err = OpenFolder(t.Context(), folder(t, map[string]string{"config.json": "{}",
		indexName:           twice,
		"model.safetensors": "a"}), FolderOptions{})
	refused(t, err, ErrFormat, indexName, `"a" occurs twice`)
}

func TestFolderSaysWhatIsWrong(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		kind  error
		want  string
	}{
		"empty": {nil, fs.ErrNotExist, "config.json"},
		"no weights": {map[string]string{"config.json": "{}"}, fs.ErrNotExist,
			"model.safetensors"},
		"only bin": {map[string]string{"config.json": "{}", "pytorch_model.bin": "x"},
			ErrFormat, "not a file of torch.save"},
		"only pt": {map[string]string{"config.json": "{}", "model.pt": "x",
			"training_args.bin": "x"}, ErrUnsupported, "model.pt, training_args.bin; save them as"},
		"only gguf": {map[string]string{"config.json": "{}", "a.gguf": "x"}, ErrUnsupported,
			"a.gguf; name the file itself"},
		"no index": {map[string]string{"config.json": "{}", shard1: "a"}, ErrFormat,
			"incomplete download"},
		"config": {map[string]string{"config.json": "[]", "model.safetensors": "a"},
			ErrFormat, "config.json"},
		"deep config": {map[string]string{"config.json": `{"a":` + strings.Repeat("[", 100) +
			strings.Repeat("]", 100) + "}"}, ErrFormat, "nested"},
		"no weight_map": {map[string]string{"config.json": "{}", indexName: "{}",
			"model.safetensors": "a"}, ErrFormat, "weight_map"},
		"outside": {map[string]string{"config.json": "{}",
			indexName: `{"weight_map":{"a":"../a.safetensors"}}`}, ErrFormat, "of this folder"},
		"number as file": {map[string]string{"config.json": "{}",
			indexName: `{"weight_map":{"a":1}}`}, ErrFormat, "weight_map"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := OpenFolder(t.Context(), folder(t, c.files), FolderOptions{})
			refused(t, err, c.kind, c.want)
		})
	}
}

// FuzzParseObject: an accepted text is a JSON object for encoding/json too.
func FuzzParseObject(f *testing.F) {
	f.Add([]byte(`{"a":{"b":[1,2,{"c":null}]},"d":true}`))
	f.Add([]byte(`{"a":1,"a":2}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		o, err := ParseObject(data)
		if err != nil {
			if !errors.Is(err, ErrFormat) {
				t.Fatalf("no kind: %v", err)
			}
			return
		}
		for _, name := range o.Names() {
			var v any
			if _, err := o.Get(name, &v); err != nil {
				t.Fatalf("%q: %v", name, err)
			}
		}
	})
}

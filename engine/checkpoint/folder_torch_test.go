package checkpoint

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	bin1     = "pytorch_model-00001-of-00002.bin"
	bin2     = "pytorch_model-00002-of-00002.bin"
	binIndex = "pytorch_model.bin.index.json"
)

// sharded copies the PyTorch folder of the fixtures: a.bias and a.weight in the first shard,
// b.weight in the second. More files are given by name with their text, or with nothing to leave
// one of the folder out.
func sharded(t *testing.T, more map[string]string) string {
	t.Helper()
	dir := folder(t, more)
	if err := os.CopyFS(filepath.Join(dir, "copy"),
		os.DirFS("torch/testdata/sharded")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"config.json", bin1, bin2, binIndex} {
		text, given := more[name]
		var err error
		switch {
		case !given:
			err = os.Rename(filepath.Join(dir, "copy", name), filepath.Join(dir, name))
		case text == "":
			err = os.Remove(filepath.Join(dir, name))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func names(f *Folder) string {
	var list []string
	for _, x := range f.Tensors() {
		list = append(list, x.Name)
	}
	return strings.Join(list, " ")
}

func TestFolderWithPyTorchShards(t *testing.T) {
	f, err := OpenFolder(t.Context(), sharded(t, nil), FolderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if names(f) != "a.bias a.weight b.weight" || len(f.Notes()) != 0 {
		t.Errorf("tensors %q, notes %q", names(f), f.Notes())
	}
	b, _ := f.Tensor("b.weight")
	if b.DType != F16 || b.Size != 12 {
		t.Errorf("%+v", b)
	}
	if err := f.ReadTensor("b.weight", make([]byte, 12)); err != nil {
		t.Error(err)
	}
	if err := f.ReadTensor("b.weight", make([]byte, 13)); err == nil {
		t.Error("a buffer of the wrong size was accepted")
	}
}

func TestFolderWithOnePyTorchFile(t *testing.T) {
	dir := folder(t, map[string]string{"config.json": "{}", "optimizer.bin": "x"})
	data, err := os.ReadFile("torch/testdata/extras.bin")
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "pytorch_model.bin"), data, 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
	f, err := OpenFolder(t.Context(), dir, FolderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if notes := strings.Join(f.Notes(), "\n"); names(f) != "a" || !strings.HasPrefix(notes,
		"pytorch_model.bin: not read, because it is not a tensor") {
		t.Errorf("tensors %q, notes %q", names(f), notes)
	}
}

func TestSafetensorsArePreferred(t *testing.T) {
	for name, more := range map[string]map[string]string{
		"one file": {"model.safetensors": "a"},
		"shards":   {indexName: index, shard1: "a", shard2: "b c"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, ignore := range []bool{false, true} {
				f, err := OpenFolder(t.Context(), sharded(t, more),
					FolderOptions{IgnoreIndex: ignore})
				if err != nil {
					t.Fatal(err)
				}
				defer f.Close()
				notes := strings.Join(f.Notes(), "\n")
				if _, ok := f.Tensor("a"); !ok || !strings.HasPrefix(notes,
					bin1+", "+bin2+": not read, because ") {
					t.Errorf("tensors %q, notes %q", names(f), notes)
				}
			}
		})
	}
	// A stray file of safetensors that no name of the format points to is not the model.
	f, err := OpenFolder(t.Context(), sharded(t, map[string]string{
		"adapter_model.safetensors": "a"}),
		FolderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if notes := strings.Join(f.Notes(), "\n"); names(f) != "a.bias a.weight b.weight" ||
		notes != "adapter_model.safetensors: not read, because the index was followed" {
		t.Errorf("tensors %q, notes %q", names(f), notes)
	}
}

func TestField_M8_MissingPyTorchShard(t *testing.T) {
	_, err := OpenFolder(t.Context(), sharded(t, map[string]string{bin2: ""}), FolderOptions{})
	refused(t, err, ErrFormat, "1 of 2 shards", bin2, "incomplete download")
	_, err = OpenFolder(t.Context(), sharded(t, map[string]string{binIndex: ""}), FolderOptions{})
	refused(t, err, ErrFormat, bin1, "neither "+binIndex, "incomplete download")
}

func TestField_M10_StalePyTorchIndexAndStrayFiles(t *testing.T) {
	f, err := OpenFolder(t.Context(), sharded(t, map[string]string{"pytorch_model.bin": "stray"}),
		FolderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if notes := strings.Join(f.Notes(), "\n"); notes != "pytorch_model.bin: not read, because "+
		"the index was followed" {
		t.Errorf("notes %q", notes)
	}
	stale := `{"weight_map":{"a.weight":"` + bin1 + `","b.weight":"` + bin1 + `"}}`
	_, err = OpenFolder(t.Context(), sharded(t, map[string]string{binIndex: stale}),
		FolderOptions{})
	refused(t, err, ErrFormat, `"b.weight" in `+bin1, "stale")
	f, err = OpenFolder(t.Context(), sharded(t, map[string]string{binIndex: stale}), FolderOptions{
		IgnoreIndex: true})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if names(f) != "a.bias a.weight b.weight" {
		t.Errorf("tensors %q", names(f))
	}
	short := `{"weight_map":{"a.weight":"` + bin1 + `"}}`
	f, err = OpenFolder(t.Context(), sharded(t, map[string]string{binIndex: short}),
		FolderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if notes := strings.Join(f.Notes(), "\n"); names(f) != "a.weight" || !strings.Contains(notes,
		"does not list them: a.bias") || !strings.Contains(notes, bin2+": not read") {
		t.Errorf("tensors %q, notes %q", names(f), notes)
	}
}

func TestField_M14_PyTorchIndex(t *testing.T) {
	for name, c := range map[string]struct{ index, want string }{
		"twice": {`{"weight_map":{"a":"` + bin1 + `","a":"` + bin2 + `"}}`,
			`"a" occurs twice`},
		"outside":       {`{"weight_map":{"a":"../pytorch_model.bin"}}`, "of this folder"},
		"not weights":   {`{"weight_map":{"a":"optimizer.bin"}}`, "pytorch_model*.bin"},
		"no weight_map": {`{}`, "weight_map"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := OpenFolder(t.Context(), sharded(t, map[string]string{binIndex: c.index}),
				FolderOptions{})
			refused(t, err, ErrFormat, binIndex, c.want)
		})
	}
}

package checkpoint

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/windrow-sim/windrow/engine/checkpoint/torch"
	"github.com/windrow-sim/windrow/internal/input"
	"github.com/windrow-sim/windrow/internal/refusal"
)

// configName is the configuration of every Hugging Face folder.
const configName = "config.json"

// generationName has the defaults of generation; a folder may lack it.
const generationName = "generation_config.json"

// The names of weights as safetensors.
const (
	singleName = "model.safetensors"
	indexName  = "model.safetensors.index.json"
)

// format is a format of the weights of a folder.
type format struct {
	single, index string
	prefix, ext   string // of the names of all files
	open          func(ctx context.Context, path string) (Tensors, error)
}

// formats lists the formats, the preferred one first: less can go wrong with safetensors.
func formats() []format {
	return []format{
		{singleName, indexName, "", ".safetensors", func(ctx context.Context, path string) (Tensors,
			error) {
			return result(Open(ctx, path))
		}},
		// The prefix leaves out other files of a training run, such as optimizer.bin.
		{"pytorch_model.bin", "pytorch_model.bin.index.json", "pytorch_model", ".bin",
			func(ctx context.Context, path string) (Tensors, error) {
				return result(torch.Open(ctx, path))
			}},
	}
}

func (w format) owns(name string) bool {
	return strings.HasPrefix(name, w.prefix) && filepath.Ext(name) == w.ext
}

// maxJSON bounds the size of config.json and of the index; the index of the largest public model
// has a few MB.
const maxJSON = 64 << 20

// FolderOptions configure the opening of a folder.
type FolderOptions struct {
	// IgnoreIndex reads every *.safetensors file of the folder, or without those every
	// pytorch_model*.bin, instead of the files in the index.
	IgnoreIndex bool
}

// Folder is an open Hugging Face folder: a configuration and the tensors of one or more files of
// one format. Its methods are safe for concurrent use.
type Folder struct {
	dir    string
	config Object
	// of generation_config.json; nil where there is none
	generation Object

	format format
	files  []Tensors
	where  map[string]int // tensor → index of its file
	notes  []string
}

// OpenFolder opens config.json and the weights: the shards in model.safetensors.index.json, or else
// model.safetensors, or else the same of pytorch_model.bin. A missing shard, a contradiction
// between index and shards, and a broken shard are errors. Files outside the choice are left out
// with a note.
func OpenFolder(ctx context.Context, dir string, opt FolderOptions) (*Folder, error) {
	f := &Folder{dir: dir, where: map[string]int{}}
	if err := f.open(ctx, opt); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func (f *Folder) open(ctx context.Context, opt FolderOptions) error {
	var err error
	if f.config, err = f.readObject(ctx, configName); err != nil {
		return err
	}
	f.generation, err = f.readObject(ctx, generationName)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	all, err := f.list()
	if err != nil {
		return err
	}
	var present []string // of all formats, the preferred first
	for _, w := range formats() {
		present = append(present, only(all, w)...)
	}
	for _, f.format = range formats() {
		mine := only(all, f.format)
		if opt.IgnoreIndex {
			if len(mine) > 0 {
				f.noteStray(present, mine, "files ending in "+f.format.ext+" are preferred")
				return f.openFiles(ctx, mine, nil)
			}
			continue
		}
		index, err := f.readObject(ctx, f.format.index)
		switch {
		case err == nil:
			return f.openIndex(ctx, index, mine, present)
		case !errors.Is(err, fs.ErrNotExist):
			return err
		case slices.Contains(mine, f.format.single):
			f.noteStray(present, []string{f.format.single}, f.format.single+" was followed")
			return f.openFiles(ctx, []string{f.format.single}, nil)
		}
	}
	return f.noWeights(all, present)
}

// only returns the names of one format.
func only(names []string, w format) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !w.owns(name) })
}

// noWeights names other kinds of weights in the folder, if any.
func (f *Folder) noWeights(all, present []string) error {
	if len(present) > 0 {
		w := formats()[slices.IndexFunc(formats(), func(w format) bool {
			return w.owns(present[0])
		})]
		return fmt.Errorf("checkpoint: %s: %w: %s but neither %s nor %s; incomplete download? %w",
			f.dir, ErrFormat, strings.Join(present, ", "), w.index, w.single, takeAll())
	}
	var others []string
	for _, name := range all {
		switch filepath.Ext(name) {
		case ".gguf":
			return fmt.Errorf("checkpoint: %s: %w: weights as %s; name the file itself", f.dir,
				ErrUnsupported, name)
		case ".bin", ".pt", ".pth":
			others = append(others, name)
		}
	}
	if len(others) > 0 {
		return fmt.Errorf("checkpoint: %s: %w: weights as %s; save them as safetensors or "+
			"pytorch_model.bin", f.dir, ErrUnsupported, strings.Join(others, ", "))
	}
	return fmt.Errorf("checkpoint: %s: %w: no %s", f.dir, fs.ErrNotExist, singleName)
}

// list returns the names of the files, sorted.
func (f *Folder) list() ([]string, error) {
	entries, err := os.ReadDir(f.dir)
	if err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, nil
}

func (f *Folder) readObject(ctx context.Context, name string) (Object, error) {
	path := filepath.Join(f.dir, name)
	data, err := input.ReadDocument(ctx, path, input.Limit{Most: maxJSON})
	if errors.Is(err, input.ErrTooLarge) || errors.Is(err, input.ErrKind) {
		return nil, fmt.Errorf("checkpoint: %w: %w", err, ErrFormat)
	}
	if err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	o, err := ParseObject(data)
	if err != nil {
		return nil, fmt.Errorf("checkpoint: %s: %w", path, err)
	}
	return o, nil
}

// openIndex opens the shards of the index and compares their tensors with it. mine are the files of
// the index's format, present those of all formats.
func (f *Folder) openIndex(ctx context.Context, index Object, mine, present []string) error {
	weightMap := map[string]string{}
	ok, err := index.Get("weight_map", &weightMap)
	if err == nil && !ok {
		err = fmt.Errorf("%w: no weight_map", ErrFormat)
	}
	if err != nil {
		return fmt.Errorf("checkpoint: %s: %w", filepath.Join(f.dir, f.format.index), err)
	}
	var shards, missing []string
	for _, tensor := range slices.Sorted(maps.Keys(weightMap)) {
		file := weightMap[tensor]
		if file != filepath.Base(file) || strings.ContainsAny(file, `/\`) || !f.format.owns(file) {
			return fmt.Errorf("checkpoint: %s: %w: tensor %q in %q, which is not a file %s*%s "+
				"of this folder",
				filepath.Join(f.dir, f.format.index), ErrFormat, tensor, file, f.format.prefix,
				f.format.ext)
		}
		shards = append(shards, file)
	}
	slices.Sort(shards)
	shards = slices.Compact(shards)
	for _, s := range shards {
		if !slices.Contains(mine, s) {
			missing = append(missing, s)
		}
	}
	if len(missing) > 0 {
		return f.missingShards(missing, len(shards), mine, shards)
	}
	f.noteStray(present, shards, "the index was followed")
	return f.openFiles(ctx, shards, weightMap)
}

// missingShards distinguishes an incomplete download from an index of another set of files.
func (f *Folder) missingShards(missing []string, total int, present, shards []string) error {
	lacking := fmt.Errorf("checkpoint: %s: %w: %d of %d shards are missing: %s; incomplete "+
		"download",
		f.dir, ErrFormat, len(missing), total, strings.Join(missing, ", "))
	if extra := without(present, shards); len(extra) > 0 {
		return fmt.Errorf("%w, or a stale index: %s is not in it (%w)", lacking,
			strings.Join(extra, ", "), takeAll())
	}
	return lacking
}

// takeAll is the remedy for an index that does not fit the files.
func takeAll() error { return refusal.Input("{IgnoreIndex} takes all files") }

func without(list, remove []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool {
		return slices.Contains(remove, s)
	})
}

func (f *Folder) noteStray(present, used []string, why string) {
	if stray := without(present, used); len(stray) > 0 {
		f.notes = append(f.notes, fmt.Sprintf("%s: not read, because %s", strings.Join(stray, ", "),
			why))
	}
}

// openFiles opens the named files. With a weight map a tensor must be in the file of the map, and a
// tensor outside the map is left out. Without one every tensor counts and may occur only once.
func (f *Folder) openFiles(ctx context.Context, names []string, weightMap map[string]string) error {
	var unlisted []string
	for i, name := range names {
		file, err := f.format.open(ctx, filepath.Join(f.dir, name))
		if err != nil {
			return err
		}
		f.files = append(f.files, file)
		if noted, ok := file.(interface{ Notes() []string }); ok {
			for _, note := range noted.Notes() {
				f.notes = append(f.notes, name+": "+note)
			}
		}
		for _, t := range file.Tensors() {
			if _, listed := weightMap[t.Name]; weightMap != nil && !listed {
				unlisted = append(unlisted, t.Name)
				continue
			}
			if weightMap != nil && weightMap[t.Name] != name {
				f.notes = append(f.notes, fmt.Sprintf("%s: second copy in %s not read, because "+
					"the index was followed", t.Name, name))
				continue
			}
			if first, twice := f.where[t.Name]; twice {
				return fmt.Errorf("checkpoint: %s: %w: tensor %q is in %s and in %s; remove the "+
					"file that is not part of the model",
					f.dir, ErrFormat, t.Name, names[first], name)
			}
			f.where[t.Name] = i
		}
	}
	if len(unlisted) > 0 {
		slices.Sort(unlisted)
		f.notes = append(f.notes, fmt.Sprintf("not read, because the index does not list them: %s",
			strings.Join(unlisted, ", ")))
	}
	return f.checkMap(weightMap)
}

// checkMap demands that every tensor of the index was found.
func (f *Folder) checkMap(weightMap map[string]string) error {
	var lost []string
	for tensor, file := range weightMap {
		if _, ok := f.where[tensor]; !ok {
			lost = append(lost, fmt.Sprintf("%q in %s", tensor, file))
		}
	}
	if len(lost) == 0 {
		return nil
	}
	slices.Sort(lost)
	return fmt.Errorf("checkpoint: %s: %w: the index is stale, these are not where it says: %s; "+
		"%w", f.dir, ErrFormat, strings.Join(lost, ", "), takeAll())
}

// Config returns config.json. The caller must not change it.
func (f *Folder) Config() Object { return f.config }

// Generation implements Model.
func (f *Folder) Generation() Object { return f.generation }

// Notes returns whole sentences about ignored parts and oddities, to be shown above the results.
func (f *Folder) Notes() []string { return slices.Clone(f.notes) }

// Tensors returns the tensors of all files, sorted by name. Offsets count within each tensor's own
// file.
func (f *Folder) Tensors() []TensorInfo {
	list := make([]TensorInfo, 0, len(f.where))
	for name, i := range f.where {
		t, _ := f.files[i].Tensor(name)
		list = append(list, t)
	}
	slices.SortFunc(list, func(a, b TensorInfo) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// Tensor finds a tensor by its exact name.
func (f *Folder) Tensor(name string) (TensorInfo, bool) {
	i, ok := f.where[name]
	if !ok {
		return TensorInfo{}, false
	}
	return f.files[i].Tensor(name)
}

// Section returns a reader over the elements of one tensor, as in Tensors. It must not be used
// after Close.
func (f *Folder) Section(name string) (*io.SectionReader, error) {
	i, ok := f.where[name]
	if !ok {
		return nil, fmt.Errorf("checkpoint: %s: tensor %q: %w", f.dir, name, fs.ErrNotExist)
	}
	return f.files[i].Section(name)
}

// ReadTensor fills dst, which must have the tensor's size.
func (f *Folder) ReadTensor(name string, dst []byte) error {
	s, err := f.Section(name)
	if err != nil {
		return err
	}
	if s.Size() != int64(len(dst)) {
		return fmt.Errorf("checkpoint: %s: tensor %q has %d bytes, the buffer %d", f.dir, name,
			s.Size(), len(dst))
	}
	_, err = io.ReadFull(s, dst)
	return err
}

// Close closes all files.
func (f *Folder) Close() error {
	var errs []error
	for _, file := range f.files {
		errs = append(errs, file.Close())
	}
	f.files = nil
	return errors.Join(errs...)
}

package predictor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"

	"github.com/windrow-sim/windrow/engine/checkpoint"
	"github.com/windrow-sim/windrow/engine/checkpoint/torch"
	"github.com/windrow-sim/windrow/internal/input"
	"github.com/windrow-sim/windrow/internal/units"
)

// ImportOptions add the facts that other programs' files lack.
type ImportOptions struct {
	Layers, Width, Units int    // the model's shape
	Model                string // its identity, stored with the predictor
	// Feature is the input that the predictors were trained on; UnknownFeature = the source's usual
	// one.
	Feature Feature
}

// orKnown returns the feature of the options, or else f, the source's usual one.
func (o ImportOptions) orKnown(f Feature) ImportOptions {
	if o.Feature == UnknownFeature {
		o.Feature = f
	}
	return o
}

// ImportPowerInfer reads a folder of PowerInfer's predictors: model_0.pt, model_1.pt, … with
// fc1.weight [rank, width] and fc2.weight [units, rank], ReLU between. The least value of a
// predicted unit is sparse_threshold of the folder's config.json, compared before any sigmoid as in
// PowerInfer, or 0. Every layer must have a file. Their input is the Residual: llama.cpp's graph in
// PowerInfer passes them ffn_inp, in front of the norm, and for Falcon the layer's input.
func ImportPowerInfer(ctx context.Context, dir string, opt ImportOptions) (*Predictor, error) {
	cut, err := sparseThreshold(ctx, filepath.Join(dir, "config.json"))
	if err != nil {
		return nil, err
	}
	file := regexp.MustCompile(`^model_(\d+)\.pt$`)
	return importFolder(ctx, dir, opt.orKnown(Residual), file, names{"fc1.weight", "fc1.bias",
		"fc2.weight", "fc2.bias"}, ReLU, "powerinfer", cut)
}

// ImportDejaVu reads a folder of Deja Vu's predictors. Every layer needs a file with a name that
// contains "layer" and its number and ends in .pt. It holds 0.weight [rank, width] and 1.weight
// [units, rank], with nothing between. The threshold is 0.5. Their input is the Residual:
// hf_opt_module_save.py records it for training ("mlp block input before LN"). At run time Deja Vu
// uses the layer's input instead, to have the answer before the attention is computed; here there
// is no reason to.
func ImportDejaVu(ctx context.Context, dir string, opt ImportOptions) (*Predictor, error) {
	file := regexp.MustCompile(`layer[_-]?(\d+)(?:\D.*)?\.pt$`)
	return importFolder(ctx, dir, opt.orKnown(Residual), file, names{"0.weight", "0.bias",
		"1.weight",
		"1.bias"}, Linear, "dejavu", 0)
}

// maxConfig is the largest config.json that is read.
const maxConfig = 64 * units.MiB

// sparseThreshold reads PowerInfer's configuration; without the file or the entry it is 0.
func sparseThreshold(ctx context.Context, path string) (float32, error) {
	data, err := input.ReadDocument(ctx, path, input.Limit{Most: maxConfig})
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("predictor: %w", err)
	}
	var cut json.Number
	object, err := checkpoint.ParseObject(data)
	if err == nil {
		_, err = object.Get("sparse_threshold", &cut)
	}
	if err != nil {
		return 0, fmt.Errorf("predictor: %s: %w: %w", path, checkpoint.ErrFormat, err)
	}
	if cut == "" {
		return 0, nil
	}
	v, err := strconv.ParseFloat(string(cut), 32)
	if err != nil {
		return 0, fmt.Errorf("predictor: %s: %w: sparse_threshold: %w", path, checkpoint.ErrFormat,
			err)
	}
	return float32(v), nil
}

// importFolder reads one file for each layer. The first group of the expression is the layer's
// number.
func importFolder(ctx context.Context, dir string, opt ImportOptions, file *regexp.Regexp,
	name names, kind Kind,
	origin string, cut float32) (*Predictor, error) {
	if err := checkShape(opt.Layers, opt.Width, opt.Units); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("predictor: %w", err)
	}
	paths := make([]string, opt.Layers)
	for _, e := range entries {
		m := file.FindStringSubmatch(e.Name())
		if m == nil {
			continue
		}
		l, err := strconv.Atoi(m[1])
		switch {
		case err != nil || l >= opt.Layers:
			return nil, fmt.Errorf("predictor: %s: %w: %s is for a layer that the model of %d "+
				"has not", dir, ErrMismatch, e.Name(), opt.Layers)
		case paths[l] != "":
			return nil, fmt.Errorf("predictor: %s: %w: both %s and %s are for layer %d", dir,
				checkpoint.ErrFormat, filepath.Base(paths[l]), e.Name(), l)
		}
		paths[l] = filepath.Join(dir, e.Name())
	}
	layers := make([]Layer, opt.Layers)
	for l := range layers {
		if paths[l] == "" {
			return nil, fmt.Errorf("predictor: %s: %w: no file for layer %d of %d", dir,
				ErrMismatch, l, opt.Layers)
		}
		if err := importFile(ctx, paths[l], &layers[l], name, opt); err != nil {
			return nil, fmt.Errorf("predictor: %s: %w", paths[l], err)
		}
		layers[l].MinLogit = cut
	}
	return opt.predictor(kind, layers, origin)
}

// predictor finishes an import.
func (o ImportOptions) predictor(kind Kind, layers []Layer, origin string) (*Predictor, error) {
	return New(kind, o.Width, o.Units, layers, Facts{Origin: origin, Feature: o.Feature,
		Model: o.Model})
}

// importFile reads one layer's predictor, which must be the only content of the file.
func importFile(ctx context.Context, path string, l *Layer, name names, opt ImportOptions) error {
	f, err := torch.Open(ctx, path)
	if err != nil {
		return err
	}
	defer f.Close()
	used, err := readLayer(f, l, name, opt.Width, opt.Units)
	if err != nil {
		return err
	}
	if all := f.Tensors(); used == 0 || used != len(all) {
		return fmt.Errorf("%w: it holds %d tensors, the first %q; a predictor has %s and %s",
			checkpoint.ErrUnsupported, len(all), firstName(all), name[0], name[2])
	}
	return nil
}

func firstName(all []checkpoint.TensorInfo) string {
	if len(all) == 0 {
		return ""
	}
	return all[0].Name
}

// FromCheckpoint reads the predictors inside a model's checkpoint, as TurboSparse has them:
// model.layers.N.mlp.predictor.fc1.weight and fc2.weight with ReLU between. A layer without these
// tensors has no predictor; a checkpoint without any predictor is a checkpoint.ErrUnsupported. The
// threshold is 0.5. The tensors do not say what their input is.
func FromCheckpoint(t checkpoint.Tensors, opt ImportOptions) (*Predictor, error) {
	if err := checkShape(opt.Layers, opt.Width, opt.Units); err != nil {
		return nil, err
	}
	layers, used := make([]Layer, opt.Layers), 0
	for l := range layers {
		at := fmt.Sprintf("model.layers.%d.mlp.predictor.", l)
		n, err := readLayer(t, &layers[l], names{at + "fc1.weight", at + "fc1.bias",
			at + "fc2.weight", at + "fc2.bias"}, opt.Width, opt.Units)
		if err != nil {
			return nil, fmt.Errorf("predictor: %w", err)
		}
		used += n
	}
	if used == 0 {
		return nil, fmt.Errorf("predictor: %w: the checkpoint has no "+
			"model.layers.N.mlp.predictor.fc1.weight; train a predictor or name a folder of them",
			checkpoint.ErrUnsupported)
	}
	return opt.predictor(ReLU, layers, "checkpoint")
}

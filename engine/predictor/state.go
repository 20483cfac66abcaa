package predictor

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/windrow-sim/windrow/engine/checkpoint"
	"github.com/windrow-sim/windrow/internal/input"
)

// state is the folder of a training's finished layers: one predictor file for each, with the
// fingerprint of the training and the layer's report in the metadata. Without a folder it does
// nothing.
type state struct {
	dir         string
	fingerprint string // of settings, identities and samples
}

// openState makes the folder, if there is a name.
func openState(dir string, s Samples, facts Facts) (*state, error) {
	if dir == "" {
		return &state{}, nil
	}
	samples, err := digest(s)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, fmt.Errorf("predictor: state: %w", err)
	}
	sum := sha256.Sum256(fmt.Appendln(nil, samples, facts.Model, facts.Trace, facts.Settings))
	return &state{dir: dir, fingerprint: hex.EncodeToString(sum[:])}, nil
}

func (st *state) path(layer int) string {
	return filepath.Join(st.dir, fmt.Sprintf("layer-%04d.safetensors", layer))
}

// load reads a finished layer into p, and reports whether there is one.
func (st *state) load(ctx context.Context, layer int, p *Predictor, rep *LayerReport) (bool,
	error) {
	if st.dir == "" {
		return false, nil
	}
	q, meta, err := load(ctx, st.path(layer))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("%w; delete the file to train the layer again", err)
	case meta["fingerprint"] != st.fingerprint:
		return false, fmt.Errorf("%s: %w: it was trained with other settings or samples; delete "+
			"the folder or use another", st.path(layer), ErrMismatch)
	case len(q.layers) != 1:
		return false, fmt.Errorf("%s: %w: %d layers in the state of one", st.path(layer),
			checkpoint.ErrFormat, len(q.layers))
	case q.kind != p.kind || q.width != p.width || q.units != p.units:
		return false, fmt.Errorf("%s: %w: a layer of kind %s, features of %d and %d units in the "+
			"state of one of kind %s, %d and %d; delete the file to train the layer again",
			st.path(layer), checkpoint.ErrFormat, q.kind, q.width, q.units, p.kind, p.width,
			p.units)
	}
	if err := input.DecodeJSON([]byte(meta["report"]), rep); err != nil {
		return false, fmt.Errorf("%s: %w: metadata %w", st.path(layer), checkpoint.ErrFormat,
			input.Within(err, "report", 0))
	}
	if rep.Rank != q.layers[0].Rank {
		return false, fmt.Errorf("%s: %w: rank %d in the report of a layer of rank %d; delete "+
			"the file to train the layer again", st.path(layer), checkpoint.ErrFormat, rep.Rank,
			q.layers[0].Rank)
	}
	p.layers[layer] = q.layers[0]
	return true, nil
}

// save keeps a finished layer.
func (st *state) save(layer int, p *Predictor, rep *LayerReport) error {
	if st.dir == "" {
		return nil
	}
	report, err := json.Marshal(rep)
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	one := *p
	one.layers = p.layers[layer : layer+1]
	return one.save(st.path(layer), map[string]string{"fingerprint": st.fingerprint,
		"report": string(report)})
}

// ClearState removes the finished layers of a training from its folder, and the folder if nothing
// else is in it. What cannot be removed stays.
func ClearState(dir string, layers int) {
	st := &state{dir: dir}
	for l := range layers {
		os.Remove(st.path(l))
	}
	os.Remove(dir)
}

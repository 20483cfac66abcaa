package reproduce

import (
	"fmt"
	"math"

	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/traces"
	"github.com/windrow-sim/windrow/traces/shapes"
)

// model has the numbers of weights of a model, by use.
type model struct {
	key   string // in ids: "opt"
	name  string
	shape traces.Shape
	total int64 // all parameters
	// an untied input embedding: a token reads one row, and it is resident in all methods
	lookup    int64
	embedding int64 // input embedding and output head
	head      int64
	attention int64
	ffn       int64
	predictor int64 // low-rank, all layers: Σ rank·(d_model + d_ffn)
}

// meanRank is the rank of a predictor with which all layers together have the weights of the
// model's predictors.
func (m *model) meanRank() int {
	each := float64(m.shape.Layers * (m.shape.DModel + m.shape.DFFN))
	return int(math.Round(float64(m.predictor) / each))
}

// models of LLM in a flash, in the order of Table 3.
func modelKeys() []struct{ key, name string } {
	return []struct{ key, name string }{
		{"opt", "OPT-6.7B"}, {"falcon", "Falcon-7B"}, {"persimmon", "Persimmon-8B"},
		{"phi", "Phi-2"}, {"llama", "Llama-2-7B"},
	}
}

// model reads the shape of a model and the ranks of its predictors.
func (s *study) model(key string) (*model, error) {
	for _, k := range modelKeys() {
		if k.key == key {
			m, err := modelOf(key, k.name)
			if err != nil {
				return nil, err
			}
			for group := 1; ; group++ {
				id := fmt.Sprintf("rank/%s/%d", key, group)
				if _, ok := s.published[id]; !ok {
					break
				}
				m.predictor += int64(s.val(id)) * int64(s.val(id+"/layers")) *
					int64(m.shape.DModel+m.shape.DFFN)
			}
			return m, nil
		}
	}
	return nil, fmt.Errorf("no model %q", key)
}

func modelOf(key, name string) (*model, error) {
	shape, info, err := shapes.Lookup(name)
	if err != nil {
		return nil, err
	}
	vocab := int64(shape.Vocab) * int64(shape.DModel)
	m := &model{
		key: key, name: name, shape: shape, total: info.Params, head: vocab, embedding: vocab,
		attention: int64(shape.Layers) * int64(shape.AttentionBytes()) / int64(shape.DTypeSize),
		ffn: int64(shape.Layers) * int64(shape.DFFN) * int64(shape.Rows) *
			int64(shape.DModel),
	}
	if !info.TiedEmbeddings {
		m.lookup, m.embedding = vocab, 2*vocab
	}
	return m, nil
}

// moved is the number of weights that a naive load reads and that a dense pass multiplies with: all
// but an untied input embedding.
func (m *model) moved() int64 { return m.total - m.lookup }

// percent is n weights as a share of the model.
func (m *model) percent(n int64) float64 { return 100 * float64(n) / float64(m.total) }

// sized is n weights of the given size each.
func sized(n int64, dtype int) units.Bytes { return units.Bytes(n) * units.Bytes(dtype) }

// part is a share of n weights.
func part(n int64, share float64) int64 { return int64(share * float64(n)) }

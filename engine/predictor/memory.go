package predictor

import (
	"errors"
	"fmt"

	"github.com/windrow-sim/windrow/internal/mask"
)

// Memory is Samples collected in memory: 4 bytes for each number of a feature, a bit for each unit,
// 4 bytes for each magnitude.
type Memory struct {
	layers, width, units int
	magnitudes           bool
	sequence             []int // of each finished token
	next                 int   // layer that Add expects
	features             []float32
	active               mask.Mask // (token, layer, words)
	mags                 []float32
	// start of the magnitudes of a token and layer; one more at the end
	magsAt []int
}

// NewMemory returns empty samples of the given shape. With magnitudes, every Add must have them.
func NewMemory(layers, width, units int, magnitudes bool) (*Memory, error) {
	if err := checkShape(layers, width, units); err != nil {
		return nil, err
	}
	return &Memory{layers: layers, width: width, units: units, magnitudes: magnitudes,
		magsAt: []int{0}}, nil
}

// Add appends the observation of one layer for one token. The layers of a token must be in order,
// and the token counts once its last layer is there. Add copies its arguments. Magnitudes are those
// of the active units, ascending by unit. It must not run while the samples are used.
func (m *Memory) Add(sequence, layer int, feature []float32, active mask.Mask,
	magnitudes []float32) error {
	switch {
	case layer != m.next:
		return fmt.Errorf("predictor: sample of layer %d, but layer %d is next", layer, m.next)
	case len(feature) != m.width || len(active) != mask.Words(m.units):
		return fmt.Errorf("predictor: sample with a feature of %d and a mask of %d words, want "+
			"%d and %d", len(feature), len(active), m.width, mask.Words(m.units))
	case m.magnitudes && len(magnitudes) != active.Count():
		return fmt.Errorf("predictor: sample with %d magnitudes for %d active units",
			len(magnitudes), active.Count())
	}
	m.features, m.active = append(m.features, feature...), append(m.active, active...)
	if m.magnitudes {
		m.mags = append(m.mags, magnitudes...)
		m.magsAt = append(m.magsAt, len(m.mags))
	}
	if m.next++; m.next == m.layers {
		m.next = 0
		m.sequence = append(m.sequence, sequence)
	}
	return nil
}

// Len implements Samples, as do the other methods.
func (m *Memory) Len() int { return len(m.sequence) }

// Layers is the number of layers.
func (m *Memory) Layers() int { return m.layers }

// Width is the length of a feature.
func (m *Memory) Width() int { return m.width }

// Units is the number of units of a layer.
func (m *Memory) Units() int { return m.units }

// Sequence returns the sequence of Add.
func (m *Memory) Sequence(i int) int { return m.sequence[i] }

// Feature copies a feature.
func (m *Memory) Feature(i, layer int, dst []float32) error {
	copy(dst, m.features[(i*m.layers+layer)*m.width:][:m.width])
	return nil
}

// Active copies a mask.
func (m *Memory) Active(i, layer int, dst mask.Mask) error {
	w := mask.Words(m.units)
	copy(dst, m.active[(i*m.layers+layer)*w:][:w])
	return nil
}

// HasMagnitudes reports whether the samples were made with magnitudes.
func (m *Memory) HasMagnitudes() bool { return m.magnitudes }

// Magnitudes copies the magnitudes of the active units.
func (m *Memory) Magnitudes(i, layer int, dst []float32) error {
	if !m.magnitudes {
		return errors.New("predictor: the samples have no magnitudes")
	}
	at := i*m.layers + layer
	copy(dst, m.mags[m.magsAt[at]:m.magsAt[at+1]])
	return nil
}

package traces

import "fmt"

// Memory is a trace in memory. The generator and tests make it.
type Memory struct {
	Head Header
	List []Token
}

// Header implements Source.
func (m *Memory) Header() *Header { return &m.Head }

// Tokens implements Source.
func (m *Memory) Tokens() int { return len(m.List) }

// Token implements Source.
func (m *Memory) Token(i int, t *Token) error {
	if i < 0 || i >= len(m.List) {
		return fmt.Errorf("traces: token %d: the trace has %d tokens", i, len(m.List))
	}
	active, predicted, magnitude, feature := t.Active[:0], t.Predicted[:0], t.Magnitude[:0],
		t.Feature[:0]
	*t = m.List[i]
	// Fill the caller's own slices: a Token that reads several sources must not alias their masks.
	t.Active = append(active, m.List[i].Active...)
	t.Predicted, t.Magnitude, t.Feature = nil, nil, nil
	if m.List[i].Predicted != nil {
		t.Predicted = append(predicted, m.List[i].Predicted...)
	}
	if m.List[i].Magnitude != nil {
		t.Magnitude = append(magnitude, m.List[i].Magnitude...)
	}
	if m.List[i].Feature != nil {
		t.Feature = append(feature, m.List[i].Feature...)
	}
	return nil
}

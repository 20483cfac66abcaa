package traces

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/windrow-sim/windrow/internal/input"
)

// Name endings of trace files.
const (
	traceExt        = ".trace.arrow"
	manifestExt     = ".trace.json"
	partialTraceExt = ".partial" + traceExt
)

// Manifest is the NAME.trace.json beside a trace. Open compares the trace with it.
type Manifest struct {
	SchemaVersion string `json:"schema_version"`
	Tool          string `json:"tool"`
	File          string `json:"file"` // base name at the time of writing
	Bytes         int64  `json:"bytes"`
	SHA256        string `json:"sha256"`
	Complete      bool   `json:"complete"` // false: the recording was interrupted
	Tokens        int    `json:"tokens"`
	Sequences     int    `json:"sequences"`
	Layers        int    `json:"layers"`
	Units         int    `json:"units"`
	Compress      string `json:"compress"`
	Model         string `json:"model"`
	HasMagnitude  bool   `json:"has_magnitude,omitempty"`
	FeatureKind   string `json:"feature_kind,omitempty"`
	FeatureWidth  int    `json:"feature_width,omitempty"`
	DerivedFrom   string `json:"derived_from_sha256,omitempty"`
	DerivedBy     string `json:"derived_by,omitempty"`
}

// manifestFile is a manifest as it was read.
type manifestFile struct {
	Manifest
	text []byte
}

// refuse is an error about one of its fields.
func (m *manifestFile) refuse(trace, field, format string, args ...any) error {
	return formatError(ManifestPath(trace), "%v", input.RefuseJSON(m.text, field,
		fmt.Sprintf(format, args...)))
}

// check compares the manifest with the rows of its trace.
func (m *manifestFile) check(r *Reader) error {
	for _, f := range []struct {
		name    string
		in, has int
	}{{"tokens", m.Tokens, r.tokens}, {"layers", m.Layers, r.head.Layers},
		{"units", m.Units, r.head.Units}, {"feature_width", m.FeatureWidth, r.head.FeatureWidth}} {
		if f.in != f.has {
			return m.refuse(r.path, f.name, "is not the trace's, which is %d", f.has)
		}
	}
	if m.Sequences < 1 || m.Sequences > r.tokens {
		return m.refuse(r.path, "sequences", "is not from 1 to the %d tokens", r.tokens)
	}
	return nil
}

// ManifestPath returns the path of the manifest of a trace.
func ManifestPath(trace string) string { return strings.TrimSuffix(trace, traceExt) + manifestExt }

// readManifest reads the manifest of a trace. It returns nil without an error if there is none.
func readManifest(ctx context.Context, trace string) (*manifestFile, error) {
	path := ManifestPath(trace)
	text, err := readSmall(ctx, path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("traces: %w", err)
	}
	m := manifestFile{text: text}
	if err := input.DecodeJSON(text, &m.Manifest); err != nil {
		return nil, formatError(path, "%v", err)
	}
	if len(m.SHA256) != 64 {
		return nil, m.refuse(trace, "sha256", "is not 64 hexadecimal digits")
	}
	return &m, nil
}

// readSmall reads a file of at most maxMeta bytes.
func readSmall(ctx context.Context, path string) ([]byte, error) {
	text, err := input.ReadDocument(ctx, path, input.Limit{Most: maxMeta})
	if errors.Is(err, input.ErrTooLarge) || errors.Is(err, input.ErrKind) {
		err = fmt.Errorf("%w: %w", err, ErrFormat)
	}
	return text, err
}

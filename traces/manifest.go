package traces

import (
	"context"
	"encoding/json"
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

// ManifestPath returns the path of the manifest of a trace.
func ManifestPath(trace string) string { return strings.TrimSuffix(trace, traceExt) + manifestExt }

// readManifest reads the manifest of a trace. It returns nil without an error if there is none.
func readManifest(ctx context.Context, trace string) (*Manifest, error) {
	path := ManifestPath(trace)
	text, err := readSmall(ctx, path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("traces: %w", err)
	}
	var m Manifest
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, formatError(path, "%v", err)
	}
	if len(m.SHA256) != 64 {
		return nil, formatError(path, "sha256 %q is not 64 hexadecimal digits", m.SHA256)
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

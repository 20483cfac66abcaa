package devicemodels

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"go.yaml.in/yaml/v3"

	"github.com/windrow-sim/windrow/internal/input"
	"github.com/windrow-sim/windrow/internal/output"
	"github.com/windrow-sim/windrow/internal/refusal"
)

// FormatVersion is the version of the device files that this package reads and writes.
const FormatVersion = "1"

// maxFileSize bounds a file for Load: a device file has a few kilobytes, with cells a few hundred.
const maxFileSize = 8 << 20

// ErrFormat is wrapped by every error about the contents of a device: syntax, unknown keys, values
// out of range.
var ErrFormat = refusal.Kind(refusal.ErrInput, "not a valid device")

// Load reads and validates a device file. Errors about its contents name file and line and wrap
// ErrFormat; errors of the file system are wrapped as they are.
func Load(ctx context.Context, path string) (*Device, error) {
	data, err := input.ReadDocument(ctx, path, input.Limit{Most: maxFileSize})
	if err != nil {
		return nil, fmt.Errorf("devicemodels: load: %w", err)
	}
	return Parse(path, data)
}

// Parse reads and validates a device from data; name stands for the file in errors.
//
// Parsing is strict: an unknown key, a key given twice, a number without its unit, an alias or a
// second document is an error with its line. To ignore a key would simulate another machine.
func Parse(name string, data []byte) (*Device, error) {
	if len(data) > maxFileSize {
		return nil, fmt.Errorf("devicemodels: %s: larger than %d bytes: %w", name, maxFileSize,
			ErrFormat)
	}
	doc, err := checkDocument(name, data)
	if err != nil {
		return nil, err
	}
	var d Device
	dec := yaml.NewDecoder(bytes.NewReader(data))
	dec.KnownFields(true)
	if err := dec.Decode(&d); err != nil {
		return nil, fmt.Errorf("devicemodels: %s: %w: %w", name, err, ErrFormat)
	}
	if faults := d.faults(); len(faults) > 0 {
		return nil, fmt.Errorf("devicemodels: %w", errors.Join(located(name, doc, faults)...))
	}
	return &d, nil
}

// Marshal returns the file form of a valid device. Equal devices give equal bytes.
func Marshal(d *Device) ([]byte, error) {
	if err := d.Validate(); err != nil {
		return nil, fmt.Errorf("devicemodels: marshal: %w", err)
	}
	var out bytes.Buffer
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	if err := enc.Encode(d); err != nil {
		return nil, fmt.Errorf("devicemodels: marshal: %w", err)
	}
	if err := enc.Close(); err != nil {
		return nil, fmt.Errorf("devicemodels: marshal: %w", err)
	}
	return out.Bytes(), nil
}

// Save writes a valid device to path, which appears whole or not at all.
func Save(path string, d *Device) error {
	data, err := Marshal(d)
	if err != nil {
		return err
	}
	if err := output.Write(path, func(f *output.File) error {
		_, err := f.Write(data)
		return err
	}); err != nil {
		return fmt.Errorf("devicemodels: save: %w", err)
	}
	return nil
}

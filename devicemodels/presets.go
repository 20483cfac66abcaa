package devicemodels

import (
	"embed"
	"fmt"
	"path"
	"strings"
)

//go:embed presets/*.yaml
var presetFiles embed.FS

const presetFolder = "presets"

// Presets returns the names of the embedded devices in alphabetical order.
func Presets() []string {
	entries, err := presetFiles.ReadDir(presetFolder) // sorted by file name
	if err != nil {
		return nil // the folder is part of the program: ReadDir cannot fail
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = strings.TrimSuffix(e.Name(), ".yaml")
	}
	return names
}

// Preset returns a fresh copy of an embedded device. Fit.Cells holds all published throughputs of
// it that are known, with source and quality, those that cannot be used tainted with the reason.
// Where at least three can be, the flash is what FitFlash makes of them and of the fields in
// Fit.Fixed; otherwise Fit.Unfitted says why there is no fit, and Sources where each number comes
// from. Fit.Warnings says what is not known. A preset of a drive alone has no host.
func Preset(name string) (*Device, error) {
	data, err := presetFiles.ReadFile(path.Join(presetFolder, name+".yaml"))
	if err != nil {
		return nil, fmt.Errorf("devicemodels: no preset %q; %s", name, suggest(name, Presets()))
	}
	return Parse("preset "+name, data)
}

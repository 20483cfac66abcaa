package devicemodels

import (
	"embed"
	"fmt"
	"path"
	"slices"
	"strings"
)

//go:embed presets/*.yaml
var presetFiles embed.FS

const presetFolder = "presets"

// Presets returns the names of the embedded devices in alphabetical order.
func Presets() []string {
	entries, err := presetFiles.ReadDir(presetFolder)
	if err != nil {
		return nil // cannot happen: the folder is part of the program
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = strings.TrimSuffix(e.Name(), ".yaml")
	}
	slices.Sort(names)
	return names
}

// Preset returns a fresh copy of an embedded device. Fit.Cells holds all known published
// throughputs of the device, with source and quality. Cells that cannot be used are tainted, with
// the reason. With at least three usable cells the flash is the result of FitFlash on them and on
// the fields in Fit.Fixed. Otherwise Fit.Unfitted gives the reason, and Sources the origin of each
// number. Fit.Warnings lists unknowns. A preset of a drive alone has no host.
func Preset(name string) (*Device, error) {
	data, err := presetFiles.ReadFile(path.Join(presetFolder, name+".yaml"))
	if err != nil {
		return nil, fmt.Errorf("devicemodels: no preset %q; %s", name, suggest(name, Presets()))
	}
	return Parse("preset "+name, data)
}

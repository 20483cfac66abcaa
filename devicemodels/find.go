package devicemodels

import (
	"context"
	"os"
	"slices"
	"strings"

	"github.com/windrow-sim/windrow/internal/nearest"
	"github.com/windrow-sim/windrow/internal/refusal"
)

// FindAll finds several devices, as Find does, in the order of their names.
func FindAll(ctx context.Context, names []string) ([]*Device, error) {
	list := make([]*Device, len(names))
	for i, name := range names {
		var err error
		if list[i], err = Find(ctx, name); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// Find reads a device file, or a preset when the name is one and no file's.
func Find(ctx context.Context, name string) (*Device, error) {
	presets := Presets()
	if !strings.HasSuffix(name, ".yaml") && slices.Contains(presets, name) {
		return Preset(name)
	}
	info, err := os.Stat(name)
	if err == nil && info.IsDir() {
		return nil, refusal.Input("%s is a folder; name a device file or a preset (windrow device "+
			"list)", name)
	}
	if err != nil && !strings.ContainsAny(name, "./\\") {
		return nil, refusal.Config("device %q is neither a file nor a preset; presets are %s%s",
			name, strings.Join(presets, ", "), nearest.Hint(name, presets))
	}
	return Load(ctx, name)
}

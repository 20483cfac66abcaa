package devicemodels

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/windrow-sim/windrow/internal/ioengine"
	"github.com/windrow-sim/windrow/internal/nearest"
	"github.com/windrow-sim/windrow/internal/refusal"
)

// ReadEngine picks the I/O engine of a device: the named one, or for ioengine.Auto the first
// preferred one that the device has costs for, else any.
func (d *Device) ReadEngine(name string) (string, error) {
	known := slices.Sorted(maps.Keys(d.Flash.Engines))
	if name != ioengine.Auto {
		if slices.Contains(known, name) {
			return name, nil
		}
		return "", refusal.Config("{IO} %s: the device model %s has costs for %s only%s", name,
			d.Name, strings.Join(known, ","), nearest.Hint(name, known))
	}
	for _, n := range ioengine.Preferred() {
		if slices.Contains(known, n) {
			return n, nil
		}
	}
	if len(known) == 0 {
		return "", fmt.Errorf("the device model %s names no I/O engine", d.Name)
	}
	return known[0], nil
}

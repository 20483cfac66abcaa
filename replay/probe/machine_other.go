//go:build !linux && !darwin

package probe

import "github.com/windrow-sim/windrow/internal/units"

func processTime() (units.Nanos, bool) { return 0, false }

func freeSpace(string) (units.Bytes, bool) { return 0, false }

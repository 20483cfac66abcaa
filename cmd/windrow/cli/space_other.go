//go:build !unix

package cli

import "github.com/windrow-sim/windrow/internal/units"

func writable(string) bool { return true }

func freeSpace(string) (units.Bytes, bool) { return 0, false }

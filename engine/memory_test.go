package engine

import (
	"testing"
	"unsafe"

	"github.com/windrow-sim/windrow/engine/flashio"
	"github.com/windrow-sim/windrow/internal/decisions/layout"
	"github.com/windrow-sim/windrow/internal/decisions/memory"
)

// The account of memory knows the sizes of the engine's lists.
func TestSizesOfTheAccount(t *testing.T) {
	for name, sizes := range map[string][2]uintptr{
		"a row":              {unsafe.Sizeof(Row{}), memory.RowBytes},
		"a planned request":  {unsafe.Sizeof(layout.Request{}), memory.ReadBytes},
		"a request's buffer": {unsafe.Sizeof(flashio.Request{}), memory.BufferBytes},
	} {
		if sizes[0] != sizes[1] {
			t.Errorf("%s takes %d B, the account says %d", name, sizes[0], sizes[1])
		}
	}
}

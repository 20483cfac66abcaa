package cost

import (
	"math"
	"testing"

	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/traces"
)

// A run that claims more traffic than there can be is refused, not wrapped around.
func TestDRAMTrafficOverflow(t *testing.T) {
	head := &traces.Header{UnitBytes: units.Bytes(math.MaxInt64)}
	rows := []traces.RunRow{{Part: traces.PartIO, Hits: math.MaxUint32, Misses: math.MaxUint32}}
	if b, err := DRAMTraffic(rows, head); err == nil {
		t.Errorf("%v", b)
	}
	if b, err := DRAMTraffic(nil, head); err != nil || b != 0 {
		t.Errorf("no rows: %v, %v", b, err)
	}
}

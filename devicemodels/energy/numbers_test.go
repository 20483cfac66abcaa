package energy

import (
	"testing"

	"github.com/windrow-sim/windrow/internal/input/inputtest"
)

// TestAbsurdNumbersOfTables replaces each number of the published table. It is refused by file,
// line, column and value.
func TestAbsurdNumbersOfTables(t *testing.T) {
	published := inputtest.Table{Name: "energy.csv", Text: table,
		Numbers: []string{"value", "rated_W", "rated_MBps"},
		Read: func(table string, _ []string) error {
			_, err := parse(table)
			return err
		}}
	if refused := published.Refuses(t); refused < 100 {
		t.Errorf("%d numbers are refused", refused)
	}
}

package wear

import (
	"testing"

	"github.com/windrow-sim/windrow/internal/input/inputtest"
)

// TestAbsurdNumbersOfTables replaces each number of the published tables. It is refused by file,
// line, column and value.
func TestAbsurdNumbersOfTables(t *testing.T) {
	values := inputtest.Table{Name: "wear.csv", Text: table, Numbers: []string{"low", "high"},
		Read: func(table string, _ []string) error {
			_, err := parse(table)
			return err
		}}
	drives := inputtest.Table{Name: "drives.csv", Text: driveTable,
		Numbers: []string{"capacity", "endurance_TBW"},
		Read: func(table string, row []string) error {
			_, err := lookupDrive(table, driveName(row))
			return err
		}}
	if refused := values.Refuses(t) + drives.Refuses(t); refused < 200 {
		t.Errorf("%d numbers are refused", refused)
	}
}

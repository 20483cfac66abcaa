package energy

import (
	"encoding/csv"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/internal/input/inputtest"
)

// TestAbsurdNumbersOfTables replaces each number of the published tables. It is refused by file,
// line, column and value.
func TestAbsurdNumbersOfTables(t *testing.T) {
	refused := 0
	try := func(name, table string, numbers []string, read func(table string, row []string) error) {
		rows, err := csv.NewReader(strings.NewReader(table)).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		for i, row := range rows[1:] {
			for at, column := range rows[0] {
				if row[at] == "" || !slices.Contains(numbers, column) {
					continue
				}
				good := row[at]
				unit := strings.TrimLeft(good, "0123456789.")
				for _, other := range append(inputtest.Impossible(), "0", "-1", "1e-300") {
					row[at] = other + unit
					var text strings.Builder
					if err := csv.NewWriter(&text).WriteAll(rows); err != nil {
						t.Fatal(err)
					}
					if read(text.String(), row) == nil {
						t.Errorf("%s:%d: %s = %s is accepted", name, i+2, column, row[at])
						continue
					}
					refused++
					err := read(text.String(), row).Error()
					for _, want := range []string{name + ":" + strconv.Itoa(i+2), column, other} {
						if !strings.Contains(err, want) {
							t.Errorf("%s:%d: %s = %s: without %s: %v", name, i+2, column, row[at],
								want, err)
						}
					}
				}
				row[at] = good
			}
		}
	}
	try("energy.csv", table, []string{"value", "rated_W", "rated_MBps"},
		func(table string, _ []string) error {
			_, err := parse(table)
			return err
		})
	if refused < 100 {
		t.Errorf("%d numbers are refused", refused)
	}
}

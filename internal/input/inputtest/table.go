package inputtest

import (
	"encoding/csv"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Table is a published table in the program, with the columns that are numbers, perhaps with a
// unit. Read reads a changed table; row is the changed row.
type Table struct {
	Name, Text string
	Numbers    []string
	Read       func(table string, row []string) error
}

// Refuses replaces each number of a table by values that no part has. Each must be refused by file,
// line, column and value. It returns how many were.
func (b *Table) Refuses(t *testing.T) (refused int) {
	t.Helper()
	rows, err := csv.NewReader(strings.NewReader(b.Text)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for i, row := range rows[1:] {
		for at, column := range rows[0] {
			if row[at] == "" || !slices.Contains(b.Numbers, column) {
				continue
			}
			good := row[at]
			unit := strings.TrimLeft(good, "0123456789.")
			for _, other := range append(Impossible(), "0", "-1", "1e-300") {
				row[at] = other + unit
				var text strings.Builder
				if err := csv.NewWriter(&text).WriteAll(rows); err != nil {
					t.Fatal(err)
				}
				line := b.Name + ":" + strconv.Itoa(i+2)
				err := b.Read(text.String(), row)
				if err == nil {
					t.Errorf("%s: %s = %s is accepted", line, column, row[at])
					continue
				}
				refused++
				for _, want := range []string{line, column, other} {
					if !strings.Contains(err.Error(), want) {
						t.Errorf("%s: %s = %s: without %s: %v", line, column, row[at], want, err)
					}
				}
			}
			row[at] = good
		}
	}
	return refused
}

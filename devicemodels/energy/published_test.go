package energy

import (
	"encoding/csv"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/internal/reference"
)

func TestPublishedIntervals(t *testing.T) {
	for _, w := range []struct {
		q      Quantity
		name   string
		want   Interval
		values int
	}{
		{FlashRead, "nvme-ssd", Interval{110.7, 189.3, 207.1}, 3},
		{FlashRead, "nand", Interval{15, 30, 60}, 1},
		{FlashRead, "hbf", Interval{8, 8.5, 33.2}, 3},
		{DRAM, "lpddr5", Interval{4.5, 9, 18}, 1},
		{DRAM, "ddr4", Interval{10, 20, 40}, 1},
		{DriveIdle, "ssd", Interval{0.035, 0.1575, 0.28}, 2},
	} {
		c, err := Published(w.q, w.name)
		if err != nil || !same(c.Interval, w.want) || len(c.Values) != w.values || c.Rule == "" {
			t.Errorf("%s: %+v, %v; want %+v of %d values", w.name, c, err, w.want, w.values)
		}
	}
	if _, err := Published(FlashRead, "ufs"); !errors.Is(err, ErrInput) ||
		!strings.Contains(err.Error(), "nvme-ssd, nand, hbf") {
		t.Errorf("an unknown technology: %v", err)
	}
}

// Every row parses, every name of the table is found, and derived values equal their power over
// their rate.
func TestEveryRow(t *testing.T) {
	rows, err := parse(table)
	if err != nil || len(rows) < 15 {
		t.Fatalf("%d rows, %v; the table was cut", len(rows), err)
	}
	for _, q := range []Quantity{FlashRead, DRAM, DriveIdle} {
		names := Technologies(q)
		if len(names) == 0 {
			t.Errorf("%s: no technologies", q)
		}
		for _, n := range names {
			if c, err := Published(q, n); err != nil || !c.Interval.valid() ||
				c.Interval.Low == c.Interval.High {
				t.Errorf("%s %s: %+v, %v", q, n, c, err)
			}
		}
	}
	for _, r := range rows {
		if r.RatedMBps == 0 {
			continue
		}
		if derived := r.RatedW / (r.RatedMBps * 1e6 * 8) *
			1e12; math.Abs(derived-r.Value.Value) > 0.06 {
			t.Errorf("%s: %g pJ/bit, but %g W at %g MB/s are %g", r.Item, r.Value.Value, r.RatedW,
				r.RatedMBps, derived)
		}
		if text := fmt.Sprintf("%g MB/s", r.RatedMBps); !strings.Contains(r.Source, text) {
			t.Errorf("%s: the source does not say %s", r.Item, text)
		}
	}
}

func TestParseIsStrict(t *testing.T) {
	head := strings.Join(columns, ",") + "\n"
	for name, text := range map[string]string{
		"no lines":       "",
		"other columns":  "quantity,value\nflash,1\n",
		"short line":     head + "flash,x,item,1\n",
		"no number":      head + "flash,x,item,many,pJ/bit,,,s,q,\n",
		"no value":       head + "flash,x,item,,pJ/bit,,,s,q,\n",
		"zero":           head + "flash,x,item,0,pJ/bit,,,s,q,\n",
		"NaN":            head + "flash,x,item,NaN,pJ/bit,,,s,q,\n",
		"infinite":       head + "flash,x,item,1e999,pJ/bit,,,s,q,\n",
		"another unit":   head + "flash,x,item,1,W,,,s,q,\n",
		"no source":      head + "flash,x,item,1,pJ/bit,,,,q,\n",
		"no quality":     head + "flash,x,item,1,pJ/bit,,,s,,\n",
		"other quantity": head + "tape,x,item,1,pJ/bit,,,s,q,\n",
	} {
		if rows, err := parse(text); err == nil || !strings.HasPrefix(err.Error(),
			"energy: energy.csv") {
			t.Errorf("%s: %v, %v", name, rows, err)
		}
	}
	if rows, err := parse(head + "flash,x,item,1,pJ/bit,,,s,q,\n"); err != nil || len(rows) != 1 {
		t.Errorf("a good row: %v, %v", rows, err)
	}
}

// Where the collection of published numbers is available, the table is a copy of its rows.
func TestTableIsACopy(t *testing.T) {
	published := reference.Table(t, "devices", "energy.csv")
	rows, err := csv.NewReader(strings.NewReader(table)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows[1:] {
		copied := []string{r[2], r[3], r[4], r[7], r[8], r[9]}
		if !slices.ContainsFunc(published, func(p []string) bool {
			return slices.Equal(p,
				copied)
		}) {
			t.Errorf("not published as it is here: %q", copied)
		}
	}
}

package reproduce

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"sync"
	"testing"
)

const seed = 42

// everything is the result of all tables, computed once, and what it read.
type everything struct {
	result *Result
	used   map[string]bool
}

var whole = sync.OnceValues(func() (everything, error) {
	published, err := parsePublished(publishedTable)
	if err != nil {
		return everything{}, err
	}
	s, err := newStudy(context.Background(), seed, published)
	if err != nil {
		return everything{}, err
	}
	result, err := s.run(Options{Seed: seed})
	return everything{result, s.used}, err
})

func all(t *testing.T) *Result {
	t.Helper()
	r, err := whole()
	if err != nil {
		t.Fatal(err)
	}
	return r.result
}

// What --check checks.
func TestOnlyKnownMissesAreOutside(t *testing.T) {
	r := all(t)
	for _, row := range r.Outside() {
		t.Errorf("%s: ours %g, published %v: %+.1f %%, tolerance %g %%", row.ID, row.Ours,
			row.Published, row.ErrorPercent, row.TolerancePercent)
	}
	if p, m := r.Count(Predicted), r.Count(Miss); p < 100 || m > 40 {
		t.Errorf("%d predicted rows and %d misses; there were more than 100 and fewer than 40", p,
			m)
	}
}

// A miss that is none any more has to leave the list, so that the list stays true.
func TestKnownMissesAreStillThere(t *testing.T) {
	left := knownMisses()
	for _, row := range all(t).Rows {
		if row.Status != Miss {
			continue
		}
		if row.Within() {
			t.Errorf("%s: %+.1f %% is within %g %%: it is a miss no longer", row.ID,
				row.ErrorPercent, row.TolerancePercent)
		}
		if !strings.Contains(row.Reason, "Tried:") && !strings.HasPrefix(row.Reason, "As ") {
			t.Errorf("%s: the reason does not say what was tried", row.ID)
		}
		delete(left, row.ID)
	}
	for id := range left {
		t.Errorf("a miss is listed for %s, which is no row", id)
	}
}

func TestRowsAreComplete(t *testing.T) {
	seen := map[string]bool{}
	for _, row := range all(t).Rows {
		if seen[row.ID] {
			t.Errorf("%s: twice", row.ID)
		}
		seen[row.ID] = true
		if row.Published.Source == "" || row.Published.Quality == "" || row.What == "" ||
			row.Table == "" {
			t.Errorf("%s: incomplete: %+v", row.ID, row)
		}
		if (row.Status == Calibrated) != (row.Fixes != "") {
			t.Errorf("%s: %s, and it fixes %q", row.ID, row.Status, row.Fixes)
		}
		if row.Status != Calibrated && len(row.Inputs) == 0 {
			t.Errorf("%s: no inputs", row.ID)
		}
		for _, in := range row.Inputs {
			if in.Name == "" || in.Value == "" || in.From == "" {
				t.Errorf("%s: input %+v", row.ID, in)
			}
			if row.Status != Calibrated && in.From == row.Published.ID {
				t.Errorf("%s: computed from its own number", row.ID)
			}
		}
	}
}

// No predicted row depends on its own number: with all numbers changed that nothing is said to be
// computed from, ours stay as they are. A number that was used without being listed as an input
// shows too.
func TestPredictionsDoNotKnowTheirNumbers(t *testing.T) {
	base := all(t)
	published, err := parsePublished(publishedTable)
	if err != nil {
		t.Fatal(err)
	}
	inputs := map[string]bool{}
	for _, row := range base.Rows {
		for _, in := range row.Inputs {
			inputs[in.From] = true
		}
		if row.Status == Calibrated {
			inputs[row.Published.ID] = true
		}
	}
	changed := maps.Clone(published)
	count := 0
	for _, row := range base.Rows {
		id := row.Published.ID
		p, ok := published[id]
		if !ok || inputs[id] {
			continue
		}
		p.Low, p.High = p.Low*1.25, p.High*1.25
		changed[id] = p
		count++
	}
	if count < 80 {
		t.Fatalf("only %d numbers are no inputs", count)
	}
	again, err := run(t.Context(), Options{Seed: seed}, changed)
	if err != nil {
		t.Fatal(err)
	}
	for i, row := range again.Rows {
		if row.Ours != base.Rows[i].Ours {
			t.Errorf("%s: ours was %g and is %g with other published numbers", row.ID,
				base.Rows[i].Ours, row.Ours)
		}
	}
}

// Of the numbers that are both rows and inputs of others, each is changed alone.
func TestRowsThatAreInputsDoNotKnowTheirNumbers(t *testing.T) {
	published, err := parsePublished(publishedTable)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"neuro/volume/9.0", "neuro/volume/14.8", "neuro/latency/14.8",
		"neuro/io-share", "neuro/d/5500", "neuro/speedup/max"} {
		changed := maps.Clone(published)
		p := changed[id]
		p.Low, p.High = p.Low*1.25, p.High*1.25
		changed[id] = p
		again, err := run(t.Context(), Options{Table: "neuro", Seed: seed}, changed)
		if err != nil {
			t.Fatal(err)
		}
		before := map[string]float64{}
		for _, row := range all(t).Rows {
			before[row.ID] = row.Ours
		}
		for _, row := range again.Rows {
			if row.Published.ID == id && row.Status != Calibrated && row.Ours != before[row.ID] {
				t.Errorf("%s: ours was %g and is %g with another number for itself", row.ID,
					before[row.ID], row.Ours)
			}
		}
	}
}

// The targets that the program was made to reach.
func TestTargets(t *testing.T) {
	rows := map[string]Row{}
	for _, row := range all(t).Rows {
		rows[row.ID] = row
	}
	within := func(id string, percent float64) {
		t.Helper()
		if row, ok := rows[id]; !ok || !(row.ErrorPercent <= percent &&
			row.ErrorPercent >= -percent) {
			t.Errorf("%s: %+v; wanted within %g %%", id, row, percent)
		}
	}
	for _, step := range []string{"naive", "hybrid", "predictor", "windowing", "bundling"} {
		within("table2/"+step+"/io_latency", 5)
	}
	for _, id := range []string{"opt/cpu", "opt/metal-m1", "opt/gpu", "falcon/cpu", "persimmon/cpu",
		"phi/cpu", "llama/cpu"} {
		within("table3/"+id+"/all/total", 10)
	}
	for _, id := range []string{"opt/cpu/all", "opt/gpu/all", "opt/gpu/speculative",
		"persimmon/cpu/all", "phi/cpu/all"} {
		within("table5/"+id+"/total", 10)
	}
	within("dram/opt/total_dram", 5)
	within("neuro/latency/9.0", 10)
	within("neuro/latency/14.8", 10)
	if row := rows["table3/opt/metal-m2/all/total"]; row.Status != Miss {
		t.Errorf("the M2 Ultra's row is a %s; it was the one total of the method that is a miss",
			row.Status)
	}
}

func TestEveryPublishedNumberIsUsed(t *testing.T) {
	published, err := parsePublished(publishedTable)
	if err != nil {
		t.Fatal(err)
	}
	all(t)
	w, _ := whole()
	for id := range published {
		if !w.used[id] {
			t.Errorf("%s: in the table, but nothing reads it", id)
		}
	}
}

// One table alone is what it is in the whole, byte for byte.
func TestDeterministic(t *testing.T) {
	one, err := Run(t.Context(), Options{Table: "table5", Seed: seed})
	if err != nil {
		t.Fatal(err)
	}
	var part []Row
	for _, row := range all(t).Rows {
		if row.Table == "table5" {
			part = append(part, row)
		}
	}
	a, errA := json.Marshal(one.Rows)
	b, errB := json.Marshal(part)
	if errA != nil || errB != nil || string(a) != string(b) || len(part) == 0 {
		t.Errorf("%d rows alone and %d in the whole differ: %v, %v", len(one.Rows), len(part), errA,
			errB)
	}
	if !strings.Contains(string(a), `"within":true`) || !strings.Contains(string(a), `"inputs":[`) {
		t.Errorf("JSON lacks a field: %.300s", a)
	}
}

func TestUnknownNames(t *testing.T) {
	if _, err := Run(t.Context(), Options{Table: "table9", Seed: seed}); !errors.Is(err,
		ErrTable) ||
		!strings.Contains(err.Error(), "table2") {
		t.Errorf("an unknown table: %v", err)
	}
	published, err := parsePublished(publishedTable)
	if err != nil {
		t.Fatal(err)
	}
	delete(published, "flash/32k")
	if _, err := run(t.Context(), Options{Table: "flash", Seed: seed}, published); err == nil ||
		!strings.Contains(err.Error(), "flash/32k") {
		t.Errorf("a number that is missing: %v", err)
	}
}

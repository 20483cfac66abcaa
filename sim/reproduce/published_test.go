package reproduce

import (
	"encoding/csv"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/internal/reference"
)

// Where the collection of published numbers is at hand, the table is a copy of its cells.
func TestPublishedIsACopy(t *testing.T) {
	dir := reference.Path(t)
	lines, err := csv.NewReader(strings.NewReader(publishedTable)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]map[string]string{}
	for _, l := range lines[1:] {
		id, value, source, quality, file, match, column := l[0], l[1], l[3], l[4], l[5], l[6], l[7]
		if files[file] == nil {
			files[file] = readReference(t, filepath.Join(dir, "papers", file))
		}
		found := slices.DeleteFunc(slices.Clone(files[file]), func(r map[string]string) bool {
			return !matches(r, match)
		})
		if len(found) != 1 {
			t.Errorf("%s: %d lines of %s match %q, want 1", id, len(found), file, match)
			continue
		}
		// The collection names its own text files; a reader of the repository knows the works.
		r := found[0]
		cited := strings.NewReplacer("llm-in-a-flash.txt commentary on", "a commentary on",
			", neuroprefetcher.txt", "", "AI-written ", "").Replace(r["source"])
		if r[column] != value || cited != source || r["quality"] != quality {
			t.Errorf("%s: %q, %q, %q here; published %q, %q, %q", id, value, source, quality,
				r[column], cited, r["quality"])
		}
	}
}

// matches says whether a line has the cells of "column=value;column=~part".
func matches(r map[string]string, match string) bool {
	for condition := range strings.SplitSeq(match, ";") {
		column, want, _ := strings.Cut(condition, "=")
		if part, ok := strings.CutPrefix(want, "~"); ok {
			if !strings.Contains(r[column], part) {
				return false
			}
		} else if r[column] != want {
			return false
		}
	}
	return true
}

func readReference(t *testing.T, path string) []map[string]string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var rows []map[string]string
	for _, l := range lines[1:] {
		row := map[string]string{}
		for i, c := range l {
			row[lines[0][i]] = c
		}
		rows = append(rows, row)
	}
	return rows
}

func TestParsePublishedIsStrict(t *testing.T) {
	head := strings.Join(columns[:], ",") + "\n"
	for name, text := range map[string]string{
		"no lines":      "",
		"other columns": "id,value\na,1\n",
		"no number":     head + "a,many,ms,s,table,f,m,c\n",
		"negative":      head + "a,-1,ms,s,table,f,m,c\n",
		"falling":       head + "a,5-4,ms,s,table,f,m,c\n",
		"infinite":      head + "a,1e999,ms,s,table,f,m,c\n",
		"no source":     head + "a,1,ms,,table,f,m,c\n",
		"no quality":    head + "a,1,ms,s,,f,m,c\n",
		"twice":         head + "a,1,ms,s,table,f,m,c\na,1,ms,s,table,f,m,c\n",
	} {
		if _, err := parsePublished(text); err == nil || !strings.HasPrefix(err.Error(),
			"reproduce: published.csv") {
			t.Errorf("%s: %v", name, err)
		}
	}
	table, err := parsePublished(head + "a,80-87,%,s,text,f,m,c\n")
	if p := table["a"]; err != nil || p.Low != 80 || p.High != 87 || p.Mid() != 83.5 ||
		p.String() != "80 to 87" {
		t.Errorf("an interval: %+v, %v", p, err)
	}
}

func TestErrorIsToTheNearerEnd(t *testing.T) {
	p := Published{Low: 80, High: 100}
	for v, want := range map[float64]float64{40: -50, 80: 0, 90: 0, 100: 0, 125: 25} {
		if got := p.errorPercent(v); got != want {
			t.Errorf("%g: error %g %%, want %g", v, got, want)
		}
	}
}

func TestNumber(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 0.34: "0.34", 0.079239: "0.07924", 1.25: "1.25",
		593: "593", 1181.9: "1182", 99.996: "100", 12.345: "12.35"} {
		if got := number(v); got != want {
			t.Errorf("%g: %q, want %q", v, got, want)
		}
	}
}

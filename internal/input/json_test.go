package input

import (
	"errors"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/internal/units"
)

// A refusal of JSON names line, path, value and what is wanted.
func TestDecodeJSON(t *testing.T) {
	type inner struct {
		Iops  float64
		Count uint8
		Name  string
	}
	type doc struct {
		Size units.Bytes `json:"size"`
		Jobs []inner     `json:"jobs"`
		More map[string]*inner
		Any  any
	}
	for text, want := range map[string]string{
		`{"size": 1, "jobs": [{"iops": 2, "other": [1e400]}]}`: "",
		"{\"size\":\n1.5}": "line 2: size: 1.5 is not a whole number from " +
			"-9223372036854775808 to 9223372036854775807",
		"{\n\"jobs\": [{},\n{\"iops\": 1e400}]}": "line 3: jobs[1].iops: 1e400 is not" +
			" a number up to 1.8e+308",
		"{\n\"More\": {\"a\": {\"count\": 256}}}": "line 2: More.a.count: 256 is not" +
			" a whole number from 0 to 255",
		"{\"more\": {\"a\":\n {\"count\": -1}}}": "line 2: more.a.count: -1 is not" +
			" a whole number from 0 to 255",
		"{\"any\":\n1e999}": "line 2: any: 1e999 ",
		"{\"jobs\":\n{}}":   "line 2: jobs: is not a list",
		"{\"jobs\":\n[{\"name\":\n7}]}": "line 3: jobs[0].name: 7 is not" +
			" a text in quotes",
		"{\"size\": 1,\n\"jobs\": NaN}": "line 2: jobs: is not JSON: ",
		"{\"size\": 1,\n":               "line 2: ",
		"":                              "line 1: ",
		"{}\n{}":                        "line 2: is not JSON: ",
	} {
		err := DecodeJSON([]byte(text), new(doc))
		if err == nil && want == "" {
			continue
		}
		if _, ok := errors.AsType[*JSONError](err); !ok || want == "" ||
			!strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// A value that was read before is refused by its line; one that is not there by that of its holder.
func TestRefuseJSON(t *testing.T) {
	data := []byte("{\"a\": [1,\n {\"b\": 2},\n {\"b\": 3,\n \"c\": null}],\n\"d\": \"x\"\n}")
	for path, want := range map[string]string{
		"a[1].b": "line 2: a[1].b: 2 is odd", "a[2].b": "line 3: a[2].b: 3 is odd",
		"a[2].e": "line 3: a[2].e: is odd", "d": `line 5: d: "x" is odd`, "f": "line 1: f: is odd",
		"a": "line 1: a: is odd", "a[2].c": "line 4: a[2].c: null is odd",
	} {
		if got := RefuseJSON(data, path, "is odd").Error(); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}

package cli

import (
	"encoding/csv"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/windrow-sim/windrow/traces"
)

// steers finds a character in an output that a terminal acts on, or bytes that are not UTF-8.
func steers(text string) string {
	if !utf8.ValidString(text) {
		return "bytes that are not UTF-8"
	}
	i := strings.IndexFunc(text, func(r rune) bool {
		return unicode.IsControl(r) && r != '\n' && r != '\t'
	})
	if i < 0 {
		return ""
	}
	return text[max(i-20, 0):min(i+20, len(text))]
}

// TestField_N57_NotUTF8: a name or a text that is not UTF-8 is refused by every verb, with the name
// as a shell takes it and the remedy. Names in UTF-8 of any other kind work in every document.
func TestField_N57_NotUTF8(t *testing.T) {
	workspace(t)
	for _, line := range slices.Concat(readers, readNothing) {
		args := strings.Fields(strings.NewReplacer("{", "", "}", "").Replace(line))
		o := command(append(args, "caf\xe9\x1b")...)
		if o.code != exitUsage || o.stdout != "" || steers(o.stderr) != "" ||
			!strings.Contains(o.stderr, `$'caf\xe9\x1b' is not UTF-8`) ||
			!strings.Contains(o.stderr, "ln -s") {
			t.Errorf("%s: exit %d\n%s%s", line, o.code, o.stdout, o.stderr)
		}
	}
	const odd = "Größe 你好 'it' $x =1 {a} %s\u202e.trace.arrow"
	if err := os.Link("tiny.trace.arrow", odd); err != nil {
		t.Fatal(err)
	}
	if err := os.Link("tiny.trace.json", traces.ManifestPath(odd)); err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Command string            `json:"command"`
		Inputs  map[string]string `json:"inputs"`
	}
	if err := json.Unmarshal([]byte(must(t, "sim", "-t", odd, "-d", "m1-max", "--json", "-o",
		"odd.run.arrow")), &doc); err != nil {
		t.Fatal(err)
	}
	if doc.Inputs[odd] == "" || !strings.Contains(doc.Command, "你好") {
		t.Errorf("%+v", doc)
	}
	for _, format := range []string{"text", "md", "csv", "html"} {
		if out := must(t, "trace", "stats", odd, "--format", format); steers(out) != "" ||
			strings.Contains(out, "\u202e") {
			t.Errorf("%s: %q", format, out)
		}
	}
	must(t, "report", "odd.run.arrow", "--trace", odd, "-o", "odd.html")
}

// TestField_N59_HostileNames: names of devices, models and files that hold a terminal's sequences
// or a formula reach no terminal, table, report or CSV as they are.
func TestField_N59_HostileNames(t *testing.T) {
	workspace(t)
	const evil = "=m1\x1b[31m\u009b2J\x7f"
	shown := must(t, "device", "show", "m1-max")
	write(t, "evil.device.yaml", strings.Replace(shown, "name: m1-max",
		`name: "=m1\e[31m\x9b2J\x7f"`, 1))
	renamed(t, "tiny.trace.arrow", "evil.trace.arrow", "+model\x1b]0;x\x07\u009b")
	file := "@SUM\x1b[2J.trace.arrow"
	if err := os.Link("evil.trace.arrow", file); err != nil {
		t.Fatal(err)
	}
	write(t, "evil.yaml", "trace: {file: evil.trace.arrow}\ndevices: [evil.device.yaml]\n"+
		"windows: [1, 2]\n")
	write(t, "half.csv", "TIMESTAMP,\x1b[31m\u009b\n")
	formats := []string{"md", "csv", "html", "json"}
	for i, line := range []string{
		"device show evil.device.yaml",
		"device compare evil.device.yaml m1-max",
		"sim -t evil.trace.arrow -d evil.device.yaml",
		"sim -t FILE -d evil.device.yaml -o FILE.run.arrow",
		"report FILE.run.arrow -o r.html", "report FILE.run.arrow -o r.csv",
		"sweep evil.yaml -o s.jsonl --csv s.csv",
		"trace info FILE", "trace stats FILE", "trace check FILE", "trace cat evil.trace.arrow",
		"plan -t evil.trace.arrow -d evil.device.yaml --dram 90%",
		"trace arrivals half.csv",
		"sim -t missing\x1b[31m -d m1-max",
		"sim -t evil.trace.arrow -d no\x1b[31m",
		"sim -t evil.trace.arrow -d m1-max --window \x1b[31m",
		"sim --no\x1b[31m", "no\x1b[31m",
	} {
		for _, format := range []string{"text", formats[i%len(formats)]} {
			args := strings.Fields(line)
			for i := range args {
				args[i] = strings.ReplaceAll(args[i], "FILE", file)
			}
			if len(args) > 2 {
				args = append(args, "--format", format)
			}
			if slices.Contains(args, "-o") {
				if format != "text" {
					continue
				}
				args = append(args, "--force")
			}
			o := command(args...)
			if bad := steers(o.stdout) + steers(o.stderr); bad != "" {
				t.Errorf("%q: exit %d: %q", args, o.code, bad)
			}
		}
	}
	for _, name := range names(t, ".") {
		ext := filepath.Ext(name)
		if !slices.Contains([]string{".md", ".html", ".csv"}, ext) || name == "half.csv" {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if bad := steers(string(text)); bad != "" {
			t.Errorf("%s: %q", name, bad)
		}
		if name == "s.csv" {
			rows, err := csv.NewReader(strings.NewReader(string(text))).ReadAll()
			if err != nil {
				t.Fatal(err)
			}
			at := slices.Index(rows[0], "device")
			if want := `'=m1\x1b[31m\u009b2J\x7f`; rows[1][at] != want {
				t.Errorf("%s: device %q, want %q", name, rows[1][at], want)
			}
		}
	}
	// A JSON document has the name itself, for programs.
	if out := must(t, "sim", "-t", "evil.trace.arrow", "-d", "evil.device.yaml",
		"--json"); !strings.Contains(out, `=m1\u001b[31m\u009b2J\u007f`) {
		t.Errorf("no %q in %s", evil, out)
	}
}

// renamed writes a trace again as that of another model.
func renamed(t *testing.T, from, to, model string) {
	t.Helper()
	r, err := traces.Open(t.Context(), from)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	head := *r.Header()
	head.Model = model
	w, err := traces.Create(to, head, traces.WriteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var token traces.Token
	for i := range r.Tokens() {
		if err := r.Token(i, &token); err != nil {
			t.Fatal(err)
		}
		if err := w.Append(&token); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

package plain

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestEscapes(t *testing.T) {
	for _, c := range []struct{ in, text, line string }{
		{"", "", ""},
		{"Grüße, 你好 ≤ 3 µs", "Grüße, 你好 ≤ 3 µs", "Grüße, 你好 ≤ 3 µs"},
		{`C:\models`, `C:\models`, `C:\models`},
		{"a\x1b[31mb", `a\x1b[31mb`, `a\x1b[31mb`},
		{"a\nb\tc", "a\nb\tc", `a\nb\tc`},
		{"a\r\nb", "a\\r\nb", `a\r\nb`},
		{"\x07\x00\x7f", `\x07\x00\x7f`, `\x07\x00\x7f`},
		{"\u009b31m", `\u009b31m`, `\u009b31m`}, // CSI in one character
		{"caf\xe9", `caf\xe9`, `caf\xe9`},
		{`a\` + "\x1b", `a\\x1b`, `a\\\x1b`},
		{`a\x1b`, `a\x1b`, `a\x1b`},
		{"a\u202egpj.exe", "a\u202egpj.exe", `a\u202egpj.exe`},
		{"a\u2028b\ufeff", "a\u2028b\ufeff", `a\u2028b\ufeff`},
		{"\ufffd", "\ufffd", "\ufffd"}, // a character like any other
	} {
		if got := Text(c.in); got != c.text {
			t.Errorf("Text(%q) = %q, want %q", c.in, got, c.text)
		}
		if got := Line(c.in); got != c.line {
			t.Errorf("Line(%q) = %q, want %q", c.in, got, c.line)
		}
		if got, want := Lines(c.in+"\n"+c.in), Lines(c.in)+"\n"+Lines(c.in); got != want ||
			!strings.Contains(c.in, "\n") && Lines(c.in) != c.line {
			t.Errorf("Lines(%q) = %q", c.in, got)
		}
	}
}

func TestCell(t *testing.T) {
	for in, want := range map[string]string{
		"=1+1": "'=1+1", "@SUM(A1)": "'@SUM(A1)", "+1 555": "'+1 555", "-2+3": "'-2+3",
		"-2.5": "-2.5", "+1e-9": "+1e-9", "-inf": "-inf", "-": "-", "": "", "a=b": "a=b",
		"\t=1": "'\t=1", " =1": "' =1", "\n@a": "'\n@a", "\r=1": `\r=1`, "a\nb\x1b": "a\nb\\x1b",
		"\u202e=1": `\u202e=1`, "≤ 3": "≤ 3", "'=1": "'=1",
	} {
		if got := Cell(in); got != want {
			t.Errorf("Cell(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestWord(t *testing.T) {
	for in, want := range map[string]string{
		"sim": "sim", "": "''", "a b": "'a b'", "it's": `"it's"`, "it's $1": `'it'\''s $1'`,
		"caf\xe9's": `$'caf\xe9\'s'`, "a\nb": `$'a\nb'`, "\x1b[2J\\": `$'\x1b[2J\\'`,
	} {
		if got := Word(in); got != want {
			t.Errorf("Word(%q) = %s, want %s", in, got, want)
		}
	}
}

// A shell reads a word as it was.
func TestWordInAShell(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip(err)
	}
	words := []string{"", "a b", "it's", "caf\xe9's", "a\nb\r", "\x1b[2J\\", "$HOME `ls`",
		"a\x01b1", "\x1b1'\"", "\u009b7", "über\x01"}
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = Word(w)
	}
	script := `export LC_ALL=C.UTF-8; printf '%s\0' ` + strings.Join(quoted, " ")
	out, err := exec.Command(bash, "-c", script).Output()
	if err != nil {
		t.Fatal(err)
	}
	if want := strings.Join(words, "\x00") + "\x00"; string(out) != want {
		t.Errorf("%q, want %q", out, want)
	}
}

func FuzzPlain(f *testing.F) {
	for _, s := range []string{"a\x1bb", "\xff", "\u202e", "=1", `\`, "\u009b", "a\\\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		text, line, cell := Text(s), Line(s), Cell(s)
		for _, shown := range []string{text, line, cell, Word(s)} {
			if !utf8.ValidString(shown) {
				t.Fatalf("%q of %q is not UTF-8", shown, s)
			}
		}
		control := func(r rune) bool { return unicode.IsControl(r) && !spacing(r) }
		if strings.IndexFunc(text+cell, control) >= 0 || strings.IndexFunc(line+Word(s)+
			strings.ReplaceAll(Lines(s), "\n", ""), unicode.IsControl) >= 0 {
			t.Fatalf("%q, %q, %q of %q", text, line, cell, s)
		}
		if Text(text) != text || Line(line) != line || Cell(cell) != cell ||
			Lines(Lines(s)) != Lines(s) {
			t.Fatalf("%q is escaped twice", s)
		}
		before, _ := json.Marshal(s)
		after := JSON(before)
		var was, is string
		if json.Unmarshal(before, &was) != nil || json.Unmarshal(after, &is) != nil || was != is {
			t.Fatalf("%s became %s", before, after)
		}
		if strings.IndexFunc(string(after), unicode.IsControl) >= 0 {
			t.Fatalf("%q has a control character", after)
		}
	})
}

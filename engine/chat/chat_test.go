package chat

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/windrow-sim/windrow/internal/refusal"
)

// testOptions are those of tools/chat_templates/make.py.
var testOptions = Options{BOS: "<s>", EOS: "</s>", Pad: "<pad>",
	Now: time.Date(2026, 1, 5, 7, 8, 9, 0, time.UTC)}

// expectedText is the text by transformers, or Python's refusal.
type expectedText struct{ Text, Error string }

func readJSON(t testing.TB, path string, into any) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// renderTest renders a conversation of testdata.
func renderTest(t testing.TB, source, name string) (string, error) {
	t.Helper()
	var all map[string]json.RawMessage
	readJSON(t, "testdata/conversations.json", &all)
	return renderText(source, string(all[name]))
}

func renderText(source, conversation string) (string, error) {
	c, err := Parse([]byte(conversation))
	if err != nil {
		return "", err
	}
	tmpl, err := Compile(source)
	if err != nil {
		return "", err
	}
	return tmpl.Render(c, testOptions)
}

// TestTemplates compares our own templates, which use what those of six published families do, with
// transformers: multi-turn, with and without system, tools, calls and thoughts.
func TestTemplates(t *testing.T) {
	var ref struct {
		Templates map[string]map[string]expectedText
	}
	readJSON(t, "testdata/expected.json", &ref)
	if len(ref.Templates) < 6 {
		t.Fatalf("%d templates", len(ref.Templates))
	}
	for name, conversations := range ref.Templates {
		source, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		for conversation, want := range conversations {
			got, err := renderTest(t, string(source), conversation)
			switch {
			case want.Error == "" && (err != nil || got != want.Text):
				t.Errorf("%s, %s: error %v\n got %q\nwant %q", name, conversation, err, got,
					want.Text)
			case want.Error != "" && (err == nil || !strings.Contains(err.Error(), want.Error)):
				t.Errorf("%s, %s: error %v, want %q", name, conversation, err, want.Error)
			}
		}
	}
}

const user = `[{"role":"user","content":"Hi"}]`

// check renders a template for one conversation.
func check(t *testing.T, source, conversation, want string) {
	t.Helper()
	if got, err := renderText(source, conversation); err != nil || got != want {
		t.Errorf("%s: %q, error %v, want %q", source, got, err, want)
	}
}

// refuses demands an error of a kind that contains texts.
func refuses(t *testing.T, err, kind error, want ...string) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Errorf("error %v is not of the kind %q", err, kind)
		return
	}
	for _, part := range want {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q does not contain %q", err, part)
		}
	}
}

// TestField_J1_Expressions: the expressions of Qwen's templates. What cannot be compiled is refused
// with its line; no other template is used instead.
func TestField_J1_Expressions(t *testing.T) {
	const three = `[{"role":"user","content":"a"},{"role":"assistant","content":"b"},` +
		`{"role":"user","content":"c"}]`
	check(t, "{% for m in messages[::-1] %}{{ m.content }}{{ loop.index0 }}{% endfor %}", three,
		"c0b1a2")
	check(t, "{% for i in range(messages|length-1, -1, -1) %}{{ i }}{% endfor %}", three, "210")
	check(t, "{% set ns = namespace(n=0) %}{% for m in messages %}{% if "+
		"m.content.startswith('a') or m.content.endswith('c') %}{% set ns.n = ns.n + 1 %}"+
		"{% endif %}{% endfor %}{{ ns.n }}", three, "2")
	check(t, "{% for k, v in messages[0].items() if v != 'a' and k %}{{ k }}={{ v }}{% endfor %}",
		three, "role=user")
	_, err := Compile("a\nb {# {{ x + }} #}\n{% if x %}\n{{ messages[0].content + }}{% endif %}")
	refuses(t, err, ErrTemplate, "line 4", "{{ messages[0].content + }}")
	_, err = Compile("{% for x of y %}{% endfor %}")
	refuses(t, err, ErrTemplate, "line 1", "for x of y")
	_, err = renderText("{{ messages|nothing }}", user)
	refuses(t, err, ErrTemplate, "nothing")
}

// TestField_J2_Blanks: line ends and blanks around blocks go as with trim_blocks and lstrip_blocks,
// and the last line end of a template is none. Each text is transformers'.
func TestField_J2_Blanks(t *testing.T) {
	for source, want := range map[string]string{
		"a\n\n": "a\n", "a\n": "a", "{% if 1 %}x{% endif %}\n": "x",
		"{% if 1 %}x{% endif %}\n\n\n": "x\n", "{{ 1 }}\n\n": "1\n", "a\r\n\r\n": "a\n",
		"{% if 1 %}\r\nx{% endif %}\r\n": "x", "{# c #}\n\nx": "\nx", "  {# c #}\nx\n": "x",
		"  {% set a = 1 %}\n  {% set b = 2 %}\n{{ a + b }}\n": "3",
		"x {%- if 1 %} y {%- endif -%} \n z":                  "x yz",
	} {
		check(t, source, user, want)
	}
}

// TestField_J3_JSON: tojson is json.dumps of Python without escapes of ASCII or HTML, keys in their
// order. Each text is Python's.
func TestField_J3_JSON(t *testing.T) {
	const value = `{"messages":[{"role":"user","content":"x"}],"chat_template_kwargs":{"v":` +
		`{"b":1,"a":"<é'/>—","c":[],"d":{},"e":[1.0,1e20,1e-7,0.1,-0.0,123456789012345680.0,` +
		`true,null,"\u0001\ud83d\ude00\\\"\n\u007f"]}}}`
	const list = `"e": [1.0, 1e+20, 1e-07, 0.1, -0.0, 1.2345678901234568e+17, true, null, ` +
		`"\u0001` + "😀" + `\\\"\n` + "\x7f" + `"]`
	check(t, "{{ v|tojson }}", value, `{"b": 1, "a": "<é'/>—", "c": [], "d": {}, `+list+`}`)
	check(t, "{{ v.c | tojson ~ v['d']|tojson(indent=4) ~ (v.b + 1)|tojson }}", value, "[]{}2")
	check(t, "{{ {'b': 1, 'a': [1, 2]}|tojson(indent=4) }}", value,
		"{\n    \"b\": 1,\n    \"a\": [\n        1,\n        2\n    ]\n}")
	check(t, "{{ {'b': 1, 'a': [1, 2]} | tojson(sort_keys=true, separators=(',', ':')) }}", value,
		`{"a":[1,2],"b":1}`)
	check(t, "{{ v.a|tojson(ensure_ascii=true) }}{{ '😀'|tojson(True) }}", value,
		`"<\u00e9'/>\u2014""\ud83d\ude00"`)
	check(t, "{% set x = messages[0]['content'].upper()|tojson %}{{ x }}", value, `"X"`)
	check(t, "{{ '| tojson' }}{% raw %}{{ x|tojson }}{% endraw %}", value,
		"| tojson{{ x|tojson }}")
	_, err := renderText("{{ nowhere|tojson }}", user)
	refuses(t, err, ErrTemplate, "undefined")
	_, err = renderText("{{ 1|tojson(colour=2) }}", user)
	refuses(t, err, ErrTemplate, "colour")
}

// TestField_J8_WhereTemplatesAre: chat_template.jinja comes first, then the entry named default.
func TestField_J8_WhereTemplatesAre(t *testing.T) {
	const both = `{"chat_template":[{"name":"tool_use","template":"T"},` +
		`{"name":"default","template":"D"}]}`
	for name, c := range map[string]struct {
		files      map[string]string
		text, from string
	}{
		"file alone": {map[string]string{"chat_template.jinja": "J"}, "J", "chat_template.jinja"},
		"both": {map[string]string{"chat_template.jinja": "J", "tokenizer_config.json": both},
			"J", "chat_template.jinja"},
		"text": {map[string]string{"tokenizer_config.json": `{"chat_template":"C"}`}, "C",
			"tokenizer_config.json"},
		"older": {map[string]string{"chat_template.json": `{"chat_template":"O"}`,
			"tokenizer_config.json": `{"chat_template":"C"}`}, "O", "chat_template.json"},
		"list": {map[string]string{"tokenizer_config.json": both}, "D", "default"},
		"no default": {map[string]string{"tokenizer_config.json": `{"chat_template":[{"name":` +
			`"tool_use","template":"T"}]}`}, "", "tool_use"},
		"null": {map[string]string{"tokenizer_config.json": `{"chat_template":null}`}, "", ""},
		"none": {nil, "", ""},
	} {
		dir := t.TempDir()
		for file, content := range c.files {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		got, err := Find(t.Context(), dir)
		if err != nil || got.Text != c.text || !strings.Contains(got.From, c.from) ||
			c.from == "" && got.From != "" {
			t.Errorf("%s: %+v, error %v", name, got, err)
		}
	}
	for content, want := range map[string]string{`{"chat_template":7}`: "neither",
		`{`: "tokenizer_config.json"} {
		dir := t.TempDir()
		path := filepath.Join(dir, "tokenizer_config.json")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Find(t.Context(), dir)
		refuses(t, err, ErrTemplate, want)
	}
}

// TestField_J9_Refusals: what a template raises is its own sentence, with the message.
func TestField_J9_Refusals(t *testing.T) {
	source, err := os.ReadFile("testdata/turns.jinja")
	if err != nil {
		t.Fatal(err)
	}
	for conversation, want := range map[string][]string{
		`[{"role":"system","content":"s"},{"role":"user","content":"u"}]`: {"message 1 (system)",
			"System role not supported"},
		`[{"role":"user","content":"a"},{"role":"user","content":"b"},` +
			`{"role":"user","content":"c"}]`: {"message 2 (user)", "must alternate"},
		`[{"role":"system","content":"s"},{"role":"system","content":"t"}]`: {"message 1 (system)"},
	} {
		_, err := renderText(string(source), conversation)
		refuses(t, err, ErrTemplate, want...)
		refuses(t, err, refusal.ErrInput)
	}
	_, err = renderText(string(source), `[{"role":"user","content":"a"},`+
		`{"role":"assistant","content":null}]`)
	refuses(t, err, ErrConversation, "message 2 (assistant)", "null")
}

func TestConversationErrors(t *testing.T) {
	for text, want := range map[string]string{
		"": "byte 0", "{}": "no messages", "[]": "empty", "7": "no messages", "[7]": "message 1",
		`[{"content":"x"}]`: "no role", `[{"role":7,"content":"x"}]`: "no role",
		`{"messages":[],"tool":[]}`:            "unknown member",
		`{"messages":[],"tools":{}}`:           "tools",
		`{"messages":[],"now":"yesterday"}`:    "yesterday",
		`[{"role":"u","content":"x"}] x`:       "byte",
		`[{"role":"u","content":1e999}]`:       "1e999",
		`[{"role":"u","content":"x"`:           "byte",
		`[` + strings.Repeat("[", 200):         "inside each other",
		`[{"role":"u","content":"x"},{"role"}`: "byte",
	} {
		_, err := Parse([]byte(text))
		refuses(t, err, ErrConversation, want)
	}
	var many strings.Builder
	for range maxMessages + 1 {
		many.WriteString(`{"role":"u","content":"x"},`)
	}
	_, err := Parse([]byte("[" + strings.TrimSuffix(many.String(), ",") + "]"))
	refuses(t, err, ErrConversation, "10001 messages")
}

func TestLimits(t *testing.T) {
	for source, want := range map[string]string{
		strings.Repeat("x", maxTemplate+1):        "bytes",
		"{{ " + strings.Repeat("(", 300) + "}}":   "inside each other",
		strings.Repeat("{% if 1 %}", 300):         "inside each other",
		"{{ " + strings.Repeat("-", 300) + "1 }}": "inside each other",
		"{{ windrow_json(1) }}":                   "taken",
	} {
		_, err := Compile(source)
		refuses(t, err, ErrTemplate, want)
	}
	for source, want := range map[string]string{
		"{{ range(100000000) }}": "65536", "{{ range(0, 9, 0) }}": "step", "{{ range() }}": "range",
		"{{ 'a' * -1 }}": "cannot be rendered",
		"{% for i in range(65536) %}{{ '" + strings.Repeat("x", 300) + "' }}{% endfor %}": "16777216",
		"{{ strftime_now('%Q') }}": "%Q",
	} {
		_, err := renderText(source, user)
		refuses(t, err, ErrTemplate, want)
	}
	check(t, "{{ range(9223372036854775806, 9223372036854775807)|length }}", user, "1")
}

// childEnv makes this test binary a child that renders.
const childEnv = "WINDROW_TEST_CHAT_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		if err := Serve(os.Stdin, os.Stdout); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// TestGuarded renders in a child, and sees templates that loop, recurse or take memory without end
// take the child alone.
func TestGuarded(t *testing.T) {
	t.Setenv(childEnv, "1")
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	run := func(source, conversation string, limit time.Duration) (string, error) {
		return guarded(t.Context(), []string{exe}, source, []byte(conversation), testOptions,
			limit)
	}
	got, err := run("{{ bos_token }}{{ messages[0].content }} {{ strftime_now('%F') }}",
		`{"messages":[{"role":"user","content":"<水>"}],"now":"2026-02-03"}`, time.Minute)
	if err != nil || got != "<s><水> 2026-02-03" {
		t.Errorf("%q, error %v", got, err)
	}
	_, err = run("{{ raise_exception('no') }}", user, time.Minute)
	refuses(t, err, ErrTemplate, "message 1 (user): no")
	_, err = run("{{ (", user, time.Minute)
	refuses(t, err, ErrTemplate)
	_, err = run("x", "[", time.Minute)
	refuses(t, err, ErrConversation)
	endless := strings.Repeat("{% for i in range(65536) %}", 4) + strings.Repeat("{% endfor %}", 4)
	_, err = run(endless, user, 200*time.Millisecond)
	refuses(t, err, ErrTemplate, "not done after 200ms")
}

func FuzzCompile(f *testing.F) {
	for _, name := range []string{"chatml", "headers", "inst", "outlined", "thinking", "turns"} {
		data, err := os.ReadFile("testdata/" + name + ".jinja")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(data))
	}
	f.Add("{% for a, b in c if b else d %}{{ a|tojson(1)|string }}{% raw %}{{ x }}{% endraw %}")
	f.Fuzz(func(t *testing.T, source string) {
		if _, err := Compile(source); err != nil && !errors.Is(err, ErrTemplate) {
			t.Errorf("error %v", err)
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(user))
	f.Add([]byte(`{"messages":[{"role":"a","content":[{"type":"text","text":"x"}]}],"tools":[]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Parse(data)
		if err != nil {
			if !errors.Is(err, ErrConversation) {
				t.Errorf("error %v", err)
			}
			return
		}
		tmpl, err := Compile("{{ messages|tojson }}")
		if err != nil {
			t.Fatal(err)
		}
		text, err := tmpl.Render(c, testOptions)
		if err != nil {
			return
		}
		again, err := Parse([]byte(text))
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if back, err := tmpl.Render(again, testOptions); err != nil || back != text {
			t.Errorf("%q becomes %q, error %v", text, back, err)
		}
	})
}

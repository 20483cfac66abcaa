package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/engine/chat"
	"github.com/windrow-sim/windrow/engine/session"
)

// chatModel packs the shipped model with a chat template that writes the begin token itself.
func chatModel(t *testing.T, template string) string {
	t.Helper()
	root, err := repository()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(root, "examples/models/tales"))); err != nil {
		t.Fatal(err)
	}
	if template != "" {
		err := os.WriteFile(filepath.Join(dir, "chat_template.jinja"), []byte(template), 0o600)
		if err != nil {
			t.Fatal(err)
		}
	}
	out := filepath.Join(t.TempDir(), "chat.flash.safetensors")
	o := command("pack", dir, "-o", out)
	if o.code != 0 {
		t.Fatal(o.stderr)
	}
	if want := "chat template: chat_template.jinja"; strings.Contains(o.stderr, want) !=
		(template != "") {
		t.Errorf("pack says %q", o.stderr)
	}
	return out
}

const begun = "{{ bos_token }}{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"

// TestField_J5_OneBeginToken: template and tokenizer both want to put the begin token in front.
func TestField_J5_OneBeginToken(t *testing.T) {
	t.Setenv(asProgram, "1")
	image := chatModel(t, begun)
	s, err := session.Open(t.Context(), session.Config{Model: image})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	bos, ok := s.Tokenizer.BOS()
	if !ok || !s.Tokenizer.AddsBOS() {
		t.Fatal("the model's tokenizer puts nothing in front")
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, messages := range []string{`[{"role":"user","content":"Once"}]`,
		`[{"role":"user","content":"Go on"},{"role":"assistant","content":"Once upon"}]`} {
		text, err := s.Prompt(t.Context(), session.Chat{Messages: []byte(messages),
			Child: []string{exe, "generate", "-m", image, "--child"}})
		if err != nil {
			t.Fatal(err)
		}
		ids, err := s.Encode(text, true)
		if err != nil {
			t.Fatal(err)
		}
		if ids[0] != bos || slices.Index(ids[1:], bos) >= 0 {
			t.Errorf("%s: %v", messages, ids)
		}
	}
}

func TestGenerateChat(t *testing.T) {
	t.Setenv(asProgram, "1")
	image, bare := chatModel(t, begun), chatModel(t, "")
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	messages := write("chat.json", "\uFEFF"+`{"messages":[{"role":"user","content":"Once"}]}`)
	other := write("other.jinja", "{% for m in messages %}[{{ m.content }}]{% endfor %}")
	strict := write("strict.jinja", "{{ raise_exception('no users here') }}")
	for _, c := range []struct {
		args   string
		code   int
		stdout string
		stderr []string
	}{
		{"-m " + image + " --chat " + messages, 0, "user: Once\n", []string{
			"chat template: chat_template.jinja"}},
		{"-m " + image + " --chat " + messages + " --chat-template " + other, 0, "[Once]",
			[]string{"chat template: " + other}},
		{"-m " + bare + " --chat " + messages + " --chat-template " + other, 0, "[Once]", nil},
		{"-m " + bare + " --chat " + messages, exitUsage, "", []string{"has no chat template",
			"--chat-template"}},
		{"-m " + image + " --chat " + messages + " --chat-template " + strict, exitInput, "",
			[]string{"message 1 (user): no users here"}},
		{"-m " + image + " --chat " + other, exitInput, "", []string{other, "JSON"}},
		{"-m " + image + " --chat " + messages + " --max-input 1B", exitInput, "", []string{
			"--max-input"}},
		{"-m " + image + " --chat-template " + other + " Once", exitUsage, "", []string{
			"--chat FILE"}},
		{"-m " + image + " --chat " + messages + " Once", exitUsage, "", []string{
			"leave out the prompt"}},
	} {
		o := command(append([]string{"generate", "-n", "2"}, strings.Fields(c.args)...)...)
		if o.code != c.code || !strings.HasPrefix(o.stdout, c.stdout) {
			t.Errorf("%s: code %d, %q, %q", c.args, o.code, o.stdout, o.stderr)
		}
		for _, want := range c.stderr {
			if !strings.Contains(o.stderr, want) {
				t.Errorf("%s: %q does not contain %q", c.args, o.stderr, want)
			}
		}
	}
	if _, err := chat.Read(t.Context(), "-", strings.NewReader(`[{"role":"u","content":"x"}]`),
		1<<10); err != nil {
		t.Errorf("stdin: %v", err)
	}
	_, err := chat.Read(t.Context(), "-", strings.NewReader("[          ]"), 4)
	if err == nil || !strings.Contains(err.Error(), "stdin") {
		t.Errorf("stdin beyond the limit: %v", err)
	}
}

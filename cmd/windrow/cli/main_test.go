package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
)

// asProgram in the environment makes the test binary behave as the program, for tests that need a
// process of their own: "trace check" starts itself again, and a signal needs somebody to send it
// to.
const asProgram = "WINDROW_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
		code := Run(ctx, os.Stdin, os.Stdout, os.Stderr, os.Args[1:])
		stop()
		os.Exit(code)
	}
	if _, err := repository(); err != nil { // before any test leaves this folder
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	if dir := fixtureDir.path; dir != "" {
		os.RemoveAll(dir)
	}
	os.Exit(code)
}

// outcome is what one command line did.
type outcome struct {
	code           int
	stdout, stderr string
}

func command(args ...string) outcome { return commandContext(context.Background(), nil, args...) }

// printed is a buffer that a write which was given up may still write to.
type printed struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *printed) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(b)
}

func (o *printed) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// commandContext runs a command line; stderr also goes to watch, unless that is nil.
func commandContext(ctx context.Context, watch io.Writer, args ...string) outcome {
	var stdout, stderr printed
	var errs io.Writer = &stderr
	if watch != nil {
		errs = io.MultiWriter(&stderr, watch)
	}
	code := Run(ctx, strings.NewReader(""), &stdout, errs, args)
	return outcome{code, stdout.String(), stderr.String()}
}

// forced lets a command line that was run before replace the files that it wrote.
func forced(args []string) []string {
	if !slices.Contains(args, "-o") && !slices.Contains(args, "--plot") {
		return args
	}
	return append(slices.Clone(args), "--force")
}

// must runs a command line that has to succeed and returns its stdout.
func must(t *testing.T, args ...string) string {
	t.Helper()
	o := command(args...)
	if o.code != exitOK {
		t.Fatalf("windrow %s: exit %d\n%s", strings.Join(args, " "), o.code, o.stderr)
	}
	return o.stdout
}

// saysAll reports the words that are not in a text, whose lines may be broken anywhere.
func saysAll(t *testing.T, text string, list ...string) {
	t.Helper()
	flat := strings.Join(strings.Fields(text), " ")
	for _, says := range list {
		if !strings.Contains(flat, says) {
			t.Errorf("%q is not in\n%s", says, text)
		}
	}
}

// fixtureDir is the folder that fixtures made, for TestMain to remove.
var fixtureDir struct{ path string }

// repository is the folder of the module.
var repository = sync.OnceValues(func() (string, error) { return filepath.Abs("../../..") })

// made builds the small files that many tests read, once: an image of the shipped model, a recorded
// trace, a synthetic trace, a Run of it.
var made = sync.OnceValues(func() (string, error) {
	root, err := repository()
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "windrow-cli-test-")
	if err != nil {
		return "", err
	}
	fixtureDir.path = dir
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, args := range [][]string{
		{"pack", filepath.Join(root, "examples/models/tales"), "-o", at("tales.flash.safetensors")},
		{"record", "-m", at("tales.flash.safetensors"), "--prompts", filepath.Join(root,
			"examples/prompts/tales.txt"), "--limit", "2", "-n", "6", "-o",
			at("tales.trace.arrow")},
		{"synth", "trace", "--like", "opt-6.7b", "--layers", "2", "--tokens", "6", "--prompt", "2",
			"-o", at("tiny.trace.arrow")},
		{"sim", "--trace", at("tiny.trace.arrow"), "-d", "m1-max", "-o", at("tiny.run.arrow")},
		{"sim", "--trace", at("tiny.trace.arrow"), "-d", "m1-max", "--window", "1", "-o",
			at("other.run.arrow")},
	} {
		if o := command(args...); o.code != exitOK {
			return "", fmt.Errorf("windrow %s: exit %d: %s", strings.Join(args, " "), o.code,
				o.stderr)
		}
	}
	return dir, nil
})

// workspace is a fresh working folder with the fixtures, the examples and files that are bad in
// known ways.
func workspace(t *testing.T) {
	t.Helper()
	from, err := made()
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	linkExamples(t)
	files, err := os.ReadDir(from)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if err := os.Link(filepath.Join(from, f.Name()), f.Name()); err != nil {
			t.Fatal(err)
		}
	}
	cut := func(name, to string, bytes int) {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		write(t, to, string(data[:len(data)-bytes]))
	}
	cut("tales.flash.safetensors", "cut.flash.safetensors", 4096)
	cut("tiny.trace.arrow", "cut.trace.arrow", 4096)
	cut("tiny.run.arrow", "cut.run.arrow", 1024)
	write(t, "empty", "")
	write(t, "words.txt", "Once upon a time\n")
	write(t, "binary.txt", "a\x00b\xff\n")
	write(t, "lfs", "version https://git-lfs.github.com/spec/v1\n"+
		"oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n")
	if err := os.Mkdir("folder", 0o755); err != nil {
		t.Fatal(err)
	}
}

func linkExamples(t *testing.T) {
	t.Helper()
	root, err := repository()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(root, "examples"), "examples"); err != nil {
		if runtime.GOOS == "windows" {
			t.Skipf("symbolic links need a privilege here: %v", err)
		}
		t.Fatal(err)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// names lists the working folder, to see what a command left.
func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	} else if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

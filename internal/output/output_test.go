package output_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/windrow-sim/windrow/internal/output"
	"github.com/windrow-sim/windrow/internal/output/outputtest"
)

// TestMain lets the test program be a second process: it writes a file and waits to be killed.
func TestMain(m *testing.M) {
	if path := os.Getenv("OUTPUT_TEST_HOLD"); path != "" {
		f, err := output.Create(path)
		if err == nil {
			_, err = f.Write([]byte("half"))
		}
		fmt.Println(err)
		io.Copy(io.Discard, os.Stdin) // until the parent ends or kills it
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// holder starts a process that is writing path.
func holder(t *testing.T, path string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(exe)
	c.Env = append(os.Environ(), "OUTPUT_TEST_HOLD="+path)
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(); c.Wait() })
	word := make([]byte, 6)
	if _, err := io.ReadFull(out, word); err != nil || string(word) != "<nil>\n" {
		t.Fatalf("the second process says %q, %v", word, err)
	}
	return c
}

func put(path, text string) error {
	return output.Write(path, func(f *output.File) error {
		_, err := io.WriteString(f, text)
		return err
	})
}

func names(t *testing.T, dir string) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

func content(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A file appears with its name, the permissions of the umask and nothing beside it; a second one
// replaces it.
func TestWrite(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x")
	for _, text := range []string{"one", "two"} {
		if err := put(path, text); err != nil {
			t.Fatal(err)
		}
		if got := content(t, path); got != text {
			t.Errorf("%q, want %q", got, text)
		}
	}
	if got := names(t, dir); len(got) != 1 {
		t.Errorf("beside it are %q", got)
	}
	plain := filepath.Join(dir, "plain")
	if err := os.WriteFile(plain, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	want, err1 := os.Stat(plain)
	got, err2 := os.Stat(path)
	if err1 != nil || err2 != nil || got.Mode() != want.Mode() {
		t.Errorf("mode %v, want %v", got.Mode(), want.Mode())
	}
}

// A claim refuses what is there, unless it may be replaced, and Create takes it over.
func TestClaim(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x")
	release, _, err := output.Claim(path, false)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := output.Claim(path, false); !errors.Is(err, output.ErrBusy) {
		t.Errorf("a second claim: %v", err)
	}
	if err := put(path, "one"); err != nil {
		t.Error(err)
	}
	release() // of what is written by now
	if got := content(t, path); got != "one" {
		t.Errorf("%q", got)
	}
	_, _, err = output.Claim(path, false)
	if !errors.Is(err, output.ErrExists) || !strings.Contains(err.Error(), path) ||
		!strings.Contains(err.Error(), "--force") {
		t.Errorf("of a file that is there: %v", err)
	}
	if release, _, err = output.Claim(path, true); err != nil {
		t.Fatal(err)
	}
	release()
	if got := names(t, dir); len(got) != 1 || content(t, path) != "one" {
		t.Errorf("a claim that was given up left %q", got)
	}
}

// A second process is refused at once and told who writes; when that one is killed, its unfinished
// file goes and the name is free.
func TestSecondWriter(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x")
	first := holder(t, path)
	err := put(path, "mine")
	if !errors.Is(err, output.ErrBusy) || !strings.Contains(err.Error(), fmt.Sprint("process ",
		first.Process.Pid)) {
		t.Errorf("beside process %d: %v", first.Process.Pid, err)
	}
	list, err := output.Clean(dir, false)
	if err != nil || len(list) != 1 || list[0].State != output.Held || list[0].Size != 4 {
		t.Errorf("clean: %v, %v", list, err)
	}
	if err := first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	first.Wait()
	if list, err = output.Clean(dir, true); err != nil || len(list) != 1 ||
		list[0].State != output.Dead {
		t.Errorf("clean of a dead one: %v, %v", list, err)
	}
	release, stale, err := output.Claim(path, false)
	if err != nil || len(stale) != 1 || stale[0] != list[0].Path {
		t.Fatalf("after a kill: %q, %v", stale, err)
	}
	defer release()
	if err := put(path, "mine"); err != nil {
		t.Error(err)
	}
	if got := names(t, dir); len(got) != 1 || content(t, path) != "mine" {
		t.Errorf("%q", got)
	}
}

// V9: many contenders for a name that a dead process had. One of them gets it, every time.
func TestField_V9_OneWinner(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x")
	const contenders, rounds = 8, 1000
	for round := range rounds {
		dead := fmt.Sprintf("%s.%d-7.partial", path, 1<<22+round)
		if err := os.WriteFile(dead, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		var begin, end sync.WaitGroup
		begin.Add(1)
		files := make([]*output.File, contenders)
		errs := make([]error, contenders)
		for i := range contenders {
			end.Go(func() {
				begin.Wait()
				files[i], errs[i] = output.Create(path)
			})
		}
		begin.Done()
		end.Wait()
		won := 0
		for i, f := range files {
			if f != nil {
				won++
				f.Abort()
			} else if !errors.Is(errs[i], output.ErrBusy) {
				t.Fatal(errs[i])
			}
		}
		if won != 1 {
			t.Fatalf("round %d: %d of %d won", round, won, contenders)
		}
	}
	if got := names(t, dir); len(got) != 0 {
		t.Errorf("left %q", got)
	}
}

// V3, V4, V6, V7: whatever operation fails, the name holds the old file or the new one, whole, and
// nothing lies beside it. The error names the file.
func TestField_V6_EveryFailure(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x")
	for _, broken := range []error{syscall.EIO, syscall.ENOSPC, syscall.EDQUOT} {
		outputtest.Each(t, broken, func() error {
			if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
				t.Fatal(err)
			}
			return put(path, "new")
		}, func(fired string, err error) {
			if strings.Contains(fired, "remove") {
				return // of nothing that matters
			}
			if !errors.Is(err, broken) || !strings.Contains(err.Error(), "x") ||
				!strings.Contains(err.Error(), "name a file on") {
				t.Errorf("%s: %v", fired, err)
			}
			want := "old"
			if strings.HasPrefix(fired[strings.Index(fired, ",")+2:], "sync "+filepath.Base(dir)) {
				want = "new"
			}
			if got := names(t, dir); len(got) != 1 || content(t, path) != want {
				t.Errorf("%s: %q, %q in it", fired, got, content(t, path))
			}
		})
	}
}

// V7: a disk that takes fewer bytes and says nothing.
func TestField_V7_ShortWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	outputtest.Use(t, &outputtest.Faults{At: 2, Short: true})
	if err := put(path, "text"); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("%v", err)
	}
	if got := names(t, filepath.Dir(path)); len(got) != 0 {
		t.Errorf("left %q", got)
	}
}

// V6: there is no second sync after one that failed, which would report success.
func TestField_V6_FirstSyncIsFinal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	outputtest.Use(t, &outputtest.Faults{At: 3, Err: syscall.EIO}) // open, write, sync
	f, err := output.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Abort()
	if _, err := f.Write([]byte("text")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := f.Commit(); !errors.Is(err, syscall.EIO) {
			t.Errorf("%v", err)
		}
	}
	if got := names(t, filepath.Dir(path)); len(got) != 0 {
		t.Errorf("left %q", got)
	}
}

// V3, V4: a power cut after any operation leaves the old file or the new one, and of a pair never a
// description of another file. What was reported as written is there.
func TestField_V3_PowerCut(t *testing.T) {
	for _, old := range []map[string][]byte{
		{}, {"x": []byte("old"), "x.about": []byte("about old")},
	} {
		dir := t.TempDir()
		for name, text := range old {
			if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		disk := outputtest.Record(dir)
		restore := output.Use(disk)
		err := pair(dir)
		restore()
		if err != nil {
			t.Fatal(err)
		}
		last := ""
		disk.Cuts(t, old, func(dir, cut string) {
			file, err := os.ReadFile(filepath.Join(dir, "x"))
			if err != nil && len(old) > 0 {
				t.Errorf("%s: %v", cut, err)
			}
			if err == nil && string(file) != "new" && string(file) != string(old["x"]) {
				t.Errorf("%s: %q", cut, file)
			}
			about, err := os.ReadFile(filepath.Join(dir, "x.about"))
			if err == nil && len(file) > 0 && string(about) != "about "+string(file) {
				t.Errorf("%s: %q describes %q", cut, about, file)
			}
			last = string(file) + ", " + string(about)
		})
		if last != "new, about new" {
			t.Errorf("at the end: %q", last)
		}
	}
}

func pair(dir string) error {
	file, err := output.Create(filepath.Join(dir, "x"))
	if err != nil {
		return err
	}
	defer file.Abort()
	about, err := output.Create(filepath.Join(dir, "x.about"))
	if err != nil {
		return err
	}
	defer about.Abort()
	if _, err := io.WriteString(file, "new"); err != nil {
		return err
	}
	if _, err := io.WriteString(about, "about new"); err != nil {
		return err
	}
	return output.CommitPair(file, about, "", "")
}

// A pair on a disk that fails is old or new or without its description.
func TestPairFailures(t *testing.T) {
	dir := t.TempDir()
	outputtest.Each(t, syscall.EIO, func() error {
		for _, text := range []string{"old", "about old"} {
			name := map[string]string{"old": "x", "about old": "x.about"}[text]
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return pair(dir)
	}, func(fired string, err error) {
		if err == nil && !strings.Contains(fired, "remove") {
			t.Errorf("%s: no error", fired)
		}
		file, about := content(t, filepath.Join(dir, "x")), ""
		if b, err := os.ReadFile(filepath.Join(dir, "x.about")); err == nil {
			about = string(b)
		}
		if file != "old" && file != "new" || about != "" && about != "about "+file {
			t.Errorf("%s: %q describes %q", fired, about, file)
		}
		for _, name := range names(t, dir) {
			if strings.Contains(name, "partial") && !strings.Contains(fired, "remove") {
				t.Errorf("%s: left %s", fired, name)
			}
		}
	})
}

// V11: the unfinished file lies beside its target, wherever temporary files go; a folder that
// cannot be written to is named.
func TestField_V11_Folders(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", filepath.Join(dir, "missing"))
	if err := put(filepath.Join(dir, "x"), "text"); err != nil {
		t.Error(err)
	}
	err := put(filepath.Join(dir, "missing", "x"), "text")
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), filepath.Join(dir,
		"missing")) {
		t.Errorf("%v", err)
	}
	closed := filepath.Join(dir, "closed")
	if err := os.Mkdir(closed, 0o500); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 || runtime.GOOS == "windows" {
		return // who may write everywhere
	}
	if err := put(filepath.Join(closed, "x"), "text"); !errors.Is(err, fs.ErrPermission) ||
		!strings.Contains(err.Error(), closed) {
		t.Errorf("%v", err)
	}
}

// A symbolic link is followed, also one that names nothing yet; a device and a pipe are written to
// as they are, and stay.
func TestOtherThanFiles(t *testing.T) {
	dir := t.TempDir()
	link, target := filepath.Join(dir, "link"), filepath.Join(dir, "target")
	if err := os.Symlink("target", link); err != nil {
		t.Skip(err)
	}
	for _, text := range []string{"one", "two"} {
		if err := put(link, text); err != nil {
			t.Fatal(err)
		}
		info, err := os.Lstat(link)
		if err != nil || info.Mode()&fs.ModeSymlink == 0 || content(t, target) != text {
			t.Errorf("%v, %q, %v", info.Mode(), content(t, target), err)
		}
	}
	if err := os.Symlink("loop", filepath.Join(dir, "loop")); err != nil {
		t.Fatal(err)
	}
	if err := put(filepath.Join(dir, "loop"), ""); err == nil ||
		!strings.Contains(err.Error(), "symbolic links") {
		t.Errorf("%v", err)
	}
	if err := put(dir, ""); err == nil || !strings.Contains(err.Error(), "is a folder") {
		t.Errorf("%v", err)
	}
	null, err := os.Stat(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	if err := put(os.DevNull, "text"); err != nil {
		t.Error(err)
	}
	if now, err := os.Stat(os.DevNull); err != nil || !os.SameFile(now, null) {
		t.Errorf("the device is another one: %v", err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := put(fmt.Sprintf("/proc/self/fd/%d", w.Fd()), "text"); err == nil {
		w.Close()
		if got, _ := io.ReadAll(r); string(got) != "text" {
			t.Errorf("through a pipe: %q", got)
		}
	} else if runtime.GOOS == "linux" {
		t.Error(err)
	}
}

// A journal is gone on with, by one process at a time, and published whole.
func TestJournal(t *testing.T) {
	dir := t.TempDir()
	path, final := filepath.Join(dir, "x.partial"), filepath.Join(dir, "x")
	j, err := output.OpenJournal(path, true)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := j.Write([]byte("one\n")); err != nil {
		t.Fatal(err)
	}
	if _, err := output.OpenJournal(path, false); !errors.Is(err, output.ErrBusy) {
		t.Errorf("a second process: %v", err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := output.OpenJournal(path, true); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a fresh one where one is: %v", err)
	}
	if list, err := output.Clean(dir, false); err != nil || len(list) != 1 ||
		list[0].State != output.Resumable {
		t.Errorf("clean: %v, %v", list, err)
	}
	if j, err = output.OpenJournal(path, false); err != nil {
		t.Fatal(err)
	}
	if have, err := io.ReadAll(j); err != nil || !bytes.Equal(have, []byte("one\n")) {
		t.Errorf("%q, %v", have, err)
	}
	if err := j.Publish(final); err != nil {
		t.Fatal(err)
	}
	if got := names(t, dir); len(got) != 1 || content(t, final) != "one\n" {
		t.Errorf("%q", got)
	}
	if j, err = output.OpenJournal(path, true); err != nil {
		t.Fatal(err)
	}
	if err := j.Discard(); err != nil || len(names(t, dir)) != 1 {
		t.Errorf("%q, %v", names(t, dir), err)
	}
}

// A scratch file is there while its process lives, and Clean knows it.
func TestScratch(t *testing.T) {
	dir := t.TempDir()
	f, err := output.Scratch(dir, "windrow-probe")
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Seal(); err != nil {
		t.Fatal(err)
	}
	list, err := output.Clean(dir, false)
	if err != nil || len(list) != 1 || list[0].Path != f.Name() || list[0].State != output.Held {
		t.Errorf("%v, %v", list, err)
	}
	f.Abort()
	if got := names(t, dir); len(got) != 0 {
		t.Errorf("left %q", got)
	}
}

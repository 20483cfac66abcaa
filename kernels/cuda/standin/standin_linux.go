//go:build amd64 || arm64

package standin

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/ebitengine/purego"
	"github.com/windrow-sim/windrow/kernels/cuda"
	"github.com/windrow-sim/windrow/kernels/source"
)

//go:embed library/*.cc library/*.h
var library embed.FS

// Library is the loaded stand-in. A process has one device, so tests that use it must not run in
// parallel.
type Library struct {
	path    string
	fail    func(name string, nth, code, lose int32)
	live    func(kind int32) int32
	calls   func(name string) int32
	limit   func(bytes uint64)
	trouble func(text []byte, size int32)
	reset   func()
}

// Open builds the library unless the user's cache has it, loads it and resets its device. At the
// end of the test, everything made on the device must be freed. The test is skipped where there is
// no C++ compiler.
func Open(t testing.TB) *Library {
	t.Helper()
	path := build(t)
	t.Logf("emulated device: %s", path)
	handle, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		t.Fatalf("standin: %s cannot be loaded: %v", path, err)
	}
	l := &Library{path: path}
	purego.RegisterLibFunc(&l.fail, handle, "standin_fail")
	purego.RegisterLibFunc(&l.live, handle, "standin_live")
	purego.RegisterLibFunc(&l.calls, handle, "standin_calls")
	purego.RegisterLibFunc(&l.limit, handle, "standin_limit")
	purego.RegisterLibFunc(&l.trouble, handle, "standin_trouble")
	purego.RegisterLibFunc(&l.reset, handle, "standin_reset")
	l.reset()
	t.Cleanup(func() {
		if left := l.Left(); left != "" {
			t.Errorf("left on the device after the test: %s", left)
		}
		l.reset() // the library stays loaded, for the next test
	})
	return l
}

// Path is the library's file, for cuda.OpenLibrary.
func (l *Library) Path() string { return l.path }

// Fail makes the nth next call of a function of the driver fail. With lose every later call fails
// in the same way.
func (l *Library) Fail(call string, nth int, code cuda.Result, lose bool) {
	var all int32
	if lose {
		all = 1
	}
	l.fail(call, int32(nth), int32(code), all)
}

// Calls is how often a function was called.
func (l *Library) Calls(call string) int { return int(l.calls(call)) }

// Limit sets the size of the device's memory in bytes; the default is 1 GiB.
func (l *Library) Limit(bytes uint64) { l.limit(bytes) }

// Trouble describes the error of the last kernel that failed.
func (l *Library) Trouble() string {
	text := make([]byte, 512)
	l.trouble(text, int32(len(text)))
	said, _, _ := strings.Cut(string(text), "\x00")
	return said
}

// Left lists what has been made on the device and not freed; "" is nothing.
func (l *Library) Left() string {
	var left []string
	for kind, name := range []string{"pieces of device memory", "pieces of pinned memory",
		"registrations", "streams", "events", "modules", "contexts"} {
		if n := l.live(int32(kind)); n != 0 {
			left = append(left, fmt.Sprintf("%d %s", n, name))
		}
	}
	return strings.Join(left, ", ")
}

// Forget resets the device although something is left on it.
func (l *Library) Forget() { l.reset() }

// build compiles the library and returns its path.
func build(t testing.TB) string {
	t.Helper()
	files := Emulator(t)
	read(t, files, library, "library", "kernels.cc", "selftest.cc")
	names, err := fs.Glob(source.CUDA, "*.*")
	if err != nil {
		t.Fatal(err)
	}
	read(t, files, source.CUDA, ".", names...)
	return Build(t, "standin", files)
}

// Emulator returns the emulator's source files by name, for a library with other kernels.
func Emulator(t testing.TB) map[string]string {
	t.Helper()
	files := map[string]string{}
	read(t, files, library, "library", "driver.cc", "emulate.h", "fibers.cc")
	return files
}

// read adds files of a folder.
func read(t testing.TB, to map[string]string, from fs.FS, folder string, names ...string) {
	t.Helper()
	for _, name := range names {
		text, err := fs.ReadFile(from, path.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		to[name] = string(text)
	}
}

// Build compiles C++ files into a library in the user's cache (without one, among temporary
// files), unless the library is there, and returns its path. The name contains a hash of the texts,
// compiler and flags. The test is skipped where there is no compiler.
func Build(t testing.TB, name string, files map[string]string, more ...string) string {
	t.Helper()
	compiler := ""
	for _, name := range []string{os.Getenv("CXX"), "g++", "clang++"} {
		if found, err := exec.LookPath(name); err == nil && compiler == "" {
			compiler = found
		}
	}
	if compiler == "" {
		t.Skip("the stand-in for a device needs a C++ compiler: install g++")
	}
	flags := append([]string{"-std=c++17", "-O1", "-fPIC", "-shared", "-U_FORTIFY_SOURCE",
		"-ffp-contract=off", "-fvisibility=hidden", "-Wno-unknown-pragmas"}, more...)
	hash := sha256.New()
	fmt.Fprint(hash, compiler, flags)
	for _, file := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(hash, "%s %d\n%s", file, len(files[file]), files[file])
	}
	path := filepath.Join(cache(t), name+"-"+hex.EncodeToString(hash.Sum(nil)[:12])+".so")
	lock, err := os.OpenFile(filepath.Join(filepath.Dir(path), "lock"), os.O_CREATE|os.O_RDWR,
		0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	// Packages are tested concurrently: only one of them compiles.
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err == nil {
		return path
	}
	compile(t, compiler, flags, files, path)
	return path
}

func compile(t testing.TB, compiler string, flags []string, files map[string]string, path string) {
	t.Helper()
	folder := t.TempDir()
	args := append(flags, "-I"+folder, "-o", filepath.Join(folder, "standin.so"))
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if filepath.Ext(name) == ".cc" {
			args = append(args, filepath.Join(folder, name))
		}
	}
	if out, err := exec.CommandContext(t.Context(), compiler,
		args...).CombinedOutput(); err != nil {
		t.Fatalf("standin: %s: %v\n%s", compiler, err, out)
	}
	// A file under its final name is whole, even if the test is stopped.
	text, err := os.ReadFile(filepath.Join(folder, "standin.so"))
	if err != nil {
		t.Fatal(err)
	}
	whole, err := os.CreateTemp(filepath.Dir(path), "standin-*.part")
	if err != nil {
		t.Fatal(err)
	}
	_, err = whole.Write(text)
	if err := firstError(err, whole.Close(), os.Rename(whole.Name(), path)); err != nil {
		t.Fatal(err)
	}
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// cache is the user's, or where there is none a folder of the user's among the temporary files:
// compiling takes seconds, and most tests want the same library.
func cache(t testing.TB) string {
	t.Helper()
	if user, err := os.UserCacheDir(); err == nil {
		folder := filepath.Join(user, "windrow-tests")
		if os.MkdirAll(folder, 0o700) == nil {
			return folder
		}
	}
	folder := filepath.Join(os.TempDir(), fmt.Sprintf("windrow-tests-%d", os.Getuid()))
	if err := os.Mkdir(folder, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return t.TempDir()
	}
	// What another user has put there is not loaded.
	info, err := os.Lstat(folder)
	if err != nil || !info.IsDir() || info.Mode().Perm()&0o077 != 0 {
		return t.TempDir()
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); !ok || int(owner.Uid) != os.Getuid() {
		return t.TempDir()
	}
	return folder
}

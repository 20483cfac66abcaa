package cli

import (
	"os"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/engine/flashio"
)

// A file in memory is no flash, whatever its speed: exit 4, the reason, and nothing written.
func TestProbeRefusesMemory(t *testing.T) {
	t.Chdir(t.TempDir())
	f, err := os.CreateTemp("/dev/shm", "windrow-cli-test-")
	if err != nil {
		t.Skipf("no memory file system to try: %v", err)
	}
	defer os.Remove(f.Name())
	if err := f.Truncate(32 << 20); err != nil {
		t.Fatal(err)
	}
	f.Close()
	if info, err := flashio.Describe(f.Name()); err != nil || !info.MemoryBacked {
		t.Skipf("/dev/shm is not in memory here (%v)", err)
	}
	o := command("probe", f.Name(), "--samples", "s.jsonl", "-o", "x.device.yaml")
	if o.code != exitHost || !strings.Contains(o.stderr, "is memory and not flash; give a path "+
		"on the drive") {
		t.Errorf("exit %d, want %d and the reason: %s", o.code, exitHost, o.stderr)
	}
	if left := names(t, "."); len(left) != 0 {
		t.Errorf("a refused probe left %v", left)
	}
}

func TestProbeWritesToNoExistingFile(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "s.jsonl", "my thesis\n")
	write(t, "image", strings.Repeat("weights!", 4<<20))
	for _, c := range []struct {
		line string
		code int
		says string
	}{
		{"probe image --resume -o x.device.yaml", exitUsage, "--samples"},
		{"probe image --samples s.jsonl -o x.device.yaml", exitFailed, "exists already"},
		{"probe image --samples s.jsonl --resume -o x.device.yaml", exitFailed, "line 1"},
	} {
		o := command(words(t, c.line)...)
		if o.code == exitHost {
			t.Skipf("this file system cannot be measured: %s", o.stderr)
		}
		if o.code != c.code || !strings.Contains(o.stderr, c.says) {
			t.Errorf("%s: exit %d, want %d and %q: %s", c.line, o.code, c.code, c.says, o.stderr)
		}
	}
	if data, _ := os.ReadFile("s.jsonl"); string(data) != "my thesis\n" {
		t.Errorf("the file became %q", data)
	}
}

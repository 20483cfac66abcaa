package world

import (
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var plantedFlag = flag.Bool("planted", false, "plant every fault of the list, one at a time, and "+
	"have the world find it")

// plantedSeeds are enough to find any planted fault.
const plantedSeeds = "500"

// fault is a fault to plant: in a file, new stands for old, which the file has once.
type fault struct{ name, file, old, new string }

// plantedFaults must each be found. The first four are those that issue and docs name.
var plantedFaults = []fault{
	{"an eviction is dropped", "engine/rowcache.go",
		"for _, u := range units {", "for _, u := range units[min(1, len(units)):] {"},
	{"a wrong staging offset", "engine/prefetch.go",
		"at := b.offset + r.Buf", "at := r.Buf"},
	{"a retry is forgotten", "engine/flashio/pread.go",
		"&& !uring.Transient(err)", ""},
	{"a retry is forgotten by the ring", "engine/flashio/uring/loop.go",
		"case result < 0 && !Transient(errno):", "case result < 0:"},
	{"a window one too long", "internal/decisions/policy/window.go",
		"w := &Window{k: k}", "w := &Window{k: k + 1}"},
	{"a window one too short", "internal/decisions/policy/window.go",
		"w := &Window{k: k}", "w := &Window{k: max(k-1, 0)}"},
	{"a short read passes for a whole one", "engine/flashio/uring/loop.go",
		"if end >= size {", "if end >= size || n > 0 {"},
	{"a direct read goes on within a block", "engine/flashio/uring/loop.go",
		"return end / align * align", "return end"},
	{"a wrong place of a record", "internal/decisions/layout/layout.go",
		"buf := plan.Staging\n", "buf := plan.Staging / 2\n"},
	{"evictions one token late", "engine/prefetch.go",
		"n.copied = layer.cache.Delete(layer.pending)\n\t\t\tlayer",
		"n.copied = layer.cache.Delete(layer.pending[:0])\n\t\t\tlayer"},
	{"a prefetch's error is lost", "engine/prefetch.go",
		"return true, p.failed", "return true, nil"},
	{"a wake-up is lost", "engine/prefetch.go",
		"p.queue = append(p.queue, batches...)\n\tp.changed.Broadcast()",
		"p.queue = append(p.queue, batches...)"},
	{"a buffer is not freed", "engine/prefetch.go",
		"p.f.store.FreeStaging(p.staging))", "nil)"},
	{"a closing engine reads all it prefetches", "engine/prefetch.go",
		"p.queue = nil\n\tfor p.busy > 0 {", "for p.busy > 0 || len(p.queue) > 0 {"},
	{"submissions depend on time", "engine/prefetch.go",
		"&& p.queue[waiting].prefetch == p.queue[0].prefetch", ""},
	{"simulated prefetches beside the demand reads of layer 0", "sim/prefetch.go",
		"if row.Layer > 0 {\n\t\tp.lookAhead(int(row.Layer))\n\t}", "p.lookAhead(int(row.Layer))"},
	{"the simulated submissions are one", "sim/prefetcher.go",
		"added = added[n:]\n\t\tp.last++", "added = added[n:]"},
}

var foundAt = regexp.MustCompile(`seed(?:": ")? ?(\d+)(: .*| has run|")`)

// TestPlantedFaults checks that every fault of the list can still be planted. With -planted
// (`make vopr-planted`) it plants each and fails unless the world finds it.
func TestPlantedFaults(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range plantedFaults {
		path := filepath.Join(root, filepath.FromSlash(f.file))
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(text), f.old); n != 1 {
			t.Errorf("%s: %s has %q %d times: plant this fault elsewhere", f.name, f.file, f.old, n)
			continue
		}
		if *plantedFlag {
			plant(t, f, path, strings.Replace(string(text), f.old, f.new, 1))
		}
	}
}

// plant runs the seeds on a build in which a file has another text.
func plant(t *testing.T, f fault, path, text string) {
	dir := t.TempDir()
	other, overlay := filepath.Join(dir, "planted.go"), filepath.Join(dir, "overlay.json")
	list, err := json.Marshal(map[string]map[string]string{"Replace": {path: other}})
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{other: []byte(text), overlay: list} {
		if err := os.WriteFile(name, content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	out, err := exec.Command("go", "test", "-trimpath", "-overlay", overlay, "-run", "^TestSeeds$",
		"-timeout", "2m", "-seeds", plantedSeeds, ".").CombinedOutput()
	switch found := foundAt.FindSubmatch(out); {
	case err == nil:
		t.Errorf("%s: %s seeds did not find it", f.name, plantedSeeds)
	case found == nil:
		t.Errorf("%s: no seed is named: %v\n%s", f.name, err, out)
	default:
		t.Logf("%s: found by seed %s%.150s", f.name, found[1], found[2])
	}
}

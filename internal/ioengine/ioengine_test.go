package ioengine

import (
	"slices"
	"testing"
)

func TestTable(t *testing.T) {
	seen := map[string]bool{}
	for _, e := range Engines() {
		if seen[e.Name] || e.Name == "" || e.Name == Auto || e.Help == "" {
			t.Errorf("%+v: a name of its own and a line of help are needed", e)
		}
		seen[e.Name] = true
		if e.Parallel < 1 || e.Parallel > e.MaxParallel || e.Depth == "" && e.Parallel != 1 {
			t.Errorf("%s: a default of %d requests in flight, at most %d", e.Name, e.Parallel,
				e.MaxParallel)
		}
		if found, ok := Find(e.Name); !ok || found != e {
			t.Errorf("%s: found %+v, %v", e.Name, found, ok)
		}
		if got := DefaultParallel(e.Name); got != e.Parallel {
			t.Errorf("%s: default of %d, want %d", e.Name, got, e.Parallel)
		}
		if slices.Contains(SerialNames(), e.Name) != e.Serial ||
			slices.Contains(DirectNames(), e.Name) == e.Cached {
			t.Errorf("%+v: serial engines are %v, direct ones %v", e, SerialNames(), DirectNames())
		}
	}
	for _, name := range Preferred() {
		if e, ok := Find(name); !ok || e.Cached {
			t.Errorf("%s tries %q, which is unknown or never reads from flash", Auto, name)
		}
	}
	if _, ok := Find(Auto); ok {
		t.Error("auto is in the table")
	}
	if got := DefaultParallel("libaio"); got != 32 {
		t.Errorf("an engine of fio has a default of %d, want that of a pool of threads", got)
	}
}

func TestTexts(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{Choice(), "auto (uring where it works, else pread), pread (threads), uring " +
			"(io_uring), mmap (mapped file), mem (copy in memory)"},
		{DepthChoice(), "threads (pread) or queue depth (uring)"},
		{DepthDefaults(), "32 or 256"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
	if want := []string{"auto", "pread", "uring", "mmap", "mem"}; !slices.Equal(Names(), want) {
		t.Errorf("names %v, want %v", Names(), want)
	}
}

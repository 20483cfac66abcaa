package throttle

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/windrow-sim/windrow/engine/flashio"
	"github.com/windrow-sim/windrow/internal/units"
)

func TestFind(t *testing.T) {
	const v1 = "31 24 0:27 / /sys/fs/cgroup/blkio rw,nosuid - cgroup cgroup rw,blkio\n" +
		"40 24 0:30 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
	const v2 = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"
	for name, c := range map[string]struct {
		mounts, membership string
		want               place
		ok                 bool
	}{
		"v1 beside v2": {v1, "7:blkio:/job\n0::/\n", place{false, "/sys/fs/cgroup/blkio",
			"/sys/fs/cgroup/blkio/job"}, true},
		"v2": {v2, "0::/user.slice/x\n", place{true, "/sys/fs/cgroup",
			"/sys/fs/cgroup/user.slice/x"}, true},
		"nothing": {"22 1 8:1 / / rw - ext4 /dev/sda1 rw\n", "0::/\n", place{}, false},
		"rubbish": {"- -\nx\n", "a:b\n", place{}, false},
	} {
		got, err := find(c.mounts, c.membership)
		if got != c.want || (err == nil) != c.ok {
			t.Errorf("%s: got %+v, %v; want %+v", name, got, err, c.want)
		}
	}
}

func TestSettings(t *testing.T) {
	l := Limit{Rate: 200 * units.MBps, IOPS: 1000}
	if got := settings(true, "8:0", l); !maps.Equal(got, map[string]string{
		"io.max": "8:0 rbps=200000000 riops=1000"}) {
		t.Errorf("v2: %v", got)
	}
	if got := settings(false, "8:0", Limit{IOPS: 9}); !maps.Equal(got, map[string]string{
		"blkio.throttle.read_iops_device": "8:0 9"}) {
		t.Errorf("v1: %v", got)
	}
}

// TestLimitHolds reads a file under a limit and finds it slowed: n bytes cannot take much less than
// n/rate.
func TestLimitHolds(t *testing.T) {
	const size, rate = 4 << 20, 16 * units.MBps
	path := filepath.Join(t.TempDir(), "data")
	if err := os.WriteFile(path, make([]byte, size), 0o644); err != nil {
		t.Fatal(err)
	}
	reader, err := flashio.Open(path, flashio.Options{Engine: flashio.EnginePread,
		Direct: flashio.DirectOn, Parallel: 1})
	if err != nil {
		t.Skipf("no direct reads here: %v", err)
	}
	defer reader.Close()
	leave, err := Enter(path, Limit{Rate: rate})
	if errors.Is(err, flashio.ErrEnvironment) {
		t.Skipf("no block-I/O limits here: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	buf := flashio.AlignedBuffer(size, 4096)
	defer flashio.FreeBuffer(buf)
	begin := time.Now()
	err = flashio.ReadFull(reader, 0, buf)
	took := time.Since(begin)
	if e := leave(); e != nil {
		t.Error(e)
	}
	if err != nil {
		t.Fatal(err)
	}
	if floor := time.Duration(rate.Time(size)) / 2; took < floor { // the first slice is free
		t.Errorf("%d bytes took %v under a limit of %v: less than half of the least possible", size,
			took, rate)
	}
	if _, err := os.Stat(filepath.Join("/sys/fs/cgroup/blkio",
		"windrow-"+strconv.Itoa(os.Getpid()))); err == nil {
		t.Error("the control group was left behind")
	}
}

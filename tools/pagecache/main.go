//go:build linux

// Pagecache walks a mapped file in a control group that holds only a part of it, and compares the
// hits of the kernel with those of the simulator's page cache. Run it as root: it makes a control
// group of its own, and sets the disk's read-ahead for the moment in which it opens its file.
//
// A hit is a touch without a major fault: with read-ahead a walk along the file has hits although
// all of it is read from the disk, so that the bytes read stand beside. The model's memory is what
// the file was seen to have at most: how much of the limit is left for it is not predicted.
//
// Times are compared only with --device, the model of this disk that `windrow probe --mmap` wrote,
// and mean nothing on a busy machine.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/windrow-sim/windrow/devicemodels"
	"github.com/windrow-sim/windrow/devicemodels/flash"
	"github.com/windrow-sim/windrow/internal/units"
)

const page = 4096

// measured is what the process in the control group found, after the first third of its walk.
type measured struct {
	Touches, Faults int
	Cached          int64 // bytes of the file in memory, at most
	Read            int64 // bytes, from the disk
	Took            time.Duration
}

func main() {
	size := flag.Int("mib", 64, "size of the file in `MiB`")
	dir := flag.String("dir", os.TempDir(), "folder on the disk to use")
	ahead := flag.Int("read-ahead", 128, "read-ahead of the mapping in `KiB`; 4 = a page")
	device := flag.String("device", "", "device model of this disk, to compare times")
	inside := flag.String("inside", "", "for the process in the control group: its `FOLDER`")
	kind := flag.String("walk", "", "for the process in the control group")
	threads := flag.Int("threads", 1, "for the process in the control group")
	flag.Parse()
	pages := *size << 20 / page
	var err error
	if *inside != "" {
		err = touch(*inside, *kind, pages, *threads)
	} else {
		err = compare(*dir, pages, *ahead, *device)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "pagecache:", err)
		os.Exit(1)
	}
}

// touch joins the control group and walks the file that it got as descriptor 3.
func touch(group, kind string, pages, threads int) error {
	pid := []byte(strconv.Itoa(os.Getpid()))
	if err := os.WriteFile(filepath.Join(group, "cgroup.procs"), pid, 0); err != nil {
		return err
	}
	steps := walk(kind, pages)
	data, err := unix.Mmap(3, 0, pages*page, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return fmt.Errorf("mapping the file: %w", err)
	}
	var next atomic.Int64
	var sum atomic.Uint64
	run := func(to int, watch func()) {
		var all sync.WaitGroup
		for t := range threads {
			all.Go(func() {
				runtime.LockOSThread()
				for mine := uint64(0); ; {
					i := next.Add(1) - 1
					if i >= int64(to) {
						sum.Add(mine)
						return
					}
					mine += uint64(data[int(steps[i])*page])
					if t == 0 && i%1024 < int64(threads) && watch != nil {
						watch()
					}
				}
			})
		}
		all.Wait()
	}
	warm := len(steps) / 3
	run(warm, nil)
	next.Store(int64(warm))
	var cached int64
	before, read, start := faults(), fromDisk(), time.Now()
	run(len(steps), func() {
		cached = max(cached, fileBytes(group))
	})
	m := measured{Touches: len(steps) - warm, Faults: faults() - before, Took: time.Since(start),
		Cached: cached, Read: fromDisk() - read}
	return json.NewEncoder(os.Stdout).Encode(m)
}

func faults() int {
	var r unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &r) != nil {
		return 0
	}
	return int(r.Majflt)
}

// fromDisk is the number of bytes that the process has had the kernel read from disks.
func fromDisk() int64 { return field("/proc/self/io", "read_bytes:") }

// fileBytes is the memory of file pages that is charged to a control group of either version.
func fileBytes(group string) int64 {
	return field(filepath.Join(group, "memory.stat"), "cache", "file")
}

// field is the number behind the first of the names in a file of names and numbers; 0 = none.
func field(path string, names ...string) (value int64) {
	f, err := os.Open(path)
	if err != nil {
		return 0
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		name, text, _ := strings.Cut(lines.Text(), " ")
		if slices.Contains(names, name) {
			value, _ = strconv.ParseInt(text, 10, 64)
			return value
		}
	}
	return 0
}

// root is the folder for control groups with a memory limit, and the name of their limit.
func root() (dir, limit string, err error) {
	const v1, v2 = "/sys/fs/cgroup/memory", "/sys/fs/cgroup"
	if _, err := os.Stat(v1 + "/memory.limit_in_bytes"); err == nil {
		return v1, "memory.limit_in_bytes", nil
	}
	control, err := os.ReadFile(v2 + "/cgroup.subtree_control")
	if err != nil || !strings.Contains(string(control), "memory") {
		return "", "", errors.New("no control groups with memory limits at /sys/fs/cgroup")
	}
	return v2, "memory.max", nil
}

// open opens the file with a read-ahead, which the kernel copies at that moment.
func open(path string, ahead int) (*os.File, error) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return nil, err
	}
	setting := fmt.Sprintf("/sys/class/bdi/%d:%d/read_ahead_kb", unix.Major(st.Dev),
		unix.Minor(st.Dev))
	old, err := os.ReadFile(setting)
	if err != nil {
		return nil, fmt.Errorf("the read-ahead of the disk: %w", err)
	}
	if err := os.WriteFile(setting, []byte(strconv.Itoa(ahead)), 0); err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	return f, errors.Join(err, os.WriteFile(setting, old, 0))
}

// compare runs twelve cases and prints a table.
func compare(dir string, pages, ahead int, device string) error {
	if os.Geteuid() != 0 {
		fmt.Println("skipped: control groups need root")
		return nil
	}
	groups, limit, err := root()
	if err != nil {
		fmt.Println("skipped:", err)
		return nil
	}
	spec := flash.Spec{Servers: 1, LTFB: 100_000, Align: 512}
	if device != "" {
		d, err := devicemodels.Load(context.Background(), device)
		if err != nil {
			return err
		}
		spec = d.Flash
		if spec.PageCache == nil {
			return fmt.Errorf("%s has no page_cache; write it with windrow probe --mmap", device)
		}
	}
	path := filepath.Join(dir, fmt.Sprintf("pagecache-%d.bin", os.Getpid()))
	defer os.Remove(path)
	if err := fill(path, pages); err != nil {
		return err
	}
	fmt.Print("| walk | limit (%) | threads | in memory (%) | hits measured (%) | " +
		"simulated (%) | off (points) | read measured (MiB) | simulated (MiB) | " +
		"time measured (s) | simulated (s) |\n" +
		"|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n")
	within := 0
	for i, kind := range []string{"cyclic", "zipf", "experts"} {
		for k, share := range []int{25, 50, 75, 90} {
			threads := []int{1, 2, 8}[(i+k)%3]
			m, err := one(filepath.Join(groups, fmt.Sprintf("pagecache-%d", os.Getpid())), limit,
				path, kind, pages, pages*page/100*share, threads, ahead)
			if err != nil {
				return fmt.Errorf("%s at %d %%: %w", kind, share, err)
			}
			s, err := simulate(spec, kind, pages, threads, units.Bytes(ahead)*units.KiB,
				units.Bytes(m.Cached))
			if err != nil {
				return err
			}
			hit := func(m measured) float64 {
				return 100 * (1 - float64(m.Faults)/float64(m.Touches))
			}
			off := hit(s) - hit(m)
			if math.Abs(off) <= 5 {
				within++
			}
			times := "– | –"
			if device != "" {
				times = fmt.Sprintf("%.2f | %.2f", m.Took.Seconds(), s.Took.Seconds())
			}
			fmt.Printf("| %s | %d | %d | %.0f | %.1f | %.1f | %+.1f | %d | %d | %s |\n", kind, share,
				threads, 100*float64(m.Cached)/float64(pages*page), hit(m), hit(s), off, m.Read>>20,
				s.Read>>20, times)
		}
	}
	fmt.Printf("\n%d of 12 hit ratios within 5 points\n", within)
	return nil
}

// fill writes a file that no file system stores as a hole.
func fill(path string, pages int) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	block := make([]byte, page)
	out := bufio.NewWriterSize(f, 1<<20)
	for n := range pages {
		for i := range block {
			block[i] = byte(n>>(i%3*8) + i)
		}
		if _, err := out.Write(block); err != nil {
			return err
		}
	}
	return errors.Join(out.Flush(), f.Sync())
}

// one runs a case in a control group of its own, with nothing of the file in memory before.
func one(group, limit, path, kind string, pages, bytes, threads, ahead int) (m measured,
	err error) {
	f, err := open(path, ahead)
	if err != nil {
		return m, err
	}
	defer f.Close()
	if err := unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED); err != nil {
		return m, err
	}
	if err := os.Mkdir(group, 0o755); err != nil {
		return m, err
	}
	defer func() {
		unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED)
		for range 20 { // the group is empty a moment after its last process
			if os.Remove(group) == nil {
				return
			}
			time.Sleep(50 * time.Millisecond)
		}
		err = errors.Join(err, fmt.Errorf("the control group %s stays; remove it", group))
	}()
	if err := os.WriteFile(filepath.Join(group, limit), []byte(strconv.Itoa(bytes)), 0); err != nil {
		return m, err
	}
	self, err := os.Executable()
	if err != nil {
		return m, err
	}
	cmd := exec.Command(self, "--inside", group, "--walk", kind, "--mib",
		strconv.Itoa(pages*page>>20), "--threads", strconv.Itoa(threads))
	cmd.ExtraFiles, cmd.Stderr = []*os.File{f}, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return m, err
	}
	return m, json.Unmarshal(out, &m)
}

// simulate walks the same pages through the station that `windrow sim --io mmap` reads with.
func simulate(spec flash.Spec, kind string, pages, threads int, ahead,
	memory units.Bytes) (m measured, err error) {
	cache := flash.PageCache{}
	if spec.PageCache != nil {
		cache = *spec.PageCache
	}
	cache.Capacity, cache.ReadAhead, cache.Threads = memory, ahead, threads
	spec.PageCache = &cache
	spec.Engines = map[string]flash.EngineCost{"mmap": {Cached: true}}
	station, err := flash.NewStation(spec, flash.Config{Engine: "mmap", Parallel: threads,
		Cores: runtime.NumCPU(), Span: units.Bytes(pages * page)})
	if err != nil {
		return m, err
	}
	steps := walk(kind, pages)
	reads := make([]flash.Read, len(steps))
	for i, n := range steps {
		reads[i] = flash.Read{Offset: units.Bytes(n) * page, Length: 1}
	}
	warm, err := station.Batch(0, reads[:len(reads)/3])
	if err != nil {
		return m, err
	}
	rest, err := station.Batch(warm.End, reads[len(reads)/3:])
	return measured{Touches: len(reads) - len(reads)/3, Faults: rest.Faults,
		Read: int64(rest.Moved), Took: time.Duration(rest.End - warm.End)}, err
}

package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const deviceFile = `version: "1"
name: two servers of 2 ms
source: test
flash:
  servers: 2
  ltfb: 2ms
  server_rate: 0B/s
  link_rate: 0B/s
  align: 512B
  engines:
    pread: {batch: 0ns, submit: 0ns, complete: 0ns}
host: {}
`

// inputs writes a device file and 64 KiB of data, and makes a directory to mount on.
func inputs(t *testing.T, device string) (data []byte, args []string) {
	t.Helper()
	dir := t.TempDir()
	data = make([]byte, 64<<10)
	for i := range data {
		data[i] = byte(i * 7 >> 3)
	}
	spec, bytesFile, mount := filepath.Join(dir, "d.yaml"), filepath.Join(dir, "data"),
		filepath.Join(dir, "mount")
	for name, content := range map[string][]byte{spec: []byte(device), bytesFile: data} {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(mount, 0o700); err != nil {
		t.Fatal(err)
	}
	return data, []string{"-spec", spec, "-data", bytesFile, "-mount", mount}
}

// TestMount: four threads read eight blocks of a mounted device. The bytes are right, the time is
// at least the device's, and the end of the context unmounts.
func TestMount(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("mounting needs root")
	}
	if _, err := os.Stat("/dev/fuse"); err != nil {
		t.Skipf("no FUSE here: %v", err)
	}
	data, args := inputs(t, deviceFile)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	said, stdout := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := run(ctx, args, stdout, os.Stderr)
		stdout.Close()
		ended <- err
	}()
	line, err := bufio.NewReader(said).ReadString('\n')
	if err != nil {
		if err := <-ended; errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENODEV) {
			t.Skipf("this host does not let us mount: %v", err)
		} else {
			t.Fatal(err)
		}
	}
	path, _, _ := strings.Cut(line, " is ")
	read(t, path, data)
	stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the device is still there: %v", err)
	}
}

func read(t *testing.T, path string, data []byte) {
	t.Helper()
	if _, err := os.OpenFile(path, os.O_RDWR, 0); !errors.Is(err, syscall.EROFS) {
		t.Errorf("opened for writing: %v", err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || info.Size() != int64(len(data)) {
		t.Fatalf("%v, %v; want %d bytes", info, err, len(data))
	}
	begin := time.Now()
	var wait sync.WaitGroup
	for thread := range int64(4) {
		wait.Go(func() {
			block := make([]byte, 4096)
			for _, off := range []int64{thread * 4096, int64(len(data)) - (thread+1)*4096} {
				if _, err := f.ReadAt(block, off); err != nil ||
					!bytes.Equal(block, data[off:off+4096]) {
					t.Errorf("at %d: wrong bytes, or %v", off, err)
				}
			}
		})
	}
	wait.Wait()
	if took := time.Since(begin); took < 8*time.Millisecond {
		t.Errorf("eight reads took %v, the two servers need 8 ms", took)
	}
	if _, err := f.ReadAt(make([]byte, 100), 0); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("a misaligned read gave %v", err)
	}
	if n, err := f.ReadAt(make([]byte, 4096), int64(len(data))-512); n != 512 || err != io.EOF {
		t.Errorf("a read across the end gave %d bytes, %v", n, err)
	}
}

func TestRefuses(t *testing.T) {
	_, good := inputs(t, deviceFile)
	_, background := inputs(t, strings.Replace(deviceFile, "  engines:",
		"  background: {rate: 1MB/s, chunk: 4KiB}\n  engines:", 1))
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "-spec"},
		{good[:4], "-mount"},
		{append([]string{"-span", "x"}, good...), "-span"},
		{append([]string{"-spec", "nowhere.yaml"}, good[2:]...), "nowhere.yaml"},
		{background, "flash.background"},
	} {
		err := run(t.Context(), c.args, io.Discard, io.Discard)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v", c.args, err)
		}
	}
}

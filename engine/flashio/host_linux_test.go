package flashio

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func TestFileSystemNames(t *testing.T) {
	for magic, want := range map[int64]string{
		0xEF53: "ext4", 0x01021994: "tmpfs", 0x9123683E: "btrfs", 0x794c7630: "overlay",
		0x58465342:                "xfs",
		int64(int32(-0x6EDC97C2)): "btrfs", // as 32-bit systems hand it over
		0:                         unknownFileSystem,
	} {
		if got := fileSystemName(magic); got != want {
			t.Errorf("%#x: %s, want %s", magic, got, want)
		}
	}
}

func TestDescribeDeviceInSysfs(t *testing.T) {
	sysfs := t.TempDir()
	drive := filepath.Join(sysfs, "devices", "nvme0n1")
	for path, text := range map[string]string{
		filepath.Join(drive, "queue", "logical_block_size"): "4096\n",
		filepath.Join(drive, "nvme0n1p2", "partition"):      "2\n",
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"259:0": drive, "259:2": filepath.Join(drive,
		"nvme0n1p2")} {
		if err := os.Symlink(to, filepath.Join(sysfs, link)); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		minor uint32
		want  FileInfo
	}{
		{0, FileInfo{Device: "nvme0n1", LogicalBlock: 4096}},
		{2, FileInfo{Device: "nvme0n1p2", LogicalBlock: 4096}},
		{7, FileInfo{}},
	} {
		var got FileInfo
		describeDevice(&got, sysfs, unix.Mkdev(259, c.minor))
		if got != c.want {
			t.Errorf("259:%d: %+v, want %+v", c.minor, got, c.want)
		}
	}
}

func TestMemoryDevices(t *testing.T) {
	for name, want := range map[string]bool{"zram0": true, "ram12": true, "ram": false,
		"ramfoo": false, "nvme0n1": false, "": false} {
		if got := isMemoryDevice(name); got != want {
			t.Errorf("%q: %v", name, got)
		}
	}
	p, err := planDirect(FileInfo{FileSystem: "ext4", Device: "zram0", MemoryBacked: true,
		DirectKnown: true, DirectBuf: 512, DirectOff: 512}, DirectAuto)
	if err != nil || p.direct {
		t.Errorf("ext4 on zram: %+v, %v", p, err)
	}
	mustContain(t, p.notes[0], "ext4 on zram0")
}

func TestDescribeRefusesOddFiles(t *testing.T) {
	if _, err := Describe("/dev/null"); err == nil {
		t.Error("described a character device")
	}
}

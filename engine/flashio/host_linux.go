package flashio

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/windrow-sim/windrow/internal/units"
)

// fileSystemName names a file system by its statfs magic, as listed in the kernel's
// include/uapi/linux/magic.h and, for the rest, in statfs(2). ext2, ext3 and ext4 share one magic
// and, today, one driver.
func fileSystemName(magic int64) string {
	for _, known := range [...]struct {
		magic uint32
		name  string
	}{
		{unix.EXT4_SUPER_MAGIC, "ext4"},
		{unix.XFS_SUPER_MAGIC, "xfs"},
		{unix.F2FS_SUPER_MAGIC, "f2fs"},
		{unix.BTRFS_SUPER_MAGIC, "btrfs"},
		{0x2fc12fc1, "zfs"},
		{0xca451a4e, "bcachefs"},
		{unix.OVERLAYFS_SUPER_MAGIC, "overlay"},
		{unix.TMPFS_MAGIC, "tmpfs"},
		{unix.RAMFS_MAGIC, "ramfs"},
		{unix.HUGETLBFS_MAGIC, "hugetlbfs"},
		{unix.NFS_SUPER_MAGIC, "nfs"},
		{unix.SMB2_SUPER_MAGIC, "smb2"},
		{unix.CIFS_SUPER_MAGIC, "cifs"},
		{unix.V9FS_MAGIC, "9p"},
		{unix.CEPH_SUPER_MAGIC, "ceph"},
		{unix.FUSE_SUPER_MAGIC, "fuse"},
		{unix.SQUASHFS_MAGIC, "squashfs"},
		{unix.EROFS_SUPER_MAGIC_V1, "erofs"},
		{unix.EXFAT_SUPER_MAGIC, "exfat"},
		{unix.MSDOS_SUPER_MAGIC, "vfat"},
		{0x7366746e, "ntfs3"},
		{unix.ECRYPTFS_SUPER_MAGIC, "ecryptfs"},
	} {
		if known.magic == uint32(magic) {
			return known.name
		}
	}
	return unknownFileSystem
}

func describeFile(f *os.File) (FileInfo, error) {
	info := FileInfo{Path: f.Name(), FileSystem: unknownFileSystem}
	fd := int(f.Fd())
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return info, fmt.Errorf("flashio: describe: %s: %w", info.Path, err)
	}
	device := st.Dev
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		var fs unix.Statfs_t
		if err := unix.Fstatfs(fd, &fs); err == nil {
			info.FileSystem = fileSystemName(int64(fs.Type))
		}
	case unix.S_IFBLK: // statfs would describe the file system of the device node
		info.FileSystem, device = blockDevice, st.Rdev
	default:
		return info, fmt.Errorf("flashio: describe: %s is neither a file nor a block device",
			info.Path)
	}
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return info, fmt.Errorf("flashio: describe: %s: size: %w", info.Path, err)
	}
	info.Size = units.Bytes(size)
	describeDevice(&info, "/sys/dev/block", uint64(device))
	info.MemoryBacked = isMemoryFileSystem(info.FileSystem) || isMemoryDevice(info.Device)
	describeDirect(&info, fd)
	return info, nil
}

// describeDirect asks for the alignment of direct reads (Linux 6.1; older kernels leave the bit
// unset).
func describeDirect(info *FileInfo, fd int) {
	var stx unix.Statx_t
	if err := unix.Statx(fd, "", unix.AT_EMPTY_PATH, unix.STATX_DIOALIGN, &stx); err != nil ||
		stx.Mask&unix.STATX_DIOALIGN == 0 {
		return
	}
	info.DirectKnown = true
	info.DirectBuf, info.DirectOff = units.Bytes(stx.Dio_mem_align),
		units.Bytes(stx.Dio_offset_align)
}

// describeDevice looks up the block device in sysfs. File systems without a block device of their
// own have none there.
func describeDevice(info *FileInfo, sysfs string, device uint64) {
	dir, err := filepath.EvalSymlinks(filepath.Join(sysfs, fmt.Sprintf("%d:%d", unix.Major(device),
		unix.Minor(device))))
	if err != nil {
		return
	}
	info.Device = filepath.Base(dir)
	for _, d := range []string{dir, filepath.Dir(dir)} { // a partition has the queue of its drive
		text, err := os.ReadFile(filepath.Join(d, "queue", "logical_block_size"))
		if err != nil {
			continue
		}
		if n, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil && n > 0 {
			info.LogicalBlock = units.Bytes(n)
		}
		return
	}
}

// isMemoryDevice recognises zram and ram disks.
func isMemoryDevice(name string) bool {
	number, ok := strings.CutPrefix(name, "zram")
	if !ok {
		number, ok = strings.CutPrefix(name, "ram")
	}
	_, err := strconv.Atoi(number)
	return ok && err == nil
}

// setDirect makes the reads of an open file direct.
func setDirect(f *os.File) (note string, err error) {
	flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFL, 0)
	if err != nil {
		return "", err
	}
	_, err = unix.FcntlInt(f.Fd(), unix.F_SETFL, flags|unix.O_DIRECT)
	return "", err
}

func memlockLimit() (units.Bytes, bool) {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &limit); err != nil ||
		limit.Cur == unix.RLIM_INFINITY {
		return 0, false
	}
	return units.Bytes(limit.Cur), true
}

// DropCache asks the kernel to drop the cached pages of a file, so that the next buffered reads
// reach the device. Dirty pages are written first. Pages that another process maps stay.
func DropCache(path string) error {
	f, err := openStored(path)
	if err != nil {
		return fmt.Errorf("flashio: drop cache: %w", err)
	}
	defer f.Close()
	// A file system without fsync (a read-only one, FUSE) has nothing to write back.
	if err := f.Sync(); err != nil && !errors.Is(err, unix.EINVAL) &&
		!errors.Is(err, unix.ENOSYS) && !errors.Is(err, unix.EOPNOTSUPP) &&
		!errors.Is(err, unix.EROFS) {
		return fmt.Errorf("flashio: drop cache: %w", err)
	}
	if err := unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED); err != nil {
		return fmt.Errorf("flashio: drop cache: %s: %w", path, err)
	}
	return nil
}

package flashio

import (
	"fmt"
	"io/fs"
	"os"

	"github.com/windrow-sim/windrow/internal/refusal"
	"github.com/windrow-sim/windrow/internal/units"
)

// FileInfo holds the facts about a file that its reads depend on.
type FileInfo struct {
	Path string      `json:"path"`
	Size units.Bytes `json:"size"`
	// by statfs, e.g. "ext4"; "block device"; "unknown"
	FileSystem string `json:"file_system"`
	// block device below, e.g. "nvme0n1p2"; empty when there is none or it is unknown
	Device string `json:"device"`
	// no flash below: tmpfs and the like, zram and ram disks
	MemoryBacked bool `json:"memory_backed"`
	// DirectKnown: the kernel answered STATX_DIOALIGN with the two alignments. 0 means that this
	// file cannot be read directly.
	DirectKnown bool        `json:"direct_known"`
	DirectBuf   units.Bytes `json:"direct_buffer_align"`
	DirectOff   units.Bytes `json:"direct_offset_align"`
	// LogicalBlock is the device's logical block size; 0 when unknown.
	LogicalBlock units.Bytes `json:"logical_block"`
}

// Describe returns the host's facts about the file at path, which may be a block device.
func Describe(path string) (FileInfo, error) {
	f, err := openStored(path)
	if err != nil {
		return FileInfo{}, fmt.Errorf("flashio: describe: %w", err)
	}
	defer f.Close()
	return describeFile(f)
}

// openStored opens a file or a block device. Of anything else it opens nothing: a pipe would wait
// for its writer.
func openStored(path string) (*os.File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	kind := info.Mode().Type()
	if kind != 0 && (kind&fs.ModeDevice == 0 || kind&fs.ModeCharDevice != 0) {
		return nil, refusal.Input("%s is neither a file nor a block device", path)
	}
	return os.Open(path)
}

// The strengths of a file system's promise that a direct read reaches the device.
type promise int

const (
	// may be served through a cache: compression, checksums, a network, a layer between
	promiseUnproven promise = iota
	promiseDirect           // block-based: direct reads reach the device
	promiseMemory           // there is no device
)

// promiseOf is the table of file systems. Every other one is unproven.
func promiseOf(info FileInfo) promise {
	if info.MemoryBacked {
		return promiseMemory
	}
	switch info.FileSystem {
	case "ext4", "xfs", "f2fs", blockDevice:
		return promiseDirect
	}
	return promiseUnproven
}

// isMemoryFileSystem reports whether files of a file system live in memory.
func isMemoryFileSystem(name string) bool {
	return name == "tmpfs" || name == "ramfs" || name == "hugetlbfs"
}

const (
	blockDevice       = "block device"
	unknownFileSystem = "unknown"
	defaultAlign      = units.Bytes(4096)
)

// directAlign returns the alignment that a direct read of the file needs: the kernel's answer, else
// the device's logical block size, else 4096, which every drive accepts.
func directAlign(info FileInfo) units.Bytes {
	if info.DirectKnown {
		return max(info.DirectBuf, info.DirectOff)
	}
	if info.LogicalBlock > 0 {
		return info.LogicalBlock
	}
	return defaultAlign
}

// directPlan is the decision for one file.
type directPlan struct {
	direct bool
	align  units.Bytes
	notes  []string
}

// planDirect decides whether to read the file directly. The error, only for DirectOn, wraps
// ErrEnvironment.
func planDirect(info FileInfo, want Direct) (directPlan, error) {
	p := directPlan{align: 1}
	var cannot string
	switch kind := promiseOf(info); {
	case kind == promiseMemory:
		cannot = fmt.Sprintf("%s is on %s, which lives in memory, so no read of it reaches flash; "+
			"put the file on a file system of the drive", info.Path, memoryPlace(info))
		p.notes = append(p.notes, sentence(cannot))
	case want == DirectOff:
	case info.DirectKnown && (info.DirectOff == 0 || info.DirectBuf == 0):
		cannot = fmt.Sprintf("%s says by STATX_DIOALIGN that %s cannot be read directly "+
			"(encrypted or journalled data, or a mount option); "+
			"put the file elsewhere or open it with direct off", info.FileSystem, info.Path)
		p.notes = append(p.notes, sentence(cannot+"; reads go through the page cache"))
	default:
		p.direct, p.align = true, directAlign(info)
		if kind == promiseUnproven {
			p.notes = append(p.notes, fmt.Sprintf("Direct unproven: %s may serve direct reads "+
				"of %s through a cache; compare a first and a second pass "+
				"and the bytes read in /proc/self/io, or put the file on ext4 or xfs.",
				info.FileSystem, info.Path))
		}
	}
	if want == DirectOn && cannot != "" {
		return directPlan{}, fmt.Errorf("flashio: direct: %w: %s", ErrEnvironment, cannot)
	}
	return p, nil
}

// memoryPlace names the holder of a memory-backed file.
func memoryPlace(info FileInfo) string {
	if isMemoryFileSystem(info.FileSystem) || info.Device == "" {
		return info.FileSystem
	}
	return info.FileSystem + " on " + info.Device
}

func sentence(s string) string { return s + "." }

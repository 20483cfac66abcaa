package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"github.com/windrow-sim/windrow/replay/emulated"
)

// root is the directory; it makes its one file when it is mounted.
type root struct {
	fs.Inode
	file *file
}

func (r *root) OnAdd(ctx context.Context) {
	r.AddChild("device", r.NewPersistentInode(ctx, r.file, fs.StableAttr{Mode: syscall.S_IFREG}),
		false)
}

// file is the device.
type file struct {
	fs.Inode
	device *emulated.Device
	size   int64
	log    io.Writer
}

var (
	_ fs.NodeOnAdder   = (*root)(nil)
	_ fs.NodeGetattrer = (*file)(nil)
	_ fs.NodeOpener    = (*file)(nil)
	_ fs.NodeReader    = (*file)(nil)
)

func (f *file) Getattr(_ context.Context, _ fs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	out.Mode, out.Size = 0o444, uint64(f.size)
	return 0
}

// Open passes every read to the device: without FOPEN_DIRECT_IO the page cache would serve the
// second.
func (f *file) Open(_ context.Context, flags uint32) (fs.FileHandle, uint32, syscall.Errno) {
	if flags&syscall.O_ACCMODE != syscall.O_RDONLY {
		return nil, 0, syscall.EROFS
	}
	return nil, fuse.FOPEN_DIRECT_IO, 0
}

func (f *file) Read(_ context.Context, _ fs.FileHandle, dest []byte, off int64) (fuse.ReadResult,
	syscall.Errno) {
	n, err := f.device.ReadAt(dest, off)
	switch {
	case err == nil, errors.Is(err, io.EOF):
		return fuse.ReadResultData(dest[:n]), 0
	case errors.Is(err, emulated.ErrAlign):
		return nil, syscall.EINVAL
	}
	fmt.Fprintln(f.log, "emufs:", err)
	return nil, syscall.EIO
}

// inFlight is how many asynchronous reads the kernel may have outstanding; those of threads that
// wait are not limited.
const inFlight = 512

// serve mounts a device of size bytes on a directory, and returns once it is there.
func serve(dir string, d *emulated.Device, size int64, log io.Writer) (*fuse.Server, error) {
	forever := time.Hour // nothing changes: no question needs to be asked twice
	return fs.Mount(dir, &root{file: &file{device: d, size: size, log: log}}, &fs.Options{
		EntryTimeout: &forever, AttrTimeout: &forever,
		MountOptions: fuse.MountOptions{
			FsName: "emufs", Name: "emufs", Options: []string{"ro"}, MaxBackground: inFlight,
			MaxWrite: 1 << 20, DisableXAttrs: true,
			DirectMountStrict: os.Geteuid() == 0,
			DirectMountFlags:  syscall.MS_RDONLY | syscall.MS_NOSUID | syscall.MS_NODEV,
		},
	})
}

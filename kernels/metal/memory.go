package metal

import (
	"fmt"
	"os"
	"unsafe"

	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/kernels/cuda"
)

// storageShared is MTLResourceStorageModeShared: one place in memory for host and device.
const storageShared = uintptr(0)

// reserve makes a buffer of some kind.
func (d *driver) reserve(size int64, kind kind) (p piece, err error) {
	const message = "newBufferWithLength:options:"
	err = d.do(false, func() error {
		buffer := d.Send(d.device, message, uintptr(size), storageShared)
		if buffer == 0 {
			return &Error{Message: message, Kind: cuda.ErrMemory, Text: units.Bytes(size).String() +
				"; use a smaller budget, context or batch"}
		}
		p = d.note(buffer, uint64(size), kind)
		return nil
	})
	return p, err
}

// note takes a new buffer into the list.
func (d *driver) note(buffer ID, size uint64, kind kind) piece {
	p := piece{device: uint64(d.Send(buffer, "gpuAddress")), host: uintptr(d.Pointer(buffer,
		"contents")), size: size,
		buffer: buffer, kind: kind}
	d.pieces.add(p)
	return p
}

// forget releases a buffer. Command buffers that use it keep it until they are done.
func (d *driver) forget(address uint64, kind kind) error {
	return d.do(true, func() error {
		p, ok := d.pieces.remove(address, kind)
		if !ok {
			return fmt.Errorf("metal: no memory was given out at %#x", address)
		}
		d.Send(p.buffer, "release")
		return nil
	})
}

// view is the host's memory of a piece from an offset on.
func (d *driver) view(p piece, offset, size uint64) []byte {
	start := d.Pointer(p.buffer, "contents")
	return unsafe.Slice((*byte)(unsafe.Add(start, offset)), size)
}

func (d *driver) Alloc(size int64) (cuda.Ptr, error) {
	p, err := d.reserve(size, allocated)
	return cuda.Ptr(p.device), err
}

func (d *driver) Free(p cuda.Ptr) error { return d.forget(uint64(p), allocated) }

// HostAlloc allocates memory that the device can use too. combined makes no difference: the host's
// caches are coherent.
func (d *driver) HostAlloc(size int64, _ bool) ([]byte, error) {
	p, err := d.reserve(size, pinned)
	if err != nil {
		return nil, err
	}
	return d.view(p, 0, uint64(size)), nil
}

func (d *driver) HostFree(b []byte) error { return d.forgetHost(b, pinned) }

// HostRegister makes a buffer over memory that starts and ends at the border of a page, without a
// copy.
func (d *driver) HostRegister(b []byte) error {
	const message = "newBufferWithBytesNoCopy:length:options:deallocator:"
	page := os.Getpagesize()
	if len(b) == 0 || address(b)%uintptr(page) != 0 || len(b)%page != 0 {
		return fmt.Errorf("metal: %s at %#x cannot be registered: whole pages of %d bytes can",
			units.Bytes(len(b)), address(b), page)
	}
	return d.do(false, func() error {
		if _, ok := d.pieces.findHost(address(b), 1); ok {
			return fmt.Errorf("metal: memory at %#x is registered already", address(b))
		}
		buffer := d.Send(d.device, message, unsafe.Pointer(unsafe.SliceData(b)), uintptr(len(b)),
			storageShared, uintptr(0))
		if buffer == 0 {
			return &Error{Message: message, Kind: cuda.ErrMemory,
				Text: units.Bytes(len(b)).String()}
		}
		d.note(buffer, uint64(len(b)), registered)
		return nil
	})
}

func (d *driver) HostUnregister(b []byte) error { return d.forgetHost(b, registered) }

func (d *driver) forgetHost(b []byte, kind kind) error {
	p, err := d.HostPointer(b)
	if err != nil {
		return err
	}
	return d.forget(uint64(p), kind)
}

func (d *driver) HostPointer(b []byte) (at cuda.Ptr, err error) {
	err = d.do(true, func() error {
		p, ok := d.pieces.findHost(address(b), uint64(len(b)))
		if !ok {
			return fmt.Errorf("metal: memory at %#x is not the device's: it comes from "+
				"HostAlloc or is registered", address(b))
		}
		at = cuda.Ptr(p.device + uint64(address(b)-p.host))
		return nil
	})
	return at, err
}

// ToDevice encodes a copy on the stream. Memory that the device cannot use is copied at once: to
// its place if the stream rests, else to a buffer of its own, from which the stream copies it.
func (d *driver) ToDevice(to cuda.Ptr, from []byte, s cuda.Stream) error {
	if len(from) == 0 {
		return nil
	}
	return d.do(false, func() error {
		target, ok := d.pieces.find(uint64(to), uint64(len(from)))
		if !ok {
			return wild("ToDevice", to, len(from))
		}
		offset := uint64(to) - target.device
		if p, ok := d.pieces.findHost(address(from), uint64(len(from))); ok {
			return d.copy(s, target, offset, p, uint64(address(from)-p.host), uint64(len(from)))
		}
		rests, err := d.rests(s)
		if err != nil {
			return err
		}
		if rests {
			copy(d.view(target, offset, uint64(len(from))), from)
			return nil
		}
		const message = "newBufferWithBytes:length:options:"
		buffer := d.Send(d.device, message, unsafe.Pointer(unsafe.SliceData(from)),
			uintptr(len(from)), storageShared)
		if buffer == 0 {
			return &Error{Message: message, Kind: cuda.ErrMemory,
				Text: units.Bytes(len(from)).String()}
		}
		defer d.Send(buffer, "release")
		return d.copy(s, target, offset, piece{buffer: buffer}, 0, uint64(len(from)))
	})
}

// ToHost waits for the stream and copies. A copy to memory that the device can use is encoded on
// the stream instead.
func (d *driver) ToHost(to []byte, from cuda.Ptr, s cuda.Stream) error {
	if len(to) == 0 {
		return nil
	}
	var source piece
	waits := false
	err := d.do(false, func() error {
		var ok bool
		if source, ok = d.pieces.find(uint64(from), uint64(len(to))); !ok {
			return wild("ToHost", from, len(to))
		}
		p, ok := d.pieces.findHost(address(to), uint64(len(to)))
		if waits = !ok; waits {
			return nil
		}
		return d.copy(s, p, uint64(address(to)-p.host), source, uint64(from)-source.device,
			uint64(len(to)))
	})
	if err != nil || !waits {
		return err
	}
	if err := d.SyncStream(s); err != nil {
		return err
	}
	copy(to, d.view(source, uint64(from)-source.device, uint64(len(to))))
	return nil
}

func (d *driver) OnDevice(to, from cuda.Ptr, size int64, s cuda.Stream) error {
	if size == 0 {
		return nil
	}
	return d.do(false, func() error {
		target, ok := d.pieces.find(uint64(to), uint64(size))
		if !ok {
			return wild("OnDevice", to, int(size))
		}
		source, ok := d.pieces.find(uint64(from), uint64(size))
		if !ok {
			return wild("OnDevice", from, int(size))
		}
		return d.copy(s, target, uint64(to)-target.device, source, uint64(from)-source.device,
			uint64(size))
	})
}

func (d *driver) Fill(to cuda.Ptr, value byte, size int64, s cuda.Stream) error {
	if size == 0 {
		return nil
	}
	return d.do(false, func() error {
		target, ok := d.pieces.find(uint64(to), uint64(size))
		if !ok {
			return wild("Fill", to, int(size))
		}
		offset := uint64(to) - target.device
		if (offset|uint64(size))%wordBytes != 0 {
			if err := d.quiet(s); err != nil {
				return err
			}
			for i, b := 0, d.view(target, offset, uint64(size)); i < len(b); i++ {
				b[i] = value
			}
			return nil
		}
		encoder, err := d.encoder(s, blit)
		if err != nil {
			return err
		}
		d.Send(encoder, "fillBuffer:range:value:", target.buffer, Range{From: offset,
			Size: uint64(size)}, value)
		return nil
	})
}

// wordBytes must divide the offsets and sizes of the device's own copies on macOS.
const wordBytes = 4

// copy encodes a copy between two buffers. Where offsets or sizes are not whole words, it waits and
// copies on the host.
func (d *driver) copy(s cuda.Stream, target piece, to uint64, source piece, from,
	size uint64) error {
	if (to|from|size)%wordBytes != 0 {
		if err := d.quiet(s); err != nil {
			return err
		}
		copy(d.view(target, to, size), d.view(source, from, size))
		return nil
	}
	encoder, err := d.encoder(s, blit)
	if err != nil {
		return err
	}
	d.Send(encoder, "copyFromBuffer:sourceOffset:toBuffer:destinationOffset:size:",
		source.buffer, uintptr(from), target.buffer, uintptr(to), uintptr(size))
	return nil
}

// quiet waits for a stream; the default stream means all streams.
func (d *driver) quiet(s cuda.Stream) error {
	st, err := d.stream(s)
	if err != nil {
		return err
	}
	d.idle(st)
	if s == 0 {
		return d.waitForOthers(st)
	}
	return d.lost
}

func wild(call string, p cuda.Ptr, size int) error {
	return fmt.Errorf("metal: %s: there are no %d bytes of the device at %#x", call, size,
		uint64(p))
}

// address is where memory lies.
func address(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }

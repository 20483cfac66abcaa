package metal

import (
	"encoding/binary"
	"fmt"
	"regexp"
	"slices"

	"github.com/windrow-sim/windrow/kernels/cuda"
)

// Facts about the launch of a kernel.
const (
	lanes = 32 // threads of a SIMD group: WARP in source/port.h
	// of a threadgroup's memory: the most that a kernel's SHARED arrays take, each in multiples of
	// 16
	roomBytes = 1024
	mostBytes = 4096 // of arguments: the limit of setBytes:length:atIndex:
)

// pack lays out the arguments of a kernel like the struct in port.h (kernels/source): in order,
// each at a multiple of its size, the whole a multiple of 8.
func pack(args []cuda.Arg) ([]byte, error) {
	var b []byte
	for i, a := range args {
		switch a.Kind() {
		case cuda.Word64:
			b = binary.LittleEndian.AppendUint64(pad(b), a.Bits())
		case cuda.Word32, cuda.Float32:
			b = binary.LittleEndian.AppendUint32(b, uint32(a.Bits()))
		default:
			return nil, fmt.Errorf("metal: argument %d of a kernel is a %q, which is not known "+
				"here", i, a.Kind())
		}
	}
	b = pad(b)
	if len(b) > mostBytes {
		return nil, fmt.Errorf("metal: the arguments of a kernel take %d bytes: at most %d are "+
			"possible", len(b), mostBytes)
	}
	return b, nil
}

// pad fills up to a multiple of 8 bytes.
func pad(b []byte) []byte {
	for len(b)%8 != 0 {
		b = append(b, 0)
	}
	return b
}

// entries are the kernels that a module of PTX has, sorted.
func entries(ptx string) []string {
	var names []string
	for _, m := range regexp.MustCompile(`(?m)^\.visible \.entry (\w+)\(`).FindAllStringSubmatch(
		ptx, -1) {
		names = append(names, m[1])
	}
	slices.Sort(names)
	return names
}

// piece is a buffer: its addresses on the device and on the host.
type piece struct {
	device uint64
	host   uintptr
	size   uint64
	buffer ID // the object
	kind   kind
}

// kind is how a piece came to be.
type kind int

const (
	allocated kind = iota
	pinned
	registered // the caller's memory, only registered here
)

// pieces are buffers in order of their addresses on the device.
type pieces []piece

// search returns the index of the first piece that ends behind an address.
func (p pieces) search(address uint64) int {
	at, _ := slices.BinarySearchFunc(p, address, func(e piece, address uint64) int {
		if e.device+e.size <= address {
			return -1
		}
		return 1
	})
	return at
}

// add inserts a piece. The device gives no address twice.
func (p *pieces) add(e piece) { *p = slices.Insert(*p, p.search(e.device), e) }

// find is the piece that has size bytes from an address of the device on, size not 0.
func (p pieces) find(address, size uint64) (piece, bool) {
	at := p.search(address)
	if at == len(p) || address < p[at].device || size > p[at].size-(address-p[at].device) {
		return piece{}, false
	}
	return p[at], true
}

// findHost returns the piece with size bytes from an address of the host on. It searches linearly:
// calls are rare.
func (p pieces) findHost(address uintptr, size uint64) (piece, bool) {
	for _, e := range p {
		if address >= e.host && uint64(address-e.host) <= e.size &&
			size <= e.size-uint64(address-e.host) {
			return e, true
		}
	}
	return piece{}, false
}

// remove takes out the piece that starts at an address of the device.
func (p *pieces) remove(address uint64, kind kind) (piece, bool) {
	at := p.search(address)
	if at == len(*p) || (*p)[at].device != address || (*p)[at].kind != kind {
		return piece{}, false
	}
	e := (*p)[at]
	*p = slices.Delete(*p, at, at+1)
	return e, true
}

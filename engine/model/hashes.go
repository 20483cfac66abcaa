package model

import (
	"context"
	"fmt"
	"io"
	"math/bits"
	"slices"

	"github.com/zeebo/xxh3"

	"github.com/windrow-sim/windrow/engine/checkpoint"
	"github.com/windrow-sim/windrow/internal/units"
)

// The last tensor of an image is a table of hashes, in this order:
//
//	one hash of the whole header
//	one hash of every block of every tensor before the table, in the order of the data
//	one hash of the hashes above
//
// Blocks are hashBlock bytes, counted from the first byte of their tensor; its last one may be
// shorter. So exactly one hash covers each byte of an image. The hashes find damage, not malice:
// who can change a weight can change its hash too.
const (
	hashesName = "hashes" // the tensor, and its key in the metadata
	hashesPad  = "hashes.pad"
	hashesKind = "xxh3-128 of blocks of 262144 bytes" // the value in the metadata
	// hashBlock is small, so that a sample of blocks costs little. The table is 1/16384 of an
	// image.
	hashBlock = 256 << 10
	hashSize  = 16
	// headerPart is the header among the parts of an image. No tensor has this name.
	headerPart = "header"
)

// Damage is a block of an image with other bytes than were written. It is an ErrFormat.
type Damage struct {
	Part   string      `json:"part"`         // name of the tensor, or "header"
	Offset int64       `json:"offset_bytes"` // of the block's first byte in the file
	Bytes  units.Bytes `json:"bytes"`        // length of the block
}

func (d *Damage) Error() string {
	part := fmt.Sprintf("tensor %.100q", d.Part)
	if d.Part == headerPart {
		part = "the header"
	}
	return fmt.Sprintf("%v: %s is damaged: bytes %d to %d of the file are not those that were "+
		"written; copy the image again, or pack it again", checkpoint.ErrFormat, part, d.Offset,
		d.Offset+int64(d.Bytes)-1)
}

// Unwrap makes a Damage an ErrFormat.
func (d *Damage) Unwrap() error { return checkpoint.ErrFormat }

func hashOf(p []byte) [hashSize]byte { return xxh3.Hash128(p).Bytes() }

func blocksOf(size int64) int64 { return (size + hashBlock - 1) / hashBlock }

// hashCount returns the number of hashes for tensors of these sizes, with those of the header and
// of the table.
func hashCount(sizes []int64) int64 {
	n := int64(2)
	for _, size := range sizes {
		n += blocksOf(size)
	}
	return n
}

// blockHasher hashes the blocks of a tensor that comes in pieces of any size.
type blockHasher struct {
	block []byte // the beginning of a block
	done  func(sum [hashSize]byte)
}

func (b *blockHasher) write(p []byte) {
	for len(p) > 0 {
		if len(b.block) == 0 && len(p) >= hashBlock {
			b.done(hashOf(p[:hashBlock]))
			p = p[hashBlock:]
			continue
		}
		n := min(len(p), hashBlock-len(b.block))
		b.block = append(b.block, p[:n]...)
		if p = p[n:]; len(b.block) == hashBlock {
			b.end()
		}
	}
}

// end completes the last block of a tensor.
func (b *blockHasher) end() {
	if len(b.block) > 0 {
		b.done(hashOf(b.block))
		b.block = b.block[:0]
	}
}

// hashes are the table of an open image.
type hashes struct {
	file  *checkpoint.File
	table []byte
	// parts begins with the table itself, without its own hash: what it says of the others counts
	// only if it is whole. Then come the header and the tensors in the order of their data.
	parts []hashedPart
}

// hashedPart is a part of an image with its place in the file.
type hashedPart struct {
	name         string
	offset, size int64
	block        int64 // length of its blocks
	first        int64 // index of the hash of its first block
}

// blocks is the number of blocks of the part.
func (p *hashedPart) blocks() int64 { return (p.size + p.block - 1) / p.block }

// openHashes reads the table of an image and demands that it covers the whole file. It compares
// nothing. Without a table it returns nil. meta is the file's metadata, which takes long to read.
func openHashes(file *checkpoint.File, meta map[string]string) (*hashes, error) {
	kind, stated := meta[hashesName]
	info, there := file.Tensor(hashesName)
	switch {
	case !stated && !there:
		return nil, nil
	case stated != there:
		return nil, fmt.Errorf("%w: of the tensor %q and the metadata of that name only one is "+
			"there; copy the image again, or pack it again", checkpoint.ErrFormat, hashesName)
	case kind != hashesKind:
		return nil, fmt.Errorf("%w: the hashes are %.100q; this program knows %q",
			checkpoint.ErrUnsupported, kind, hashesKind)
	}
	tensors := file.Tensors()
	last := len(tensors) - 1
	sizes := make([]int64, last)
	for i := range sizes {
		sizes[i] = tensors[i].Size
	}
	count := hashCount(sizes)
	if tensors[last].Name != hashesName || info.DType != checkpoint.U8 ||
		!slices.Equal(info.Shape, []int64{count, hashSize}) {
		return nil, fmt.Errorf("%w: tensor %q is %s%v and not the last one with %d hashes of %d "+
			"bytes", checkpoint.ErrFormat, hashesName, info.DType, info.Shape, count, hashSize)
	}
	h := &hashes{file: file, table: make([]byte, info.Size)}
	if err := file.ReadTensor(hashesName, h.table); err != nil {
		return nil, err
	}
	own := info.Size - hashSize
	h.parts = []hashedPart{
		{name: hashesName, offset: info.Offset, size: own, block: own, first: count - 1},
		{name: headerPart, size: file.DataOffset(), block: file.DataOffset()},
	}
	next := int64(1)
	for _, t := range tensors[:last] {
		h.parts = append(h.parts, hashedPart{name: t.Name, offset: t.Offset, size: t.Size,
			block: hashBlock, first: next})
		next += blocksOf(t.Size)
	}
	return h, nil
}

// part finds a tensor.
func (h *hashes) part(name string) *hashedPart {
	i := slices.IndexFunc(h.parts[2:], func(p hashedPart) bool { return p.name == name })
	return &h.parts[2+i]
}

// compare returns a Damage if sum is not the hash of a block.
func (h *hashes) compare(p *hashedPart, block int64, sum [hashSize]byte) error {
	if [hashSize]byte(h.table[(p.first+block)*hashSize:]) == sum {
		return nil
	}
	start := block * p.block
	return &Damage{Part: p.name, Offset: p.offset + start,
		Bytes: units.Bytes(min(p.block, p.size-start))}
}

// check reads one block into buf and compares it. It returns the larger buf of a larger block.
func (h *hashes) check(p *hashedPart, block int64, buf []byte) ([]byte, error) {
	start := block * p.block
	buf = grown(buf, min(p.block, p.size-start))
	data := buf[:min(p.block, p.size-start)]
	if _, err := h.file.ReadAt(data, p.offset+start); err != nil {
		return buf, fmt.Errorf("%s at byte %d of the file: %w", p.name, p.offset+start, err)
	}
	return buf, h.compare(p, block, hashOf(data))
}

// compareBytes compares the bytes of a whole tensor.
func (h *hashes) compareBytes(name string, data []byte) error {
	p := h.part(name)
	for block := int64(0); len(data) > 0; block++ {
		n := min(len(data), hashBlock)
		if err := h.compare(p, block, hashOf(data[:n])); err != nil {
			return err
		}
		data = data[n:]
	}
	return nil
}

// compareTensor reads a tensor again and compares it.
func (h *hashes) compareTensor(ctx context.Context, name string) error {
	return h.all(ctx, []hashedPart{*h.part(name)}, func(int64) {},
		func(err error) error { return err })
}

// all compares every block of the parts and hands each error to found, which ends the work with an
// error of its own.
func (h *hashes) all(ctx context.Context, parts []hashedPart, moved func(int64),
	found func(error) error) error {
	var buf []byte
	for i := range parts {
		p := &parts[i]
		for block := range p.blocks() {
			err := ctx.Err()
			if err == nil {
				buf, err = h.check(p, block, buf)
			}
			if err != nil {
				if err := found(err); err != nil {
					return err
				}
			}
			moved(min(p.block, p.size-block*p.block))
		}
	}
	return nil
}

// compareHeader compares the table and the header.
func (h *hashes) compareHeader() (err error) {
	var buf []byte
	for i := range 2 {
		if buf, err = h.check(&h.parts[i], 0, buf); err != nil {
			return err
		}
	}
	return nil
}

// sample compares one block of every layer's bundles, at other places in other layers. A hole in
// the file as long as two layers is found wherever it begins.
func (h *hashes) sample(layers int) (err error) {
	var buf []byte
	for l := range layers {
		p := h.part(bundlesName(l))
		if buf, err = h.check(p, sampled(l, p.blocks()), buf); err != nil {
			return err
		}
	}
	return nil
}

// sampled chooses one of n blocks of a layer. The golden ratio spreads the places of any number of
// neighbouring layers evenly.
func sampled(layer int, n int64) int64 {
	const golden = 0x9E3779B97F4A7C15 // 2^64 divided by the golden ratio
	block, _ := bits.Mul64(uint64(layer)*golden, uint64(n))
	return int64(block)
}

// hashedReader reads a tensor from front to back and compares its blocks.
type hashedReader struct {
	r      io.ReaderAt
	at     int64 // bytes read
	size   int64
	hasher blockHasher
	err    error // the first damage
}

func (h *hashes) reader(name string, r io.ReaderAt) *hashedReader {
	p, block := h.part(name), int64(0)
	reader := &hashedReader{r: r, size: p.size}
	reader.hasher.done = func(sum [hashSize]byte) {
		if reader.err == nil {
			reader.err = h.compare(p, block, sum)
		}
		block++
	}
	return reader
}

func (r *hashedReader) ReadAt(p []byte, off int64) (int, error) {
	n, err := r.r.ReadAt(p, off)
	if off == r.at {
		r.hasher.write(p[:n])
		r.at += int64(n)
	}
	return n, err
}

// end returns the first damage. It demands that the whole tensor was read in order.
func (r *hashedReader) end() error {
	r.hasher.end()
	if r.err == nil && r.at != r.size {
		return fmt.Errorf("%d of %d bytes were compared with their hashes", r.at, r.size)
	}
	return r.err
}

package torch

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/windrow-sim/windrow/engine/checkpoint/internal/tensor"
)

// maxDirectory bounds the directory of a zip archive: enough for 500,000 entries.
const maxDirectory = 64 << 20

// The records of a zip archive, from its APPNOTE: signatures and sizes without their variable
// parts.
const (
	localMagic     = "PK\x03\x04"
	entryMagic     = "PK\x01\x02"
	endMagic       = "PK\x05\x06"
	end64Magic     = "PK\x06\x06"
	locator64Magic = "PK\x06\x07"

	localSize     = 30
	entrySize     = 46
	endSize       = 22
	end64Size     = 56
	locator64Size = 20

	maxComment = 1<<16 - 1
)

// archive is the zip archive around a pickle and its storages. It is read here because archive/zip
// allocates some 250 bytes for every entry, and a file can have an entry per 47 bytes; the entries
// of torch.save need only 40.
type archive struct {
	file    *tensor.Raw
	budget  *budget
	prefix  string  // the folder of all entries, with a slash
	entries []entry // sorted by name
	local   [localSize]byte
}

// entry is one line of the directory.
type entry struct {
	name    string
	header  int64 // where the local header is, if anywhere
	size    int64 // −1 if the entry is compressed or encrypted
	storage *storage
}

// entryMemory is the size of an entry in memory.
const entryMemory = 40

// openArchive reads the zip directory, at most limit bytes, and finds the one data.pkl.
func openArchive(file *tensor.Raw, budget *budget, limit int64) (*archive, error) {
	a := &archive{file: file, budget: budget}
	end, err := a.end()
	if err == nil {
		err = a.readDirectory(end, limit)
	}
	if err != nil {
		return nil, err
	}
	pickles := 0
	for i, e := range a.entries {
		if i > 0 && a.entries[i-1].name == e.name {
			return nil, fmt.Errorf("%w: the zip entry %q occurs twice", errFormat,
				tensor.Clip(e.name))
		}
		if folder, base, ok := strings.Cut(e.name, "/"); ok && base == "data.pkl" {
			a.prefix = e.name[:len(folder)+1]
			pickles++
		}
	}
	if pickles != 1 {
		return nil, fmt.Errorf("%w: a zip archive with %d entries NAME/data.pkl; one makes a "+
			"PyTorch file", errFormat, pickles)
	}
	a.entries = slices.DeleteFunc(a.entries, func(e entry) bool {
		return !strings.HasPrefix(e.name,
			a.prefix)
	})
	if a.find("", "constants.pkl") != nil {
		return nil, fmt.Errorf("%w: a TorchScript program; save the state dict of the model "+
			"instead", errUnsupported)
	}
	return a, nil
}

// full reads n bytes.
func (a *archive) full(at, n int64) ([]byte, error) {
	if err := a.budget.spend(n); err != nil {
		return nil, err
	}
	p := make([]byte, n)
	if got, err := a.file.ReadAt(p, at); got < len(p) {
		return nil, err
	}
	return p, nil
}

// text copies a part of the directory: names stay slices of it.
func (a *archive) text(at, n int64) (string, error) {
	if err := a.budget.spend(n); err != nil {
		return "", err
	}
	piece := min(n, 1<<12)
	if err := a.budget.spend(piece); err != nil {
		return "", err
	}
	var s strings.Builder
	s.Grow(int(n))
	for p := make([]byte, piece); n > 0; {
		p = p[:min(n, piece)]
		if got, err := a.file.ReadAt(p, at); got < len(p) {
			return "", err
		}
		s.Write(p)
		at, n = at+int64(len(p)), n-int64(len(p))
	}
	return s.String(), nil
}

// directory is the place of the directory.
type directory struct {
	offset, size, records uint64
	end                   int64 // of the directory
}

// end finds the record that ends the archive.
func (a *archive) end() (directory, error) {
	size := a.file.Size()
	for _, comment := range []int64{0, maxComment} { // torch.save writes none
		n := min(size, endSize+comment)
		tail, err := a.full(size-n, n)
		if err != nil {
			return directory{}, err
		}
		i := bytes.LastIndex(tail[:max(0, n-endSize+int64(len(endMagic)))], []byte(endMagic))
		if i < 0 {
			continue
		}
		if got := int64(binary.LittleEndian.Uint16(tail[i+endSize-2:])); got != n-endSize-int64(i) {
			return directory{}, fmt.Errorf("%w: %d bytes after the end of the zip archive, "+
				"which says %d", errFormat, n-endSize-int64(i), got)
		}
		at := size - n + int64(i)
		d := directory{uint64(binary.LittleEndian.Uint32(tail[i+16:])),
			uint64(binary.LittleEndian.Uint32(tail[i+12:])),
			uint64(binary.LittleEndian.Uint16(tail[i+10:])), at}
		return d, a.end64(&d)
	}
	return directory{}, fmt.Errorf("%w: truncated: no zip directory at the end of its %d bytes; "+
		"download it again", errFormat, size)
}

// end64 takes the numbers from the record with 64 bits, if there is one in front of the other
// record. A number that both records have must be the same in both: readers differ in which one
// they use.
func (a *archive) end64(d *directory) error {
	at := d.end - locator64Size
	if at < 0 {
		return nil
	}
	locator, err := a.full(at, locator64Size)
	if err != nil || string(locator[:4]) != locator64Magic {
		return err
	}
	if disk, disks := binary.LittleEndian.Uint32(locator[4:]),
		binary.LittleEndian.Uint32(locator[16:]); disk != 0 || disks != 1 {
		return fmt.Errorf("%w: a zip archive whose end with 64 bits is on disk %d of %d", errFormat,
			disk, disks)
	}
	place := binary.LittleEndian.Uint64(locator[8:])
	if place > uint64(max(0, at-end64Size)) {
		return fmt.Errorf("%w: the end of the zip archive with 64 bits is at byte %d, behind "+
			"what points to it", errFormat, place)
	}
	end, err := a.full(int64(place), end64Size)
	if err != nil {
		return err
	}
	if string(end[:4]) != end64Magic || binary.LittleEndian.Uint64(end[4:]) != uint64(at)-place-12 {
		return fmt.Errorf("%w: no end of a zip archive with 64 bits at byte %d", errFormat, place)
	}
	for _, n := range []struct {
		small *uint64
		most  uint64
		large []byte
	}{{&d.records, math.MaxUint16, end[32:]}, {&d.size, math.MaxUint32, end[40:]},
		{&d.offset, math.MaxUint32, end[48:]}} {
		large := binary.LittleEndian.Uint64(n.large)
		if *n.small != n.most && *n.small != large {
			return fmt.Errorf("%w: the ends of the zip archive with 32 and 64 bits contradict "+
				"each other: %d and %d", errFormat, *n.small, large)
		}
		*n.small = large
	}
	d.end = int64(place)
	return nil
}

// readDirectory reads all entries and sorts them by name.
func (a *archive) readDirectory(d directory, limit int64) error {
	switch {
	case d.size > uint64(limit):
		return fmt.Errorf("%w: a zip directory of more than %d bytes", errFormat, limit)
	case d.size > uint64(d.end) || d.offset != uint64(d.end)-d.size:
		return fmt.Errorf("%w: zip directory: %d bytes at byte %d, but it ends at byte %d",
			errFormat, d.size, d.offset, d.end)
	case d.records > d.size/entrySize:
		return fmt.Errorf("%w: zip directory: %d entries in %d bytes", errFormat, d.records, d.size)
	}
	text, err := a.text(int64(d.offset), int64(d.size))
	if err == nil {
		err = a.budget.spend(int64(d.records) * entryMemory)
	}
	if err != nil {
		return err
	}
	a.entries = make([]entry, d.records)
	for i := range a.entries {
		if text, err = a.entries[i].parse(text); err != nil {
			return fmt.Errorf("%w: zip directory: entry %d: %w", errFormat, i, err)
		}
	}
	if len(text) > 0 {
		return fmt.Errorf("%w: zip directory: %d bytes behind its %d entries", errFormat, len(text),
			d.records)
	}
	slices.SortFunc(a.entries, func(a, b entry) int { return cmp.Compare(a.name, b.name) })
	return nil
}

// parse reads one entry of the directory and returns the rest of it.
func (e *entry) parse(text string) (string, error) {
	if len(text) < entrySize || text[:4] != entryMagic {
		return "", io.ErrUnexpectedEOF
	}
	var fixed [entrySize]byte
	copy(fixed[:], text)
	u16 := func(at int) int { return int(binary.LittleEndian.Uint16(fixed[at:])) }
	u32 := func(at int) uint64 { return uint64(binary.LittleEndian.Uint32(fixed[at:])) }
	name, extra, comment := u16(28), u16(30), u16(32)
	text = text[entrySize:]
	if len(text) < name+extra+comment {
		return "", io.ErrUnexpectedEOF
	}
	whole, packed, header := u32(24), u32(20), u32(42)
	if err := extend64(text[name:][:extra], &whole, &packed, &header); err != nil {
		return "", err
	}
	e.name, e.header, e.size = text[:name], clamp(header), clamp(whole)
	const encrypted, stored = 1, 0
	if u16(10) != stored || u16(8)&encrypted != 0 || whole != packed {
		e.size = -1
	}
	return text[name+extra+comment:], nil
}

// clamp turns a number that is too large into one that cannot be in a file.
func clamp(n uint64) int64 { return int64(min(n, math.MaxInt64)) }

// extend64 replaces the numbers without room in 32 bits by those in the extra field.
func extend64(extra string, numbers ...*uint64) error {
	var wide string
	for len(extra) >= 4 {
		tag, n := int(extra[0])|int(extra[1])<<8, int(extra[2])|int(extra[3])<<8
		if n > len(extra)-4 {
			break
		}
		if tag == 1 {
			wide = extra[4:][:n]
			break
		}
		extra = extra[4+n:]
	}
	for _, n := range numbers {
		if *n != math.MaxUint32 {
			continue
		}
		if len(wide) < 8 {
			return io.ErrUnexpectedEOF
		}
		var word [8]byte
		copy(word[:], wide)
		*n, wide = binary.LittleEndian.Uint64(word[:]), wide[8:]
	}
	return nil
}

// find returns an entry by its name without the folder, or nil. The name has two parts that need
// not be joined; the first is "" or "data/".
func (a *archive) find(dir, base string) *entry {
	i, ok := slices.BinarySearchFunc(a.entries, base, func(e entry, base string) int {
		rest := e.name[len(a.prefix):]
		if inside, ok := strings.CutPrefix(rest, dir); ok {
			return cmp.Compare(inside, base)
		}
		return cmp.Compare(rest, dir)
	})
	if !ok {
		return nil
	}
	return &a.entries[i]
}

// locate returns where the bytes of an entry are: inside the file.
func (a *archive) locate(e *entry) (int64, error) {
	if e.size < 0 {
		return 0, fmt.Errorf("%w: the zip entry %q is compressed or encrypted, torch.save does "+
			"neither; save it again", errUnsupported, tensor.Clip(e.name))
	}
	size := a.file.Size()
	offset := e.header
	if offset <= size-localSize {
		if n, err := a.file.ReadAt(a.local[:], offset); n < localSize {
			return 0, err
		}
		if string(a.local[:4]) != localMagic {
			return 0, fmt.Errorf("%w: zip entry %q: no local header at byte %d", errFormat,
				tensor.Clip(e.name), offset)
		}
		offset += localSize + int64(binary.LittleEndian.Uint16(a.local[26:])) +
			int64(binary.LittleEndian.Uint16(a.local[28:]))
	}
	if offset > size || e.size > size-offset {
		return 0, fmt.Errorf("%w: truncated: the zip entry %q promises %d bytes at byte %d, the "+
			"file has %d; download it again",
			errFormat, tensor.Clip(e.name), e.size, offset, size)
	}
	return offset, nil
}

// missing is the error of an entry that is not there.
func (a *archive) missing(dir, base string) error {
	return fmt.Errorf("%w: no zip entry %q", errFormat, tensor.Clip(a.prefix)+dir+tensor.Clip(base))
}

// read returns a whole entry of at most limit bytes.
func (a *archive) read(name string, limit int64) (string, error) {
	e := a.find("", name)
	if e == nil {
		return "", a.missing("", name)
	}
	offset, err := a.locate(e)
	if err != nil {
		return "", err
	}
	if e.size > limit {
		return "", fmt.Errorf("%w: %s has %d bytes, the limit is %d", errFormat, name, e.size,
			limit)
	}
	return a.text(offset, e.size)
}

// bigEndian reads the entry byteorder. Files from before PyTorch 2.1 lack it and are little-endian.
func (a *archive) bigEndian() (bool, error) {
	const name = "byteorder"
	if a.find("", name) == nil {
		return false, nil
	}
	order, err := a.read(name, 16)
	switch {
	case err != nil:
		return false, err
	case order == "little", order == "big":
		return order == "big", nil
	}
	return false, fmt.Errorf("%w: byte order %q", errFormat, order)
}

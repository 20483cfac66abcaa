package tensor

import (
	"errors"
	"io"
)

// Blocks reads a tensor that its file stores in another form. Only whole blocks can be decoded;
// Blocks makes a reader of any range out of that. It has no state: it is safe for concurrent use if
// Decode is.
type Blocks struct {
	// Size of the decoded tensor in bytes, a multiple of Block.
	Size int64
	// Block is the size of a decoded block in bytes.
	Block int64
	// Decode fills dst, which has room for one or more whole blocks, with the blocks from index
	// first on.
	Decode func(dst []byte, first int64) error
}

// ReadAt implements io.ReaderAt. A range that begins or ends inside a block costs the memory of one
// block.
func (b *Blocks) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, errors.New("negative offset")
	}
	var end error
	if left := max(0, b.Size-off); int64(len(p)) > left {
		p, end = p[:left], io.EOF
	}
	done := 0
	for done < len(p) {
		at := off + int64(done)
		block, skip := at/b.Block, at%b.Block
		if whole := int64(len(p)-done) / b.Block * b.Block; skip == 0 && whole > 0 {
			if err := b.Decode(p[done:][:whole], block); err != nil {
				return done, err
			}
			done += int(whole)
			continue
		}
		one := make([]byte, b.Block)
		if err := b.Decode(one, block); err != nil {
			return done, err
		}
		done += copy(p[done:], one[skip:])
	}
	return done, end
}

package torch

import "fmt"

// Opening a file allocates at most perByte times its size, or floor for a small one. A pickle turns
// an opcode of one byte into a value of forty and more, so values are charged before they are
// allocated. A file of torch.save with thousands of tensors of a single element each needs three
// and a half times its size; one with the tensors of a model needs a tiny part of its size.
const (
	perByte = 4
	floor   = 1 << 17
	// of both, for uncharged memory: the File, the machine, notes and the text of an error
	reserve = 1 << 14
)

// budget is the memory that opening a file may still allocate.
type budget struct{ total, left int64 }

func newBudget(size int64) *budget {
	const enough = 1 << 40 // no directory and pickle need more, and the product does not overflow
	total := max(perByte*min(size, enough), floor)
	return &budget{total, total - reserve}
}

// spend charges an allocation of n bytes, before it is made.
func (b *budget) spend(n int64) error {
	// The allocator rounds up: the first sizes to 8 or 16 bytes, the others by a quarter at most or
	// to whole pages.
	switch {
	case n <= 32:
		n = (n + 7) &^ 7
	case n <= 256:
		n = (n + 15) &^ 15
	case n <= 1<<15:
		n += n / 4
	default:
		n += 1<<13 - 1
	}
	if b.left -= n; b.left < 0 {
		return fmt.Errorf("%w: its directory and pickle need more memory than %d bytes, the "+
			"budget of a file of this size; torch.save of a plain state dict needs less: save "+
			"that, or safetensors",
			errFormat, b.total)
	}
	return nil
}

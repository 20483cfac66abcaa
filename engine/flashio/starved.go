package flashio

// starving is a Reader that repeats calls which fail for want of the kernel's memory.
type starving interface{ Starved() int64 }

// Starved returns how many calls of a Reader failed so far for want of the kernel's memory (ENOMEM)
// and were repeated after a wait. Times of such reads are not the drive's.
func Starved(r Reader) int64 {
	if inner, ok := find[starving](r); ok {
		return inner.Starved()
	}
	return 0
}

// Starved implements starving.
func (p *preadReader) Starved() int64 { return p.starved.Load() }

// Starved implements starving.
func (u *uringReader) Starved() int64 { return u.ring.Starved() }

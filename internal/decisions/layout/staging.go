package layout

// How reads ahead share a staging buffer, for the engine that does it and the simulator that
// predicts it.
const (
	// StagingAlign is what the reads of a layer begin at in the buffer: no file system asks direct
	// reads for more than a page.
	StagingAlign = 4096
	// MostAhead is the number of requests beyond which no further layer's are submitted together
	// with them: a read on demand waits for no more.
	MostAhead = 256
	// SmallGroup is the size up to which what waits goes together although its rows then move when
	// all has come: moving them (0.2 ms at 5 GB/s) takes no longer than a drive takes to answer
	// once more.
	SmallGroup = 1 << 20
)

// Staging is the buffer that reads ahead arrive in. Two groups of reads use it at a time: while the
// rows of one are moved to their places, the next is read. A group is all that waits, if that is
// small, or takes half of the buffer at most, or is a single piece. The zero value is a buffer
// without room.
type Staging struct {
	Room  int64
	taken [2]struct{ from, to int64 } // by the groups under way, the older first
	count int
}

// Rounded is the room that the reads of a layer take.
func Rounded(size int64) int64 { return (size + StagingAlign - 1) / StagingAlign * StagingAlign }

// Half is what a group of several pieces takes at most of a buffer where more is waiting.
func Half(room int64) int64 { return room / 2 / StagingAlign * StagingAlign }

// Together returns how many of the pieces that wait go into the next group, and its size. piece
// tells the bytes and requests of each.
func (s *Staging) Together(waiting int, piece func(i int) (size int64, requests int)) (n int,
	size int64) {
	half, requests := 0, 0
	var halfSize int64
	for ; n < waiting; n++ {
		bytes, more := piece(n)
		bytes = Rounded(bytes)
		if n > 0 && (size+bytes > s.Room || requests+more > MostAhead) {
			break
		}
		size, requests = size+bytes, requests+more
		if n == 0 || size <= Half(s.Room) {
			half, halfSize = n+1, size
		}
	}
	if n == waiting && size <= SmallGroup {
		return n, size
	}
	return half, halfSize
}

// Place takes room for the next group, and says where; false while there is none, which the end of
// an older group (Moved) changes. A group larger than the buffer never has a place.
func (s *Staging) Place(size int64) (offset int64, ok bool) {
	switch {
	case size > s.Room || s.count == len(s.taken):
		return 0, false
	case s.count == 0:
	case s.taken[0].to+size <= s.Room:
		offset = s.taken[0].to
	case size > s.taken[0].from:
		return 0, false
	}
	s.taken[s.count].from, s.taken[s.count].to = offset, offset+size
	s.count++
	return offset, true
}

// Moved gives back the room of the older group.
func (s *Staging) Moved() {
	s.taken[0] = s.taken[1]
	s.count--
}

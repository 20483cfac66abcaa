package layout

// How prefetches share a staging buffer, in the engine and in the simulator.
const (
	// StagingAlign is the alignment of a prefetch batch in the buffer. No file system asks direct
	// reads for more than a page.
	StagingAlign = 4096
	// MostRequests is the number of requests beyond which a submission takes no further batch. A
	// demand read waits for the submission that is being read.
	MostRequests = 256
	// SmallSubmission is the size up to which all waiting batches are submitted together. Their
	// rows then wait for the last read, but scattering them (0.2 ms at 5 GB/s) takes no longer than
	// a drive takes to answer another submission.
	SmallSubmission = 1 << 20
)

// Staging is the buffer that prefetches are read into. A submission is the batches that are read
// together. Two submissions have room at a time: one is read while the rows of the other are
// scattered. A submission is all batches that wait, if they are small; or batches of half of the
// buffer at most; or a single batch. The zero value is a buffer without room.
type Staging struct {
	Room  int64
	taken [2]struct{ from, to int64 } // by submissions, the older one first
	count int
}

// Rounded returns the room that a prefetch batch of a size takes in the buffer.
func Rounded(size int64) int64 { return (size + StagingAlign - 1) / StagingAlign * StagingAlign }

// Half returns the most room that a submission of several batches takes while more batches wait.
func Half(room int64) int64 { return room / 2 / StagingAlign * StagingAlign }

// Together returns how many of the waiting batches are the next submission, and its size. batch
// returns the bytes and requests of the i-th.
func (s *Staging) Together(waiting int, batch func(i int) (size int64, requests int)) (n int,
	size int64) {
	half, requests := 0, 0
	var halfSize int64
	for ; n < waiting; n++ {
		bytes, more := batch(n)
		bytes = Rounded(bytes)
		if n > 0 && (size+bytes > s.Room || requests+more > MostRequests) {
			break
		}
		size, requests = size+bytes, requests+more
		if n == 0 || size <= Half(s.Room) {
			half, halfSize = n+1, size
		}
	}
	if n == waiting && size <= SmallSubmission {
		return n, size
	}
	return half, halfSize
}

// Place takes room for the next submission and returns where it is. ok is false while there is no
// room; Release of an older submission may change that. A submission larger than the buffer never
// has room.
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

// Release gives back the room of the older submission, whose rows are scattered.
func (s *Staging) Release() {
	s.taken[0] = s.taken[1]
	s.count--
}

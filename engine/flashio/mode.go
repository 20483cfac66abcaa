package flashio

import (
	"fmt"
	"strings"
)

// String says in one line how reads are done: engine, parallel reads, direct or buffered, file
// system.
func (m Mode) String() string {
	how := "buffered"
	if m.Direct {
		how = "direct"
	}
	if m.MemoryBacked {
		how = "memory-backed"
	}
	return strings.TrimSpace(fmt.Sprintf("%s ×%d, %s, %s", m.Engine, m.Parallel, how,
		m.FileSystem))
}

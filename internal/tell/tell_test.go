package tell

import (
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A listener hears remarks with its own names for fields, and stages from their beginning on; the
// zero value hears nothing.
func TestTell(t *testing.T) {
	var heard []string
	to := Tell{Note: func(text string) { heard = append(heard, text) },
		Progress: func(stage string, done, total int) {
			heard = append(heard, stage+" "+strconv.Itoa(done)+"/"+strconv.Itoa(total))
		}, Field: func(name string) string { return "--" + strings.ToLower(name) }}
	for _, each := range []*Tell{{}, &to} {
		each.Notef("give %s to {Test}", "{another}")
		each.Stage("read")(1, 2)
		each.MiB("write")(3<<20, 4<<20)
	}
	want := []string{"give {another} to --test", "read 0/0", "read 1/2", "write 0/0", "write 3/4"}
	if !slices.Equal(heard, want) {
		t.Errorf("heard %q, want %q", heard, want)
	}
}

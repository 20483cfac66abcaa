package fio

import (
	"testing"

	"github.com/windrow-sim/windrow/internal/units"
)

// TestSize has the sizes as fio 3.33 reads them (io_bytes of one request of the null engine).
func TestSize(t *testing.T) {
	for s, want := range map[string][2]uint64{ // kb_base 1024, 1000
		"4k": {4096, 4000}, "4K": {4096, 4000}, "4kb": {4096, 4000}, "4ki": {4096, 4000},
		"4kib": {4000, 4096}, "4KiB": {4000, 4096},
		"1m": {1 << 20, 1e6}, "1mi": {1 << 20, 1e6}, "1mib": {1e6, 1 << 20}, "1MB": {1 << 20, 1e6},
		"4096": {4096, 4096}, "4096b": {4096, 4096},
		"0x1000": {4096, 4096}, "0x1k": {1, 1}, "0x10m": {16, 16},
		"4kx": {4096, 4000}, "1g": {1 << 30, 1e9}, " 2t ": {2 << 40, 2e12},
		"1p": {1 << 50, 1e15},
	} {
		for i, kilo := range []uint64{1024, 1000} {
			if got, ok := size(s, kilo); !ok || got != want[i] {
				t.Errorf("%q with k = %d: %d %v, want %d", s, kilo, got, ok, want[i])
			}
		}
	}
	for _, s := range []string{"", "k", "-4k", "1.5k", "(2*4k)", "4x", "99999999999999999999",
		"99999999999p", "100%", "0x", "$x"} {
		if got, ok := size(s, 1024); ok {
			t.Errorf("%q is %d", s, got)
		}
	}
}

func TestBlock(t *testing.T) {
	for _, c := range []struct {
		o         options
		direction string
		mean      float64
		want      units.Bytes // 0 = nil
		warns     bool
	}{
		{options{"bs": "4k,16k"}, "read", 0, 4096, false},
		{options{"bs": "4k,16k"}, "write", 0, 16384, false},
		{options{"bs": "4k,16k"}, "trim", 0, 16384, false},
		{options{"bs": "4k,16k"}, "mixed", 0, 4096, false},
		{options{"bs": ",8k"}, "read", 0, 4096, false},
		{options{"bs": "8k,"}, "read", 0, 8192, false},
		{options{"bs": "8k,"}, "write", 0, 4096, false},
		{options{"bs": "4k-16k"}, "read", 0, 0, true},
		{options{"bs": "4k", "bsrange": "4k-16k"}, "read", 0, 0, true},
		{options{"bs": "4k", "bssplit": "4k/50:16k/50"}, "read", 0, 0, true},
		{options{"bs": "(2*4k)"}, "read", 0, 0, true},
		{options{"bs": "0"}, "read", 0, 0, true},
		{options{}, "read", 0, 0, false},
		{options{"bs": "1m"}, "read", 0, 1 << 20, false},
		{options{"bs": "1mib", "kb_base": "1000"}, "read", 0, 1 << 20, false},
	} {
		b, warning := c.o.block(c.direction, c.mean)
		if (b == nil) != (c.want == 0) || b != nil && *b != c.want || (warning != "") != c.warns {
			t.Errorf("%v of %ss: %s, %q", c.o, c.direction, show(b), warning)
		}
	}
}

package units

import (
	"encoding/json"
	"reflect"
	"testing"
	"testing/quick"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]Bytes{"4KiB": 4096, "1.5GiB": 3 << 29,
		"13.4GB": 13_400_000_000, "512B": 512, " 2 MiB ": 2 << 20} {
		if got, err := ParseBytes(text); err != nil || got != want {
			t.Errorf("ParseBytes(%q) = %d, %v; want %d", text, got, err, want)
		}
	}
	for text, want := range map[string]Nanos{"80us": 80_000, "1.5ms": 1_500_000,
		"20s": 20_000_000_000, "7ns": 7, "2m": 120_000_000_000} {
		if got, err := ParseNanos(text); err != nil || got != want {
			t.Errorf("ParseNanos(%q) = %d, %v; want %d", text, got, err, want)
		}
	}
	for _, bad := range []string{"", "7000", "-1KiB", "KiB", "4 bananas", "1e400GB", "NaNB"} {
		if v, err := ParseBytes(bad); err == nil {
			t.Errorf("ParseBytes(%q) = %d, want an error", bad, v)
		}
	}
}

// Field case H5: a drive of 7.0 GB/s, 7.0 GiB/s and 7 Gb/s are three drives.
func TestFieldH5UnitsDiffer(t *testing.T) {
	gb, _ := ParseRate("7.0GB/s")
	gib, _ := ParseRate("7.0GiB/s")
	bit, _ := ParseRate("7Gb/s")
	if gb != 7_000_000_000 || gib != 7*1<<30 || bit != 875_000_000 {
		t.Fatalf("got %d, %d, %d", gb, gib, bit)
	}
	if gb.String() == gib.String() {
		t.Fatalf("both print as %s", gb)
	}
}

// TestBytesInWords: three digits, all of a whole number, and no fraction of what is almost the next
// unit.
func TestBytesInWords(t *testing.T) {
	for v, want := range map[Bytes]string{
		0: "0B", 1023: "1023B", 1536: "1.5KiB", 3 << 20: "3MiB", 1061792973: "1013MiB",
		1<<30 + 1<<25: "1.03GiB", 3000<<40 + 1<<39: "3001TiB", -1061792973: "-1013MiB",
	} {
		if got := v.String(); got != want {
			t.Errorf("%d is %s, want %s", int64(v), got, want)
		}
	}
}

func TestTextRoundTrip(t *testing.T) {
	roundTrip := func(v int64) bool {
		if v < 0 {
			v = -(v + 1)
		}
		v >>= 8 // text goes through float64: exact below 2^53 only, far above any real quantity
		b, n, r := Bytes(v), Nanos(v), Rate(v)
		tb, _ := b.MarshalText()
		tn, _ := n.MarshalText()
		tr, _ := r.MarshalText()
		b2, e1 := ParseBytes(string(tb))
		n2, e2 := ParseNanos(string(tn))
		r2, e3 := ParseRate(string(tr))
		return e1 == nil && e2 == nil && e3 == nil && (v > 1<<53 || b2 == b && n2 == n && r2 == r)
	}
	if err := quick.Check(roundTrip, nil); err != nil {
		t.Fatal(err)
	}
	for v, want := range map[Bytes]string{4096: "4KiB", 1 << 30: "1GiB", 1000: "1000B", 0: "0B"} {
		if text, _ := v.MarshalText(); string(text) != want {
			t.Errorf("MarshalText(%d) = %s, want %s", int64(v), text, want)
		}
	}
}

func TestJSONIsPlainNumbers(t *testing.T) {
	type document struct {
		B Bytes   `json:"bytes"`
		R Rate    `json:"rate_bytes_per_s"`
		T []Nanos `json:"times_ns"`
	}
	in := document{4096, 7 * GBps, []Nanos{0, 80 * Microsecond}}
	text, err := json.Marshal(in)
	if want := `{"bytes":4096,"rate_bytes_per_s":7000000000,"times_ns":[0,80000]}`; err != nil ||
		string(text) != want {
		t.Fatalf("got %s, %v; want %s", text, err, want)
	}
	var out document
	if err := json.Unmarshal(text, &out); err != nil || !reflect.DeepEqual(in, out) {
		t.Fatalf("read back %+v, %v", out, err)
	}
	if err := json.Unmarshal([]byte(`{"bytes":"4KiB"}`), &out); err == nil {
		t.Fatal("text was taken for a number")
	}
}

func TestRateTime(t *testing.T) {
	for _, c := range []struct {
		r    Rate
		b    Bytes
		want Nanos
	}{
		{GBps, 1000, 1000}, {3, 1, 333_333_334}, {0, 5, 0}, {GBps, 0, 0},
		{GBps, 1 << 40, 1 << 40}, // 1.1e12 * 1e9 does not fit 64 bits
		{1, 1 << 60, Forever},
	} {
		if got := c.r.Time(c.b); got != c.want {
			t.Errorf("(%d B/s).Time(%d) = %d, want %d", int64(c.r), int64(c.b), got, c.want)
		}
	}
}

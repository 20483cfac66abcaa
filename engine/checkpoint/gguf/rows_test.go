package gguf

import (
	"slices"
	"testing"
)

// TestRowsAreTheInverse moves row numbers as the converters do, and demands that the row of the
// file which a view names is the row of the original that lies there. Runs must follow each other
// and end inside the view.
func TestRowsAreTheInverse(t *testing.T) {
	for _, c := range []struct{ heads, kv, size int64 }{{1, 1, 2}, {4, 2, 8}, {3, 1, 6}, {8, 8, 16},
		{71, 1, 4}, {6, 3, 2}} {
		// (heads, 2, size/2) → (heads, size/2, 2)
		var permuted []int64
		for h := range c.heads {
			for i := range c.size / 2 {
				for part := range int64(2) {
					permuted = append(permuted, h*c.size+part*c.size/2+i)
				}
			}
		}
		inverse(t, permuted, neighbours(0, c.heads, c.size))
		// (kv, heads/kv + 2, size): all queries, all keys, all values
		per := c.heads/c.kv + 2
		var regrouped []int64
		for _, part := range [][2]int64{{0, per - 2}, {per - 2, per - 1}, {per - 1, per}} {
			for g := range c.kv {
				for at := (g*per + part[0]) * c.size; at < (g*per+part[1])*c.size; at++ {
					regrouped = append(regrouped, at)
				}
			}
		}
		inverse(t, regrouped, groups(c.heads, c.kv, c.size))
	}
	behind := neighbours(100, 2, 4)
	if source, _ := behind(6); source != 105 {
		t.Errorf("row 6 behind 100 others lies at %d", source)
	}
	inverse(t, []int64{0, 1, 2}, stretch(0, 3))
	if source, run := stretch(5, 3)(1); source != 6 || run != 2 {
		t.Errorf("row 1 of 5 to 7 lies at %d, with %d rows", source, run)
	}
}

// inverse compares the rows of a view with the rows of the original that lie in the file.
func inverse(t *testing.T, file []int64, rows func(row int64) (source, run int64)) {
	t.Helper()
	for row := range int64(len(file)) {
		source, run := rows(row)
		if run < 1 || row+run > int64(len(file)) || source+run > int64(len(file)) {
			t.Fatalf("row %d of %d: %d rows from %d on", row, len(file), run, source)
		}
		for i := range run {
			if file[source+i] != row+i {
				t.Fatalf("row %d is at %d, where %d lies", row+i, source+i, file[source+i])
			}
		}
	}
}

// TestFusedProjections: queries, keys and values in one tensor are three tensors of the original,
// with their rows in the order of the architecture.
func TestFusedProjections(t *testing.T) {
	const p, heads, kv, size = ".", 4, 2, 4
	for arch, permuted := range map[string]bool{"llama": true, "phi2": false, "qwen3": false} {
		epsilon := "attention.layer_norm_rms_epsilon"
		if arch == "phi2" {
			epsilon = "attention.layer_norm_epsilon"
		}
		w := header(1, 8).keyText("general.architecture", arch)
		for key, n := range map[string]uint32{"block_count": 1, "embedding_length": heads * size,
			"feed_forward_length": 8, "attention.head_count": heads, "context_length": 8,
			"attention.head_count_kv": kv} {
			w.keyU32(arch+p+key, n)
		}
		w.keyF32(arch+p+epsilon, 1e-5)
		const rows = (heads + 2*kv) * size
		data := make([]byte, rows) // of a bias: its element is its row
		for i := range data {
			data[i] = byte(i)
		}
		f, err := openBytes(w.tensor("blk.0.attn_qkv.bias", 1, 0, rows).data(32, halves(data)))
		if err != nil {
			t.Fatal(err)
		}
		o, err := NewOriginal(f)
		if err != nil {
			t.Fatal(err)
		}
		var got []byte
		for _, name := range []string{"q", "k", "v"} {
			got = append(got, low(t, o, "model.layers.0.self_attn."+name+"_proj.bias")...)
		}
		want := slices.Clone(data)
		if permuted {
			for head := range heads + kv {
				copy(want[size*head:], []byte{byte(size * head), byte(size*head + 2),
					byte(size*head + 1), byte(size*head + 3)})
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", arch, got, want)
		}
		if names := o.Tensors(); len(names) != 3 {
			t.Errorf("%s: %v", arch, names)
		}
	}
}

// halves puts each byte into an element of two bytes.
func halves(data []byte) []byte {
	list := make([]byte, 2*len(data))
	for i, b := range data {
		list[2*i] = b
	}
	return list
}

// low returns the first byte of every element of two bytes.
func low(t *testing.T, o *Original, name string) []byte {
	t.Helper()
	s, err := o.Section(name)
	if err != nil {
		t.Fatal(err)
	}
	raw := make([]byte, s.Size())
	if _, err := s.ReadAt(raw, 0); err != nil {
		t.Fatal(err)
	}
	var list []byte
	for i := 0; i < len(raw); i += 2 {
		list = append(list, raw[i])
	}
	return list
}

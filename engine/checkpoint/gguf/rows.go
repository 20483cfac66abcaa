package gguf

// The orders of rows in which files differ from their originals. Each function returns the rows of
// a view: for a row of the original, the row of the file, and how many rows from there on follow
// each other in both.

// neighbours returns the rows of a query or key projection that begins at row first. The original
// rotates element i of a head with element i + size/2. llama.cpp rotates neighbours, 2·i with
// 2·i + 1, and its converter moves the rows there (LlamaModel.permute). size is even.
func neighbours(first, heads, size int64) func(row int64) (source, run int64) {
	return func(row int64) (source, run int64) {
		head, in := row/size, row%size
		return first + head*size + in%(size/2)*2 + in/(size/2), 1
	}
}

// stretch returns count rows from first on.
func stretch(first, count int64) func(row int64) (source, run int64) {
	return func(row int64) (source, run int64) { return first + row, count - row }
}

// groups returns the rows of a fused projection that the original has in a group for each head of
// keys: its queries, its key, its value. The file has all queries, all keys, all values
// (FalconModel.modify_tensors).
func groups(heads, kv, size int64) func(row int64) (source, run int64) {
	queries := heads / kv * size // rows of a group
	return func(row int64) (source, run int64) {
		group, in := row/(queries+2*size), row%(queries+2*size)
		switch {
		case in < queries:
			return group*queries + in, queries - in
		case in < queries+size:
			in -= queries
			return heads*size + group*size + in, size - in
		}
		in -= queries + size
		return heads*size + kv*size + group*size + in, size - in
	}
}

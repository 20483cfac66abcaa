// Package parquet writes flat tables as Parquet files. DuckDB, pandas, Polars and Spark open them.
//
// # Model
//
// A table has columns of booleans, integers, floating-point numbers and strings. Rows are collected
// into groups of groupRows. A group is written column by column, one page per column:
//
//	"PAR1", pages of the first group, pages of the next, …, footer, length of the footer, "PAR1"
//
// Only the plain parts of the format are used (https://parquet.apache.org/docs/file-format, version
// 1): plain values, no dictionaries, no statistics, no nesting, pages compressed with zstd. The
// writer of Arrow v15 would grow the program from 8 MB to 45 MB.
//
// # Reading guide
//
// table.go has columns, rows and groups. footer.go describes them. thrift.go encodes the footer and
// page headers.
//
// # Invariants
//
//  1. The same columns, metadata and rows give the same bytes.
//  2. A Writer holds one group in memory.
//  3. The footer is written last. A file without it is no Parquet file.
package parquet

// Package parquet writes flat tables as Parquet files, which DuckDB, pandas, Polars and Spark open.
//
// # Model
//
// A table has columns of booleans, whole numbers, floating-point numbers and texts. Rows are
// collected into groups of groupRows, and a group is written column by column, one page each:
//
//	"PAR1", pages of the first group, pages of the next, …, footer, length of the footer, "PAR1"
//
// Only the plain parts of the format (https://parquet.apache.org/docs/file-format, version 1) are
// used: values as they are, no dictionaries, no statistics, no nesting, pages compressed with zstd.
// The writer of Arrow v15 does more, and makes a program of 8 MB one of 45 MB.
//
// # Reading guide
//
// table.go: columns, rows and groups. footer.go: what describes them. thrift.go: the encoding of
// the footer and of page headers.
//
// # Invariants
//
//  1. The same columns, metadata and rows give the same bytes.
//  2. Memory is that of one group.
//  3. A file without its footer, which is written last, is no Parquet file.
package parquet

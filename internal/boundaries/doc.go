// Package boundaries holds tests of the whole repository and no code. They fail on an import that
// the table of allowed imports does not list, on a library outside its package, and on lines that
// are too long.
package boundaries

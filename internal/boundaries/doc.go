// Package boundaries holds tests of the whole repository and no code. They fail on an import that
// the table of allowed imports does not list, on a library outside its package, on a layer step or
// a mask loop outside its one place, and on lines that are too long.
package boundaries

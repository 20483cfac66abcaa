// Package boundaries holds no code, only the test that reads the import graph and fails on an edge
// that docs/architecture.md does not allow. Boundaries that nothing checks do not last.
package boundaries

// Package report writes documents (internal/document) as text, Markdown, CSV, JSON and HTML, and
// describes Runs, and a Comparison of two of them, as such a document. A Perfetto timeline and Go
// benchmark lines are for other tools.
//
// The model. Write is the one way from a document to bytes; it is only about form. Data is
// everything a report about Runs says; Data.Document turns it into a document. So no two formats of
// one report can disagree. Nothing here reads a clock, a file or the host; the same input gives the
// same bytes.
//
// Three rules of honesty hold in every format that a person reads. The answer comes first, with its
// interval or the word "bound". The word simulated, measured or "measured, emulated device" stands
// beside every number of a Run. Warnings and facts stand between the answer and the tables.
//
// The JSON form of every document has one envelope: schema, tool, command, inputs with their
// SHA-256, result, warnings (docs/schemas.md).
//
// Start with Write in write.go; text.go, markdown.go, csv.go and html.go are its formats. Then Data
// in data.go, and runs.go, which describes Runs; contents.go builds their tables, exact.go their
// exact numbers; svg.go has the axes and marks of the figures in charts.go, which need no script.
package report

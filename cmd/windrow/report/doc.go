// Package report turns Runs, and a Comparison of two of them, into text, Markdown, JSON, CSV, one
// self-contained HTML file, a Perfetto timeline and Go benchmark lines.
//
// The model. Data is everything a report says. All writers take their numbers from the same two
// places: the tables of Data.Contents, whose cells are text, and the document of WriteJSON, whose
// numbers are exact. So no two formats of one report can disagree, and a writer is only about form.
// Nothing here reads a clock, a file or the host; the same Data gives the same bytes.
//
// Three rules of honesty hold in every format that a person reads. The word simulated, measured or
// "measured, emulated device" stands beside every number of a Run. Warnings and facts come before
// the numbers they taint. Tables print three significant digits and use one system of units: SI,
// because times and drives do; memory sizes, which are IEC, come in facts or in tables of their
// own.
//
// Start with Data in data.go and Table in table.go; contents.go builds the tables. text.go,
// markdown.go, csv.go, document.go (JSON) and html.go write them; svg.go has the axes and marks of
// the charts in charts.go, which need no script. perfetto.go and gobench.go are for other tools.
package report

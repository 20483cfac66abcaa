package report

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/windrow-sim/windrow/internal/document"
	"github.com/windrow-sim/windrow/internal/plain"
)

// Formats are the formats that every document can be written in.
func Formats() []string { return []string{"text", "md", "csv", "json", "html"} }

// DefaultWidth is the width of text that goes to no terminal, in columns.
const DefaultWidth = 80

// Options say how to write a document.
type Options struct {
	Format string // one of Formats
	Width  int    // of text, in columns; 0 stands for DefaultWidth
	Origin Origin
}

// Origin says where a document comes from. It heads the JSON form.
type Origin struct {
	Tool    string            // "windrow 0.1.0"
	Command string            // the command line, without the values that do not change a result
	Inputs  map[string]string // input files, as named on the command line, with their SHA-256
}

// Envelope is the JSON form of every document.
type Envelope struct {
	Schema   string            `json:"schema"` // "windrow/NAME/1"
	Tool     string            `json:"tool"`
	Command  string            `json:"command"`
	Inputs   map[string]string `json:"inputs"`
	Result   any               `json:"result"`
	Warnings []string          `json:"warnings"`
}

// SchemaVersion is the version of every schema: a new number renames or removes fields.
const SchemaVersion = 1

// Schema returns the identifier of the documents of a name.
func Schema(name string) string { return fmt.Sprintf("windrow/%s/%d", name, SchemaVersion) }

// Write writes a document.
func Write(w io.Writer, d *document.Document, o Options) error {
	if err := d.Check(); err != nil {
		return err
	}
	switch o.Format {
	case "text":
		return writeText(w, d, o.Width)
	case "md":
		return writeMarkdown(w, d)
	case "csv":
		return writeCSV(w, d)
	case "json":
		return writeJSON(w, d, o.Origin)
	case "html":
		return writeHTML(w, d, o.Origin)
	}
	return fmt.Errorf("report: format %q: known are %s", o.Format, strings.Join(Formats(), ", "))
}

func envelope(d *document.Document, origin Origin) *Envelope {
	e := &Envelope{Schema: Schema(d.Name), Tool: origin.Tool, Command: origin.Command,
		Inputs: origin.Inputs, Result: d.Result, Warnings: slices.Clone(d.Warnings)}
	if e.Inputs == nil {
		e.Inputs = map[string]string{}
	}
	if e.Warnings == nil {
		e.Warnings = []string{}
	}
	return e
}

// jsonWriter writes JSON that a terminal can show. An encoder writes a value in one call.
type jsonWriter struct{ w io.Writer }

func (j jsonWriter) Write(text []byte) (int, error) {
	if _, err := j.w.Write(plain.JSON(text)); err != nil {
		return 0, err
	}
	return len(text), nil
}

func writeJSON(w io.Writer, d *document.Document, origin Origin) error {
	e := json.NewEncoder(jsonWriter{w})
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	if err := e.Encode(envelope(d, origin)); err != nil {
		return fmt.Errorf("report: json: %w", err)
	}
	return nil
}

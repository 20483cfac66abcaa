// Package tell is how a library says what it does while it works: remarks, and how far a stage of
// the work is. It is a leaf.
package tell

import "fmt"

// Tell hears a library. The zero value hears nothing.
type Tell struct {
	// Note gets a remark, one line.
	Note func(text string)
	// Progress gets a stage of the work, with what is done of it and all. A stage begins with 0
	// done; its name may change while it goes on.
	Progress func(stage string, done, total int)
}

// Notef tells a remark.
func (t *Tell) Notef(format string, args ...any) {
	if t.Note != nil {
		t.Note(fmt.Sprintf(format, args...))
	}
}

// At tells how far a stage is.
func (t *Tell) At(stage string, done, total int) {
	if t.Progress != nil {
		t.Progress(stage, done, total)
	}
}

// Stage begins a stage and returns the function to tell how far it is.
func (t *Tell) Stage(stage string) func(done, total int) {
	t.At(stage, 0, 0)
	return func(done, total int) { t.At(stage, done, total) }
}

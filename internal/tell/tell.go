// Package tell is how a library says what it does while it works: remarks, and how far a stage of
// the work is.
package tell

import "github.com/windrow-sim/windrow/internal/refusal"

// Tell hears a library. The zero value hears nothing.
type Tell struct {
	// Note gets a remark, one line.
	Note func(text string)
	// Progress gets a stage of the work, with what is done of it and all. A stage begins with 0
	// done; its name may change while it goes on.
	Progress func(stage string, done, total int)
	// Field is the reader's name for a field of a configuration; nil = the field's own.
	Field func(name string) string
}

// Notef tells a remark. Fields of a configuration stand in the format as {Name}, as in package
// refusal.
func (t *Tell) Notef(format string, args ...any) {
	if t.Note != nil {
		t.Note(refusal.Format(t.Field, format, args...))
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

// MiB begins a stage and returns the function to tell how many bytes of it are done; they are told
// in MiB.
func (t *Tell) MiB(stage string) func(done, total int64) {
	at := t.Stage(stage)
	return func(done, total int64) { at(int(done>>20), int(total>>20)) }
}

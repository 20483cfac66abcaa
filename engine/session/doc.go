// Package session opens a model to run it: the flash image with its tokenizer, resident weights,
// a device that computes, a predictor that names the rows, and rows in memory or on flash within a
// budget. It also writes texts with what it opened.
//
// The package knows nothing of flags. A refused value is an error of package refusal that names the
// field of the configuration. Config.Tell hears remarks.
//
// Start with Open in session.go. predictor.go opens predictors, flash.go the rows that are read for
// them, generate.go writes one text and batch.go several. Which devices there are is known outside:
// Config.Device opens one.
package session

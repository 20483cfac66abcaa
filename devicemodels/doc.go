// Package devicemodels describes the machines windrow simulates: one flash device, one host and
// perhaps a GPU, as plain numbers with units and sources.
//
// A Device is an immutable specification. It comes from a *.device.yaml file, an embedded preset,
// or a fit of measured cells. It holds no state: free servers and the busy link belong to the event
// model.
//
// The flash has a package of its own, devicemodels/flash: its specification, its closed form and
// its event model. A fit finds the specification whose closed form is nearest to the measured
// cells. It states the error for cells that it has not seen. It refuses cells that do not determine
// a device.
//
// Reading guide:
//
//	device.go    the types of a device file
//	host.go      times of the host; gpu.go: times of a GPU, as probe --backend cuda measures them
//	fit.go       measured cells to a flash.Spec
//	fit_search.go the search of a fit: parameters, starts, objective, cross-validation
//	fit_spec.go  the result of the search as a flash.Spec
//	limit.go     token buckets, found in the times of single reads
//	check.go     a device file against its own cells
//	yaml.go      files: load, parse, save
//	strict.go    strict parsing: unknown keys, positions, nearest names
//	validate.go  ranges and requirements of every field
//	presets.go   the devices compiled into the program, and presets/*.yaml
//
// Invariants:
//
//  1. A device that Load, Parse, Preset or FitFlash returned is valid.
//  2. Save then Load gives the same Device, to the nanosecond and the byte per second.
//  3. A fit never uses a tainted cell.
package devicemodels

// Package devicemodels describes the machines windrow simulates: one flash device, one host and
// perhaps a GPU, as plain numbers with units and sources.
//
// A Device is a specification: immutable, read from a *.device.yaml file, an embedded preset, or a
// fit of measured cells. It holds no state; the moving parts (free servers, the busy link) belong
// to the simulator.
//
// The flash has a package of its own, devicemodels/flash: its specification, its closed form and
// its event model. A fit finds the specification whose closed form is nearest to measured cells,
// says how well it predicts cells that it has not seen, and refuses where the cells do not
// determine it.
//
// Reading guide:
//
//	device.go    the types: what a device file says
//	host.go      times of the host; gpu.go: of a GPU, what probe --backend cuda measures
//	fit.go       measured cells to a flash.Spec
//	fit_search.go the search inside the fit: parameters, starts, objective, cells left out
//	fit_spec.go  what the search found, as a flash.Spec
//	check.go     a device file against its own cells
//	yaml.go      files: load, parse, save
//	strict.go    the strict half of parsing: unknown keys, positions, nearest names
//	validate.go  what a device must satisfy
//	presets.go   the devices compiled into the program, and presets/*.yaml
//
// Invariants:
//
//  1. A device that Load, Parse, Preset or FitFlash returned is valid.
//  2. Save then Load gives the same Device, to the nanosecond and the byte per second.
//  3. A fit never uses a tainted cell.
package devicemodels

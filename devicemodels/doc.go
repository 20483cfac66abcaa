// Package devicemodels describes the machines windrow simulates: one flash device and one host, as plain
// numbers with units and sources.
//
// A Device is a specification: immutable, read from a *.device.yaml file, an embedded preset, or a fit of
// measured cells. It holds no state; the moving parts (free servers, the busy link) belong to the simulator.
//
// The model of the flash has three stations in series with a host:
//
//	host: submit ──▶ k servers: LTFB + b/ServerRate ──▶ shared link: b/LinkRate ──▶ host: complete
//
// The link moves bytes while the server produces them, so a lone request of b bytes takes
//
//	submit + LTFB + max(b/ServerRate, b/LinkRate) + complete
//
// and a closed loop of many requests is limited by the slowest station (asymptotic bounds of operational
// analysis: Denning and Buzen, "The Operational Analysis of Queueing Network Models", 1978).
//
// Reading guide:
//
//	device.go    the types: what a device file says
//	closed.go    throughput and latency of the model in closed form
//	fit.go       measured cells to a Flash
//	fit_search.go the search inside the fit: parameters, starts, objective
//	yaml.go      files: load, parse, save
//	strict.go    the strict half of parsing: unknown keys, positions, nearest names
//	validate.go  what a device must satisfy
//	presets.go   the devices compiled into the program, and presets/*.yaml
//
// Invariants:
//
//  1. A device that Load, Parse, Preset or FitFlash returned is valid.
//  2. Throughput(e, c, b, d) · Latency(e, c, b, d) = d requests (Little's law).
//  3. Throughput never falls when a rate, the number of servers or the depth grows, or a latency shrinks.
//  4. Save then Load gives the same Device, to the nanosecond and the byte per second.
//  5. A fit never uses a tainted cell.
package devicemodels

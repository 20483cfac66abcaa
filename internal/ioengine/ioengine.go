// Package ioengine is the table of I/O engines: the ways to read a model file from flash. The
// readers (engine/flashio), the device models, the simulator and the command line all take names,
// defaults and limits from here. It is a leaf.
//
// A new engine is a row of Engines here, and in engine/flashio a file with its reader and a row of
// implementations.
package ioengine

import (
	"slices"
	"strconv"
	"strings"
)

// The names, as on the command line, in device models and in results. Auto stands for the first
// engine of Preferred that works.
const (
	Auto  = "auto"
	Pread = "pread"
	Uring = "uring"
	Mmap  = "mmap"
	Mem   = "mem"
)

// MaxThreads is the largest number of threads of a pool.
const MaxThreads = 4096

// Engine is a row of the table.
type Engine struct {
	Name string
	Help string // a few words on how it reads
	// Depth is the word for requests in flight: "threads" or "queue depth". It is empty for an
	// engine that reads one request after the other.
	Depth string
	// Parallel is the default number of requests in flight, MaxParallel the largest that is
	// accepted.
	Parallel, MaxParallel int
	// Cached engines read through memory: the page cache or a copy of the file. The others read
	// directly from the device where the file system allows it.
	Cached bool
	// Serial engines spend the host's time per request on one core, the others on all cores.
	Serial bool
}

// Engines returns the table, in the order of help texts. The default of 32 threads is that of LLM
// in a flash (section 4.1), the queue depth of 256 that of NeuroPrefetcher.
func Engines() []Engine {
	return []Engine{
		{Name: Pread, Help: "threads", Depth: "threads", Parallel: 32,
			MaxParallel: MaxThreads},
		{Name: Uring, Help: "io_uring", Depth: "queue depth", Parallel: 256,
			MaxParallel: 32768, Serial: true},
		{Name: Mmap, Help: "mapped file", Parallel: 1, MaxParallel: MaxThreads,
			Cached: true},
		{Name: Mem, Help: "copy in memory", Parallel: 1, MaxParallel: MaxThreads,
			Cached: true},
	}
}

// Preferred lists the engines that Auto tries, the best first.
func Preferred() []string { return []string{Uring, Pread} }

// Find returns the row of an engine.
func Find(name string) (e Engine, ok bool) {
	list := Engines()
	i := slices.IndexFunc(list, func(e Engine) bool { return e.Name == name })
	if i < 0 {
		return Engine{}, false
	}
	return list[i], true
}

// Names lists the names that a user can give: Auto, then those of the table.
func Names() []string {
	return append([]string{Auto}, namesOf(func(Engine) bool { return true })...)
}

// DirectNames lists the names of the engines that are not Cached.
func DirectNames() []string { return namesOf(func(e Engine) bool { return !e.Cached }) }

// SerialNames lists the names of the engines that are Serial.
func SerialNames() []string { return namesOf(func(e Engine) bool { return e.Serial }) }

func namesOf(some func(Engine) bool) []string {
	var list []string
	for _, e := range Engines() {
		if some(e) {
			list = append(list, e.Name)
		}
	}
	return list
}

// DefaultParallel is the default number of requests in flight of an engine. A device model may know
// engines that are not in the table, by fio's names: theirs is that of Pread.
func DefaultParallel(name string) int {
	e, ok := Find(name)
	if !ok {
		e, _ = Find(Pread)
	}
	return e.Parallel
}

// Choice describes the names that a user can give, for a flag's help: "auto (uring where it works,
// else pread), pread (threads), ...".
func Choice() string {
	list := []string{Auto + " (" + strings.Join(Preferred(), " where it works, else ") + ")"}
	for _, e := range Engines() {
		list = append(list, e.Name+" ("+e.Help+")")
	}
	return strings.Join(list, ", ")
}

// DepthChoice describes the number of requests in flight: "threads (pread) or queue depth (uring)".
func DepthChoice() string {
	return eachDepth(func(e Engine) string { return e.Depth + " (" + e.Name + ")" })
}

// DepthDefaults describes the default of DepthChoice: "32 or 256".
func DepthDefaults() string {
	return eachDepth(func(e Engine) string { return strconv.Itoa(e.Parallel) })
}

func eachDepth(text func(Engine) string) string {
	var list []string
	for _, e := range Engines() {
		if e.Depth != "" {
			list = append(list, text(e))
		}
	}
	return strings.Join(list, " or ")
}

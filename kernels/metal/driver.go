package metal

import (
	"errors"
	"fmt"
	"sync"
	"unsafe"

	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/kernels/cuda"
	"github.com/windrow-sim/windrow/kernels/source"
)

// Numbers of Metal's headers.
const (
	familyApple = 1000 // MTLGPUFamilyApple1 is 1001
	// MTLGPUFamilyMetal3: addresses of buffers can be passed in memory; macOS 13
	familyMetal3    = 5001
	language3       = 3 << 16
	newestApple     = 32   // newest family that is looked for
	leastApple      = 7    // M1
	mostThreads     = 512  // of a threadgroup, as in kernels/source/port.h
	languageVersion = 3000 // in the form of Driver.Version: 3.0
)

// driver is the cuda.Driver over Metal's default device. Its lock guards Go's state. Metal's shared
// objects are safe for several threads, but a command buffer is not.
type driver struct {
	messages
	device ID

	mutex   sync.Mutex
	lost    error // why nothing works any more
	pieces  pieces
	streams map[cuda.Stream]*stream
	events  map[cuda.Event]*event
	modules map[cuda.Module]ID
	// pipelines belong to their modules; all are released together, when the driver is closed.
	pipelines map[cuda.Function]pipeline
	last      uintptr // handle given out
}

type pipeline struct {
	state   ID
	threads int // the most of a threadgroup
}

// OpenOn takes a device, an MTLDevice of o, into use. The Driver releases it; it is released on an
// error too. Anything but Apple silicon with macOS 13 or newer is ErrEnvironment.
func OpenOn(o Objects, device ID) (cuda.Driver, error) {
	d := &driver{
		messages: messages{o}, device: device,
		streams: map[cuda.Stream]*stream{}, events: map[cuda.Event]*event{},
		modules: map[cuda.Module]ID{}, pipelines: map[cuda.Function]pipeline{},
	}
	if device == 0 {
		return nil, environment("the system has no default device")
	}
	name, err := d.Name(0)
	if err != nil {
		return nil, err
	}
	if d.family() < leastApple || !d.supports(familyMetal3) {
		d.Send(d.device, "release")
		return nil, environment("%s is not of Apple silicon with Metal 3, which M1 and macOS 13 "+
			"are the first to have", name)
	}
	return d, nil
}

// do runs a call with the lock and a pool. Unless it frees something, it runs only if the device
// works.
func (d *driver) do(frees bool, f func() error) error {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if d.lost != nil && !frees {
		return d.lost
	}
	return d.pooled(f)
}

// handle is a new number for something.
func (d *driver) handle() uintptr {
	d.last++
	return d.last
}

func (d *driver) supports(family int) bool {
	return byte(d.Send(d.device, "supportsFamily:", family)) != 0 // a BOOL
}

// Version is 3000 for Metal 3.0, the language that the kernels are compiled as.
func (d *driver) Version() (int, error) { return languageVersion, nil }

func (d *driver) Devices() (int, error) { return 1, nil }

func (d *driver) Name(int) (name string, err error) {
	err = d.pooled(func() error {
		name = d.string(d.Send(d.device, "name"))
		return nil
	})
	return name, err
}

// Memory is how much of the machine's memory the device can use without getting slower.
func (d *driver) Memory(int) (units.Bytes, error) {
	return units.Bytes(d.Send(d.device, "recommendedMaxWorkingSetSize")), nil
}

// Attribute answers as an NVIDIA device would. The number of processors is not known, 0; the major
// capability is the family of the Apple GPU, 7 for M1.
func (d *driver) Attribute(_ int, a cuda.Attribute) (int, error) {
	switch a {
	case cuda.MaxThreads:
		return mostThreads, nil
	case cuda.WarpSize:
		return lanes, nil
	case cuda.MapsHostMemory, cuda.UnifiedAddresses, cuda.CopyEngines, cuda.Integrated:
		return 1, nil
	case cuda.ComputeMajor:
		return d.family(), nil
	}
	return 0, nil
}

// family returns the newest family of Apple GPUs with features that the device has: 7 for M1.
func (d *driver) family() int {
	for n := newestApple; n > 0; n-- {
		if d.supports(familyApple + n) {
			return n
		}
	}
	return 0
}

func (d *driver) MemInfo() (free, total units.Bytes, err error) {
	if total, err = d.Memory(0); err != nil {
		return 0, 0, err
	}
	used := units.Bytes(d.Send(d.device, "currentAllocatedSize"))
	return max(total-used, 0), total, nil
}

// Use makes the default stream.
func (d *driver) Use(int) error {
	return d.do(false, func() error {
		if d.streams[0] != nil {
			return errors.New("metal: the device is in use; Release it first")
		}
		s, err := d.queue()
		if err == nil {
			d.streams[0] = s
		}
		return err
	})
}

// Release ends the default stream, after its work.
func (d *driver) Release() error {
	d.mutex.Lock()
	used := d.streams[0] != nil
	d.mutex.Unlock()
	if !used {
		return nil
	}
	return d.DestroyStream(0)
}

// Load compiles the kernels. The PTX of a module only lists the wanted kernels; all of them must be
// in source.Metal.
func (d *driver) Load(ptx string) (m cuda.Module, err error) {
	const message = "newLibraryWithSource:options:error:"
	text, err := source.Metal()
	if err != nil {
		return 0, err
	}
	err = d.do(false, func() error {
		options := d.Send(d.Class("MTLCompileOptions"), "new")
		defer d.Send(options, "release")
		d.Send(options, "setLanguageVersion:", uintptr(language3))
		// Fast mathematics assumes that there is no NaN, and reorders sums.
		d.Send(options, "setFastMathEnabled:", false)
		var failure ID
		library := d.Send(d.device, message, d.nsString(text), options, unsafe.Pointer(&failure))
		if library == 0 {
			return &Error{Message: message, Text: d.describe(failure)}
		}
		for _, name := range entries(ptx) {
			function := d.Send(library, "newFunctionWithName:", d.nsString(name))
			if function == 0 {
				d.Send(library, "release")
				return &Error{Message: "newFunctionWithName:", Text: name +
					" is not among the kernels"}
			}
			d.Send(function, "release")
		}
		m = cuda.Module(d.handle())
		d.modules[m] = library
		return nil
	})
	return m, err
}

func (d *driver) Unload(m cuda.Module) error {
	return d.do(true, func() error {
		library, ok := d.modules[m]
		if !ok {
			return fmt.Errorf("metal: there is no module %d", m)
		}
		delete(d.modules, m)
		d.Send(library, "release")
		return nil
	})
}

// Function compiles a kernel for the device.
func (d *driver) Function(m cuda.Module, name string) (f cuda.Function, err error) {
	const message = "newComputePipelineStateWithFunction:error:"
	err = d.do(false, func() error {
		library, ok := d.modules[m]
		if !ok {
			return fmt.Errorf("metal: there is no module %d", m)
		}
		function := d.Send(library, "newFunctionWithName:", d.nsString(name))
		if function == 0 {
			return &Error{Message: "newFunctionWithName:", Text: name + " is not among the kernels"}
		}
		defer d.Send(function, "release")
		var failure ID
		state := d.Send(d.device, message, function, unsafe.Pointer(&failure))
		if state == 0 {
			return &Error{Message: message, Text: name + ": " + d.describe(failure)}
		}
		if width := int(d.Send(state, "threadExecutionWidth")); width != lanes {
			d.Send(state, "release")
			return environment("SIMD groups of %d threads: the kernels are for %d", width, lanes)
		}
		f = cuda.Function(d.handle())
		d.pipelines[f] = pipeline{state, int(d.Send(state, "maxTotalThreadsPerThreadgroup"))}
		return nil
	})
	return f, err
}

// Close releases everything that is left and the device. The work of all streams must be done.
func (d *driver) Close() error {
	err := d.Release()
	return errors.Join(err, d.do(true, func() error {
		for _, p := range d.pipelines {
			d.Send(p.state, "release")
		}
		clear(d.pipelines)
		d.Send(d.device, "release")
		d.device = 0
		return nil
	}))
}

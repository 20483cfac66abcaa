//go:build amd64 || arm64

package standin

import (
	"encoding/binary"
	"os"
	"slices"
	"strings"
	"syscall"
	"unsafe"

	"github.com/windrow-sim/windrow/kernels/metal"
)

// gpu holds the state of Metal's objects.
type gpu struct {
	// Of a command buffer. It keeps its members until it is done.
	queue     *object
	commands  []func()
	encoding  *object // an encoder without endEncoding
	committed bool
	status    id
	ended     float64 // seconds
	failure   string

	waiting []*object // command buffers of a queue that have not run

	// Of an event: the signalled value, and the command buffers that will signal.
	value     uint64
	signalled []*object

	// Of an encoder, which is open until endEncoding.
	open     bool
	buffer   *object
	pipeline *object
	bytes    []byte
	room     uintptr
	used     []*object

	// Of options.
	precise, language bool
}

// method answers a message to an object.
type method func(o *object, a arguments) id

// number returns a method that answers with a constant.
func number(n id) method { return func(*object, arguments) id { return n } }

// foundation has pools and errors.
func (r *Runtime) foundation() map[string]method {
	return map[string]method{
		"NSAutoreleasePool new": func(*object, arguments) id {
			pool, thread := r.make("NSAutoreleasePool"), syscall.Gettid()
			r.pools[thread] = append(r.pools[thread], pool)
			return pool.self
		},
		"NSAutoreleasePool drain": func(o *object, _ arguments) id {
			thread := syscall.Gettid()
			pools := r.pools[thread]
			if len(pools) == 0 || o != pools[len(pools)-1] {
				r.stop("pools do not end in the order in which they began, or on another thread")
			}
			r.pools[thread] = pools[:len(pools)-1]
			r.release(o)
			return 0
		},
		"NSError localizedDescription": func(o *object, _ arguments) id { return r.string(o.text) },
	}
}

// making lists the methods of the device and its memory.
func (r *Runtime) making() map[string]method {
	return map[string]method{
		"MTLDevice name": func(*object, arguments) id {
			return r.string("fake")
		},
		"MTLDevice supportsFamily:": func(_ *object, a arguments) id {
			return r.supports(argument[int](a, 0))
		},
		"MTLDevice recommendedMaxWorkingSetSize": number(1 << 30),
		"MTLDevice currentAllocatedSize":         number(1 << 20),
		"MTLDevice newCommandQueue": func(*object, arguments) id {
			return r.make("MTLCommandQueue").self
		},
		"MTLDevice newEvent": func(*object, arguments) id {
			return r.make("MTLEvent").self
		},
		"MTLDevice newBufferWithLength:options:": func(_ *object, a arguments) id {
			a.shared(1)
			return r.buffer(a.count(0)).self
		},
		"MTLDevice newBufferWithBytes:length:options:": func(_ *object, a arguments) id {
			a.shared(2)
			o := r.buffer(a.count(1))
			copy(o.host, a.bytes(0, a.count(1)))
			return o.self
		},
		"MTLDevice newBufferWithBytesNoCopy:length:options:deallocator:": func(_ *object,
			a arguments) id {
			a.shared(2)
			page := uintptr(os.Getpagesize())
			if at := uintptr(argument[unsafe.Pointer](a, 0)); at%page != 0 ||
				a.count(1)%page != 0 || a.count(3) != 0 {
				r.stop("memory that is not whole pages, or a deallocator")
			}
			o := r.make("MTLBuffer")
			o.host = a.bytes(0, a.count(1))
			o.device = o.host
			return o.self
		},
		"MTLBuffer gpuAddress": func(o *object, _ arguments) id { return address(o.device) },
	}
}

// compiling has libraries and pipelines.
func (r *Runtime) compiling() map[string]method {
	return map[string]method{
		"MTLCompileOptions new": func(*object, arguments) id {
			return r.make("MTLCompileOptions").self
		},
		"MTLCompileOptions setLanguageVersion:": func(o *object, a arguments) id {
			o.language = a.count(0) == 0x30000
			return 0
		},
		"MTLCompileOptions setFastMathEnabled:": func(o *object, a arguments) id {
			o.precise = !argument[bool](a, 0)
			return 0
		},
		"MTLDevice newLibraryWithSource:options:error:": func(_ *object, a arguments) id {
			if o := a.object(1, "MTLCompileOptions"); !o.precise || !o.language {
				r.stop("the kernels are compiled with fast mathematics, or as another language")
			}
			o := r.make("MTLLibrary")
			o.text = a.object(0, "NSString").text
			return o.self
		},
		"MTLLibrary newFunctionWithName:": func(o *object, a arguments) id {
			name := a.object(0, "NSString").text
			if !strings.Contains(o.text, "("+name+", ") {
				return 0
			}
			made := r.make("MTLFunction")
			made.text = name
			return made.self
		},
		"MTLDevice newComputePipelineStateWithFunction:error:": func(_ *object, a arguments) id {
			o := r.make("MTLComputePipelineState")
			o.text = a.object(0, "MTLFunction").text
			return o.self
		},
		"MTLComputePipelineState threadExecutionWidth":          number(32),
		"MTLComputePipelineState maxTotalThreadsPerThreadgroup": number(512),
	}
}

// queueing has command buffers and the encoders of copies.
func (r *Runtime) queueing() map[string]method {
	return map[string]method{
		"MTLCommandQueue commandBuffer": func(o *object, _ arguments) id {
			b := r.make("MTLCommandBuffer")
			b.queue, b.members = o, []*object{r.retain(o)}
			return r.auto(b)
		},
		"MTLCommandBuffer computeCommandEncoder":     r.encoder("MTLComputeCommandEncoder"),
		"MTLCommandBuffer blitCommandEncoder":        r.encoder("MTLBlitCommandEncoder"),
		"MTLCommandBuffer encodeSignalEvent:value:":  r.signal,
		"MTLCommandBuffer encodeWaitForEvent:value:": r.await,
		"MTLCommandBuffer commit":                    r.commit,
		"MTLCommandBuffer status": func(o *object, _ arguments) id {
			return o.status
		},
		"MTLCommandBuffer error": func(o *object, _ arguments) id {
			return r.because(o)
		},
		"MTLCommandBuffer waitUntilCompleted": func(o *object, _ arguments) id {
			r.finish(o)
			return 0
		},
		"MTLBlitCommandEncoder endEncoding":             r.end,
		"MTLBlitCommandEncoder fillBuffer:range:value:": r.fill,

		"MTLBlitCommandEncoder copyFromBuffer:sourceOffset:" +
			"toBuffer:destinationOffset:size:": r.copy,
	}
}

// computing has the encoders of kernels.
func (r *Runtime) computing() map[string]method {
	return map[string]method{
		"MTLComputeCommandEncoder endEncoding": r.end,
		"MTLComputeCommandEncoder setComputePipelineState:": func(o *object, a arguments) id {
			o.pipeline = r.keep(o, a.object(0, "MTLComputePipelineState"))
			return 0
		},
		"MTLComputeCommandEncoder setBytes:length:atIndex:": func(o *object, a arguments) id {
			if a.count(1) == 0 || a.count(1) > 4096 || a.count(2) != 0 {
				r.stop("%d bytes for index %d", a.count(1), a.count(2))
			}
			o.bytes = slices.Clone(a.bytes(0, a.count(1)))
			return 0
		},
		"MTLComputeCommandEncoder setThreadgroupMemoryLength:atIndex:": func(o *object,
			a arguments) id {
			if a.count(0)%16 != 0 || a.count(1) != 0 {
				r.stop("threadgroup memory comes in multiples of 16 bytes")
			}
			o.room = a.count(0)
			return 0
		},
		// By one reading of the documentation, a second call replaces the list of the first.
		"MTLComputeCommandEncoder useResources:count:usage:": func(o *object, a arguments) id {
			if a.count(1) == 0 || a.count(2) != 3 {
				r.stop("a kernel may read and write what it uses")
			}
			o.used = nil
			for _, buffer := range unsafe.Slice((*id)(argument[unsafe.Pointer](a, 0)), a.count(1)) {
				o.used = append(o.used, r.keep(o, r.object(buffer, "MTLBuffer")))
			}
			return 0
		},
		"MTLComputeCommandEncoder dispatchThreadgroups:threadsPerThreadgroup:": r.dispatch,
	}
}

// supports: the device is of an M2.
func (r *Runtime) supports(family int) id {
	const noise = 0x7700 // a BOOL is one byte of the register
	if family <= 1008 || family == 5001 {
		return noise | 1
	}
	return noise
}

// shared demands the options of shared storage.
func (a arguments) shared(i int) {
	if a.count(i) != 0 {
		a.stop("%s: options %d are not those of shared storage", a.message, a.count(i))
	}
}

// encodable demands a command buffer that can take commands and has no encoder at work.
func (r *Runtime) encodable(b *object) {
	if b.committed || b.encoding != nil {
		r.stop("a command buffer that was committed, or has an encoder at work, gets a command")
	}
}

func (r *Runtime) encoder(class string) method {
	return func(b *object, _ arguments) id {
		r.encodable(b)
		e := r.make(class)
		e.open, e.buffer, b.encoding = true, b, e
		return r.auto(e)
	}
}

// keep holds on to an object until the encoder's command buffer is done.
func (r *Runtime) keep(e, o *object) *object {
	if !e.open {
		r.stop("%s gets a command after endEncoding", e.class)
	}
	e.buffer.members = append(e.buffer.members, r.retain(o))
	return o
}

func (r *Runtime) end(e *object, _ arguments) id {
	if !e.open {
		r.stop("endEncoding twice")
	}
	e.open, e.buffer.encoding = false, nil
	return 0
}

func (r *Runtime) do(e *object, command func()) id {
	if !e.open {
		r.stop("%s gets a command after endEncoding", e.class)
	}
	e.buffer.commands = append(e.buffer.commands, command)
	return 0
}

func (r *Runtime) commit(b *object, _ arguments) id {
	r.encodable(b)
	b.committed, b.status = true, 2
	b.queue.waiting = append(b.queue.waiting, r.retain(b))
	return 0
}

func (r *Runtime) signal(b *object, a arguments) id {
	r.encodable(b)
	e, value := a.object(0, "MTLEvent"), argument[uint64](a, 1)
	b.members = append(b.members, r.retain(e))
	e.signalled = append(e.signalled, b)
	b.commands = append(b.commands, func() { e.value = max(e.value, value) })
	return 0
}

func (r *Runtime) await(b *object, a arguments) id {
	r.encodable(b)
	e, value := a.object(0, "MTLEvent"), argument[uint64](a, 1)
	b.members = append(b.members, r.retain(e))
	b.commands = append(b.commands, func() {
		for e.value < value {
			if len(e.signalled) == 0 {
				r.stop("a command buffer waits for ever")
			}
			next := e.signalled[0]
			e.signalled = e.signalled[1:]
			r.finish(next)
		}
	})
	return 0
}

// finish runs the work of a queue up to a command buffer.
func (r *Runtime) finish(b *object) {
	if !b.committed {
		r.stop("a wait for a command buffer that was not committed")
	}
	for b.status < 4 {
		next := b.queue.waiting[0]
		b.queue.waiting = b.queue.waiting[1:]
		for _, command := range next.commands {
			command()
		}
		next.commands = nil
		r.done++
		next.status, next.ended = 4, float64(r.done)*1e-6
		if text, failed := r.failed(Execution); failed {
			next.status, next.failure = 5, text
		}
		for _, o := range next.members {
			r.release(o)
		}
		next.members = nil
		r.release(next)
	}
}

func (r *Runtime) because(b *object) id {
	if b.failure == "" {
		return 0
	}
	o := r.make("NSError")
	o.text = b.failure
	return r.auto(o)
}

// part is a range of a buffer, in whole words.
func (r *Runtime) part(o *object, offset, size uint64) []byte {
	if offset%4 != 0 || size%4 != 0 || size == 0 || offset+size > uint64(len(o.device)) {
		r.stop("%d bytes at %d of a buffer of %d", size, offset, len(o.device))
	}
	return o.device[offset : offset+size]
}

func (r *Runtime) fill(e *object, a arguments) id {
	part, value := argument[metal.Range](a, 1), argument[byte](a, 2)
	to := r.part(r.keep(e, a.object(0, "MTLBuffer")), part.From, part.Size)
	return r.do(e, func() {
		for i := range to {
			to[i] = value
		}
	})
}

func (r *Runtime) copy(e *object, a arguments) id {
	size := uint64(a.count(4))
	from := r.part(r.keep(e, a.object(0, "MTLBuffer")), uint64(a.count(1)), size)
	to := r.part(r.keep(e, a.object(2, "MTLBuffer")), uint64(a.count(3)), size)
	return r.do(e, func() { copy(to, from) })
}

// dispatch runs a kernel. The kernel may use only the buffers that the encoder lists.
func (r *Runtime) dispatch(e *object, a arguments) id {
	grid, group := argument[metal.Size](a, 0), argument[metal.Size](a, 1)
	if e.pipeline == nil || e.bytes == nil || e.room != roomBytes || grid.X*grid.Y*grid.Z == 0 ||
		group.X == 0 || group.X > 512 || group.Y != 1 || group.Z != 1 {
		r.stop("a dispatch of %v × %v without all that it needs: %+v", grid, group, e.gpu)
	}
	for i := 0; i < len(e.bytes); i += 8 {
		word := uintptr(binary.LittleEndian.Uint64(e.bytes[i:]))
		for _, o := range r.alive {
			if inside := o.class == "MTLBuffer" && word >= address(o.device) &&
				word < address(o.device)+uintptr(len(o.device)); inside && !slices.Contains(e.used,
				o) {
				r.stop("%s uses a buffer that Metal was not told of", e.pipeline.text)
			}
		}
	}
	name, bytes := e.pipeline.text, e.bytes
	return r.do(e, func() {
		if trouble := r.kernel(name, bytes, [3]int32{int32(grid.X), int32(grid.Y), int32(grid.Z)},
			int(group.X)); trouble != "" {
			r.stop("%s: %s", name, trouble)
		}
	})
}

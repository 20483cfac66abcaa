package metal

import (
	"encoding/binary"
	"os"
	"slices"
	"strings"
	"unsafe"
)

// gpu is what objects of Metal have.
type gpu struct {
	// Of a command buffer. Its members are kept until it is done.
	queue     *object
	commands  []func()
	encoding  *object // an encoder without endEncoding
	committed bool
	status    id
	ended     float64 // seconds
	failure   string

	waiting []*object // command buffers of a queue that have not run

	// Of an event: what was signalled, and who will signal more.
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

// method is what an object does with a message.
type method func(o *object, a arguments) id

// number is a method that answers with one.
func number(n id) method { return func(*object, arguments) id { return n } }

// foundation has pools and errors.
func (f *fake) foundation() map[string]method {
	return map[string]method{
		"NSAutoreleasePool new": func(*object, arguments) id {
			f.pools = append(f.pools, f.make("NSAutoreleasePool"))
			return f.pools[len(f.pools)-1].self
		},
		"NSAutoreleasePool drain": func(o *object, _ arguments) id {
			if o != f.pools[len(f.pools)-1] {
				f.Fatal("pools do not end in the order in which they began")
			}
			f.pools = f.pools[:len(f.pools)-1]
			f.release(o)
			return 0
		},
		"NSError localizedDescription": func(o *object, _ arguments) id { return f.string(o.text) },
	}
}

// making has the device and its memory.
func (f *fake) making() map[string]method {
	return map[string]method{
		"MTLDevice name":                         func(*object, arguments) id { return f.string("fake") },
		"MTLDevice supportsFamily:":              func(_ *object, a arguments) id { return f.supports(argument[int](a, 0)) },
		"MTLDevice recommendedMaxWorkingSetSize": number(1 << 30),
		"MTLDevice currentAllocatedSize":         number(1 << 20),
		"MTLDevice newCommandQueue":              func(*object, arguments) id { return f.make("MTLCommandQueue").self },
		"MTLDevice newEvent":                     func(*object, arguments) id { return f.make("MTLEvent").self },
		"MTLDevice newBufferWithLength:options:": func(_ *object, a arguments) id {
			a.shared(1)
			return f.buffer(a.count(0)).self
		},
		"MTLDevice newBufferWithBytes:length:options:": func(_ *object, a arguments) id {
			a.shared(2)
			o := f.buffer(a.count(1))
			copy(o.host, a.bytes(0, a.count(1)))
			return o.self
		},
		"MTLDevice newBufferWithBytesNoCopy:length:options:deallocator:": func(_ *object, a arguments) id {
			a.shared(2)
			page := uintptr(os.Getpagesize())
			if at := uintptr(argument[unsafe.Pointer](a, 0)); at%page != 0 || a.count(1)%page != 0 || a.count(3) != 0 {
				f.Fatal("memory that is not whole pages, or a deallocator")
			}
			o := f.make("MTLBuffer")
			o.host = a.bytes(0, a.count(1))
			o.device = o.host
			return o.self
		},
		"MTLBuffer gpuAddress": func(o *object, _ arguments) id { return address(o.device) },
	}
}

// compiling has libraries and pipelines.
func (f *fake) compiling() map[string]method {
	return map[string]method{
		"MTLCompileOptions new":                 func(*object, arguments) id { return f.make("MTLCompileOptions").self },
		"MTLCompileOptions setLanguageVersion:": func(o *object, a arguments) id { o.language = a.count(0) == 0x30000; return 0 },
		"MTLCompileOptions setFastMathEnabled:": func(o *object, a arguments) id { o.precise = !argument[bool](a, 0); return 0 },
		"MTLDevice newLibraryWithSource:options:error:": func(_ *object, a arguments) id {
			if o := a.object(1, "MTLCompileOptions"); !o.precise || !o.language {
				f.Fatal("the kernels are compiled with fast mathematics, or as another language")
			}
			o := f.make("MTLLibrary")
			o.text = a.object(0, "NSString").text
			return o.self
		},
		"MTLLibrary newFunctionWithName:": func(o *object, a arguments) id {
			name := a.object(0, "NSString").text
			if !strings.Contains(o.text, "("+name+", ") {
				return 0
			}
			made := f.make("MTLFunction")
			made.text = name
			return made.self
		},
		"MTLDevice newComputePipelineStateWithFunction:error:": func(_ *object, a arguments) id {
			o := f.make("MTLComputePipelineState")
			o.text = a.object(0, "MTLFunction").text
			return o.self
		},
		"MTLComputePipelineState threadExecutionWidth":          number(32),
		"MTLComputePipelineState maxTotalThreadsPerThreadgroup": number(1024),
	}
}

// queueing has command buffers and the encoders of copies.
func (f *fake) queueing() map[string]method {
	return map[string]method{
		"MTLCommandQueue commandBuffer": func(o *object, _ arguments) id {
			b := f.make("MTLCommandBuffer")
			b.queue, b.members = o, []*object{f.retain(o)}
			return f.auto(b)
		},
		"MTLCommandBuffer computeCommandEncoder":                                             f.encoder("MTLComputeCommandEncoder"),
		"MTLCommandBuffer blitCommandEncoder":                                                f.encoder("MTLBlitCommandEncoder"),
		"MTLCommandBuffer encodeSignalEvent:value:":                                          f.signal,
		"MTLCommandBuffer encodeWaitForEvent:value:":                                         f.await,
		"MTLCommandBuffer commit":                                                            f.commit,
		"MTLCommandBuffer status":                                                            func(o *object, _ arguments) id { return o.status },
		"MTLCommandBuffer error":                                                             func(o *object, _ arguments) id { return f.because(o) },
		"MTLCommandBuffer waitUntilCompleted":                                                func(o *object, _ arguments) id { f.finish(o); return 0 },
		"MTLBlitCommandEncoder endEncoding":                                                  f.end,
		"MTLBlitCommandEncoder fillBuffer:range:value:":                                      f.fill,
		"MTLBlitCommandEncoder copyFromBuffer:sourceOffset:toBuffer:destinationOffset:size:": f.copy,
	}
}

// computing has the encoders of kernels.
func (f *fake) computing() map[string]method {
	return map[string]method{
		"MTLComputeCommandEncoder endEncoding": f.end,
		"MTLComputeCommandEncoder setComputePipelineState:": func(o *object, a arguments) id {
			o.pipeline = f.keep(o, a.object(0, "MTLComputePipelineState"))
			return 0
		},
		"MTLComputeCommandEncoder setBytes:length:atIndex:": func(o *object, a arguments) id {
			if a.count(1) == 0 || a.count(1) > 4096 || a.count(2) != 0 {
				f.Fatalf("%d bytes for index %d", a.count(1), a.count(2))
			}
			o.bytes = slices.Clone(a.bytes(0, a.count(1)))
			return 0
		},
		"MTLComputeCommandEncoder setThreadgroupMemoryLength:atIndex:": func(o *object, a arguments) id {
			if a.count(0)%16 != 0 || a.count(1) != 0 {
				f.Fatal("threadgroup memory comes in multiples of 16 bytes")
			}
			o.room = a.count(0)
			return 0
		},
		"MTLComputeCommandEncoder useResource:usage:": func(o *object, a arguments) id {
			if a.count(1) != 3 {
				f.Fatal("a kernel may read and write what it uses")
			}
			o.used = append(o.used, f.keep(o, a.object(0, "MTLBuffer")))
			return 0
		},
		"MTLComputeCommandEncoder dispatchThreadgroups:threadsPerThreadgroup:": f.dispatch,
	}
}

// supports: the device is of an M2.
func (f *fake) supports(family int) id {
	const noise = 0x7700 // a BOOL is one byte of the register
	if family <= 1008 || family == 5001 {
		return noise | 1
	}
	return noise
}

// shared demands the options of shared storage.
func (a arguments) shared(i int) {
	if a.count(i) != 0 {
		a.Fatalf("%s: options %d are not those of shared storage", a.message, a.count(i))
	}
}

// encodable demands a command buffer that can take commands and has no encoder at work.
func (f *fake) encodable(b *object) {
	if b.committed || b.encoding != nil {
		f.Fatal("a command buffer that was committed, or has an encoder at work, gets a command")
	}
}

func (f *fake) encoder(class string) method {
	return func(b *object, _ arguments) id {
		f.encodable(b)
		e := f.make(class)
		e.open, e.buffer, b.encoding = true, b, e
		return f.auto(e)
	}
}

// keep holds on to an object until the encoder's command buffer is done.
func (f *fake) keep(e, o *object) *object {
	if !e.open {
		f.Fatalf("%s gets a command after endEncoding", e.class)
	}
	e.buffer.members = append(e.buffer.members, f.retain(o))
	return o
}

func (f *fake) end(e *object, _ arguments) id {
	if !e.open {
		f.Fatal("endEncoding twice")
	}
	e.open, e.buffer.encoding = false, nil
	return 0
}

func (f *fake) do(e *object, command func()) id {
	if !e.open {
		f.Fatalf("%s gets a command after endEncoding", e.class)
	}
	e.buffer.commands = append(e.buffer.commands, command)
	return 0
}

func (f *fake) commit(b *object, _ arguments) id {
	f.encodable(b)
	b.committed, b.status = true, 2
	b.queue.waiting = append(b.queue.waiting, f.retain(b))
	return 0
}

func (f *fake) signal(b *object, a arguments) id {
	f.encodable(b)
	e, value := a.object(0, "MTLEvent"), argument[uint64](a, 1)
	b.members = append(b.members, f.retain(e))
	e.signalled = append(e.signalled, b)
	b.commands = append(b.commands, func() { e.value = max(e.value, value) })
	return 0
}

func (f *fake) await(b *object, a arguments) id {
	f.encodable(b)
	e, value := a.object(0, "MTLEvent"), argument[uint64](a, 1)
	b.members = append(b.members, f.retain(e))
	b.commands = append(b.commands, func() {
		for e.value < value {
			if len(e.signalled) == 0 {
				f.Fatal("a command buffer waits for ever")
			}
			next := e.signalled[0]
			e.signalled = e.signalled[1:]
			f.finish(next)
		}
	})
	return 0
}

// finish runs what is in a queue up to a command buffer.
func (f *fake) finish(b *object) {
	if !b.committed {
		f.Fatal("somebody waits for a command buffer that was not committed")
	}
	for b.status < 4 {
		next := b.queue.waiting[0]
		b.queue.waiting = b.queue.waiting[1:]
		for _, command := range next.commands {
			command()
		}
		next.commands = nil
		f.done++
		next.status, next.ended = 4, float64(f.done)*1e-6
		if text, ok := f.refuse[execution]; ok {
			delete(f.refuse, execution)
			next.status, next.failure = 5, text
		}
		for _, o := range next.members {
			f.release(o)
		}
		next.members = nil
		f.release(next)
	}
}

func (f *fake) because(b *object) id {
	if b.failure == "" {
		return 0
	}
	o := f.make("NSError")
	o.text = b.failure
	return f.auto(o)
}

// part is a range of a buffer, in whole words.
func (f *fake) part(o *object, offset, size uint64) []byte {
	if offset%4 != 0 || size%4 != 0 || size == 0 || offset+size > uint64(len(o.device)) {
		f.Fatalf("%d bytes at %d of a buffer of %d", size, offset, len(o.device))
	}
	return o.device[offset : offset+size]
}

func (f *fake) fill(e *object, a arguments) id {
	r, value := argument[span](a, 1), argument[byte](a, 2)
	to := f.part(f.keep(e, a.object(0, "MTLBuffer")), r.from, r.size)
	return f.do(e, func() {
		for i := range to {
			to[i] = value
		}
	})
}

func (f *fake) copy(e *object, a arguments) id {
	size := uint64(a.count(4))
	from := f.part(f.keep(e, a.object(0, "MTLBuffer")), uint64(a.count(1)), size)
	to := f.part(f.keep(e, a.object(2, "MTLBuffer")), uint64(a.count(3)), size)
	return f.do(e, func() { copy(to, from) })
}

// dispatch runs a kernel. It may use those of the buffers alone that the encoder was told of.
func (f *fake) dispatch(e *object, a arguments) id {
	grid, group := argument[size](a, 0), argument[size](a, 1)
	if e.pipeline == nil || e.bytes == nil || e.room != roomBytes || grid.x*grid.y*grid.z == 0 || group.x == 0 || group.x > 1024 || group.y != 1 || group.z != 1 {
		f.Fatalf("a dispatch of %v × %v without all that it needs: %+v", grid, group, e.gpu)
	}
	for i := 0; i < len(e.bytes); i += 8 {
		word := uintptr(binary.LittleEndian.Uint64(e.bytes[i:]))
		for _, o := range f.alive {
			if inside := o.class == "MTLBuffer" && word >= address(o.device) && word < address(o.device)+uintptr(len(o.device)); inside && !slices.Contains(e.used, o) {
				f.Fatalf("%s uses a buffer that Metal was not told of", e.pipeline.text)
			}
		}
	}
	name, bytes := e.pipeline.text, e.bytes
	return f.do(e, func() {
		if trouble := f.kernel(name, bytes, [3]int32{int32(grid.x), int32(grid.y), int32(grid.z)}, int(group.x)); trouble != "" {
			f.Fatalf("%s: %s", name, trouble)
		}
	})
}

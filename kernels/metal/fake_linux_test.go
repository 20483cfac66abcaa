package metal

import (
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"unsafe"
)

// fake is an Objective-C runtime that has Metal's objects, as far as this package uses them: as Apple's documentation describes them, and strict. A
// message that an object does not have, arguments of other kinds, an object that was released, and whatever Metal's validation layer would stop at end the
// test. Kernels run on the host, through the shim, when somebody waits for them and no sooner. One goroutine may use it.
type fake struct {
	testing.TB
	methods map[string]method // "class message"
	kernel  func(name string, arguments []byte, grid [3]int32, threads int) (trouble string)
	alive   map[id]*object
	classes map[string]id
	last    id
	pools   []*object
	device  id
	done    int               // command buffers that have run
	refuse  map[string]string // message: the answer is none, once, and an error with the text
}

// execution stands for a message that fails late: the next command buffer that runs.
const execution = "execution"

// object is an object of any class; it has the fields that its class needs.
type object struct {
	self    id
	class   string
	count   int // references
	text    string
	members []*object // of a pool; what a command buffer or encoder keeps

	// Of a buffer.
	host, device []byte // two views of its memory, or one of memory that was registered
	mapped       bool

	gpu
}

func newFake(t testing.TB) *fake {
	f := &fake{TB: t, alive: map[id]*object{}, classes: map[string]id{}, refuse: map[string]string{}}
	f.device = f.make("MTLDevice").self
	f.methods = map[string]method{}
	for _, list := range []map[string]method{f.foundation(), f.making(), f.compiling(), f.queueing(), f.computing()} {
		maps.Copy(f.methods, list)
	}
	return f
}

// make is a new object with one reference.
func (f *fake) make(class string) *object {
	f.last += 16
	o := &object{self: f.last, class: class, count: 1}
	f.alive[o.self] = o
	return o
}

// auto leaves the one reference to the pool.
func (f *fake) auto(o *object) id {
	if len(f.pools) == 0 {
		f.Fatalf("%s is made without a pool", o.class)
	}
	pool := f.pools[len(f.pools)-1]
	pool.members = append(pool.members, o)
	return o.self
}

func (f *fake) retain(o *object) *object {
	o.count++
	return o
}

func (f *fake) release(o *object) {
	if o.count--; o.count > 0 {
		return
	}
	if o.open {
		f.Fatalf("%s is released without endEncoding", o.class)
	}
	for _, m := range o.members {
		f.release(m)
	}
	if o.mapped {
		for _, view := range [][]byte{o.host, o.device} {
			if err := syscall.Munmap(view[:cap(view)]); err != nil {
				f.Fatal(err)
			}
		}
	}
	delete(f.alive, o.self)
}

// left lists what was not released; the device is one of it.
func (f *fake) left() (list []string) {
	for _, o := range f.alive {
		if o.class != "class" {
			list = append(list, o.class)
		}
	}
	slices.Sort(list)
	return list
}

func (f *fake) object(at id, class string) *object {
	f.Helper()
	o := f.alive[at]
	if o == nil || class != "" && o.class != class {
		f.Fatalf("object %d is not a %s that is alive: %+v", at, class, o)
	}
	return o
}

func (f *fake) class(name string) id {
	if f.classes[name] == 0 {
		o := f.make("class")
		o.text = name
		f.classes[name] = o.self
	}
	return f.classes[name]
}

func (f *fake) send(to id, message string, args ...any) id {
	f.Helper()
	if to == 0 {
		return 0
	}
	o := f.object(to, "")
	if n := strings.Count(message, ":"); n != len(args) {
		f.Fatalf("%s with %d arguments", message, len(args))
	}
	switch message {
	case "retain":
		return f.retain(o).self
	case "release":
		f.release(o)
		return 0
	}
	name := o.class
	if o.class == "class" {
		name = o.text
	}
	method, ok := f.methods[name+" "+message]
	if !ok {
		f.Fatalf("%s has no method %s", name, message)
	}
	if text, ok := f.refuse[message]; ok {
		delete(f.refuse, message)
		if strings.HasSuffix(message, ":error:") {
			*(*id)(argument[unsafe.Pointer](arguments{f, message, args}, len(args)-1)) = f.failure(text)
		}
		return 0
	}
	return method(o, arguments{f, message, args})
}

// failure is an NSError.
func (f *fake) failure(text string) id {
	o := f.make("NSError")
	o.text = text
	return f.auto(o)
}

func (f *fake) float(to id, message string) float64 {
	if message != "GPUEndTime" {
		f.Fatalf("%s does not answer with a float", message)
	}
	return f.object(to, "MTLCommandBuffer").ended
}

func (f *fake) memory(to id, message string) unsafe.Pointer {
	if message != "contents" {
		f.Fatalf("%s does not answer with a pointer", message)
	}
	return unsafe.Pointer(unsafe.SliceData(f.object(to, "MTLBuffer").host))
}

func (f *fake) chars(to id, message string) string {
	if message != "UTF8String" {
		f.Fatalf("%s does not answer with characters", message)
	}
	return f.object(to, "NSString").text
}

func (f *fake) utf8(to id, message, text string) id {
	if to != f.class("NSString") || message != "stringWithUTF8String:" {
		f.Fatalf("%s does not take characters", message)
	}
	return f.string(text)
}

func (f *fake) string(text string) id {
	o := f.make("NSString")
	o.text = text
	return f.auto(o)
}

// buffer is a new MTLBuffer of which host and device have views at different addresses.
func (f *fake) buffer(size uintptr) *object {
	file, err := os.CreateTemp("", "windrow-buffer")
	if err != nil {
		f.Fatal(err)
	}
	defer file.Close()
	defer os.Remove(file.Name())
	if size == 0 {
		f.Fatal("a buffer of no bytes")
	}
	if err := file.Truncate(int64(size)); err != nil {
		f.Fatal(err)
	}
	o := f.make("MTLBuffer")
	o.mapped = true
	defer func() {
		for i := range o.host {
			o.host[i] = 0xff // undefined: not numbers
		}
	}()
	for _, view := range []*[]byte{&o.host, &o.device} {
		if *view, err = syscall.Mmap(int(file.Fd()), 0, int(size), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED); err != nil {
			f.Fatal(err)
		}
	}
	return o
}

// arguments are those of a message. What is asked for must be of the kind that the method declares.
type arguments struct {
	*fake
	message string
	list    []any
}

func argument[T any](a arguments, i int) T {
	a.Helper()
	v, ok := a.list[i].(T)
	if !ok {
		a.Fatalf("%s: argument %d is %v, a %v", a.message, i, a.list[i], reflect.TypeOf(a.list[i]))
	}
	return v
}

// count is an NSUInteger.
func (a arguments) count(i int) uintptr { return argument[uintptr](a, i) }

func (a arguments) object(i int, class string) *object {
	return a.fake.object(argument[id](a, i), class)
}

// bytes are at a pointer.
func (a arguments) bytes(i int, n uintptr) []byte {
	return unsafe.Slice((*byte)(argument[unsafe.Pointer](a, i)), n)
}

//go:build amd64 || arm64

package standin

import (
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"unsafe"

	"github.com/windrow-sim/windrow/kernels/cuda"
	"github.com/windrow-sim/windrow/kernels/metal"
)

type id = metal.ID

// Runtime is an Objective-C runtime (metal.Objects) with the objects of Metal that package metal
// uses, as Apple's documentation describes them. It is strict: an unknown message, arguments of
// another kind, a released object, and everything that Metal's validation layer would stop at end
// the program. Kernels run on the host, and only when a caller waits for them. Safe for concurrent
// use.
type Runtime struct {
	methods map[string]method // "class message"
	kernel  func(name string, arguments []byte, grid [3]int32, threads int) (trouble string)

	mutex   sync.Mutex
	alive   map[id]*object
	classes map[string]id
	last    id
	pools   map[int][]*object // by thread
	done    int               // command buffers that have run
	faults  map[string]*fault // by message
	calls   map[string]int    // by message
}

// fault makes a message return nothing, and an error with the text.
type fault struct {
	nth  int
	text string
	lose bool
}

// object is an object of any class; it has the fields that its class needs.
type object struct {
	self    id
	class   string
	count   int // references
	text    string
	members []*object // of a pool, or kept by a command buffer or encoder

	// Of a buffer.
	host, device []byte // two views of its memory, or one view of registered memory
	mapped       bool   // the views have a fence behind their end

	gpu
}

// Open gives the test a new runtime. At the end of the test, everything made in it must be
// released. The test is skipped where there is no C++ compiler.
func Open(t testing.TB) *Runtime {
	t.Helper()
	r := &Runtime{kernel: kernels(t)}
	r.methods = map[string]method{}
	for _, list := range []map[string]method{r.foundation(), r.making(), r.compiling(),
		r.queueing(), r.computing()} {
		maps.Copy(r.methods, list)
	}
	r.Forget()
	t.Cleanup(func() {
		if left := r.Left(); left != "" {
			t.Errorf("left on the device after the test: %s", left)
		}
	})
	return r
}

// Device returns a new MTLDevice, as MTLCreateSystemDefaultDevice does.
func (r *Runtime) Device() metal.ID {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.make("MTLDevice").self
}

// Driver opens a device, as OpenDriver of package metal does on a Mac.
func (r *Runtime) Driver() (cuda.Driver, error) { return metal.OpenOn(r, r.Device()) }

// Fail makes the nth next message of a name return nothing, and an error where the method has one.
// With lose every later one fails too. Execution counts command buffers.
func (r *Runtime) Fail(message string, nth int, text string, lose bool) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.faults[message] = &fault{nth, text, lose}
}

// Calls is how often a message was sent, and of Execution how many command buffers have run.
func (r *Runtime) Calls(message string) int {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.calls[message]
}

// Alive is how many objects of a class there are.
func (r *Runtime) Alive(class string) int {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	n := 0
	for _, o := range r.alive {
		if o.class == class {
			n++
		}
	}
	return n
}

// Left lists the objects that were made and not released; "" is none.
func (r *Runtime) Left() string {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	count := map[string]int{}
	for _, o := range r.alive {
		if o.class != "class" {
			count[o.class]++
		}
	}
	var left []string
	for _, class := range slices.Sorted(maps.Keys(count)) {
		left = append(left, fmt.Sprintf("%d %s", count[class], class))
	}
	return strings.Join(left, ", ")
}

// Forget gives the test a new runtime although something is left in the old one. It also removes
// faults and counts.
func (r *Runtime) Forget() {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.alive, r.classes, r.pools = map[id]*object{}, map[string]id{}, map[int][]*object{}
	r.faults, r.calls = map[string]*fault{}, map[string]int{}
}

// stop ends the program, as Metal's validation layer does.
func (r *Runtime) stop(format string, args ...any) {
	panic("standin: " + fmt.Sprintf(format,
		args...))
}

// failed counts a message and reports whether it must fail.
func (r *Runtime) failed(message string) (text string, failed bool) {
	r.calls[message]++
	f := r.faults[message]
	if f == nil {
		return "", false
	}
	if f.nth--; f.nth > 0 {
		return "", false
	}
	if !f.lose {
		delete(r.faults, message)
	}
	return f.text, true
}

// make returns a new object with one reference.
func (r *Runtime) make(class string) *object {
	r.last += 16
	o := &object{self: r.last, class: class, count: 1}
	r.alive[o.self] = o
	return o
}

// auto moves the one reference to the pool.
func (r *Runtime) auto(o *object) id {
	pools := r.pools[syscall.Gettid()]
	if len(pools) == 0 {
		r.stop("%s is made without a pool", o.class)
	}
	pool := pools[len(pools)-1]
	pool.members = append(pool.members, o)
	return o.self
}

func (r *Runtime) retain(o *object) *object {
	o.count++
	return o
}

func (r *Runtime) release(o *object) {
	if o.count--; o.count > 0 {
		return
	}
	if o.open {
		r.stop("%s is released without endEncoding", o.class)
	}
	for _, m := range o.members {
		r.release(m)
	}
	if o.mapped {
		for _, b := range o.host[len(o.host):cap(o.host)] {
			if b != fence {
				r.stop("a write beyond a buffer of %d bytes", len(o.host))
			}
		}
		for _, view := range [][]byte{o.host, o.device} {
			r.must(syscall.Munmap(view[:cap(view)]))
		}
	}
	delete(r.alive, o.self)
}

func (r *Runtime) object(at id, class string) *object {
	o := r.alive[at]
	if o == nil || class != "" && o.class != class {
		r.stop("object %d is not a %s that is alive: %+v", at, class, o)
	}
	return o
}

// Class implements metal.Objects, like all that follow.
func (r *Runtime) Class(name string) id {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.class(name)
}

func (r *Runtime) class(name string) id {
	if r.classes[name] == 0 {
		o := r.make("class")
		o.text = name
		r.classes[name] = o.self
	}
	return r.classes[name]
}

// Send runs the object's method for a message.
func (r *Runtime) Send(to id, message string, args ...any) id {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if to == 0 {
		return 0
	}
	o := r.object(to, "")
	if n := strings.Count(message, ":"); n != len(args) {
		r.stop("%s with %d arguments", message, len(args))
	}
	switch message {
	case "retain":
		return r.retain(o).self
	case "release":
		r.release(o)
		return 0
	}
	name := o.class
	if o.class == "class" {
		name = o.text
	}
	method, ok := r.methods[name+" "+message]
	if !ok {
		r.stop("%s has no method %s", name, message)
	}
	a := arguments{r, message, args}
	if text, failed := r.failed(message); failed {
		if strings.HasSuffix(message, ":error:") {
			*(*id)(argument[unsafe.Pointer](a, len(args)-1)) = r.failure(text)
		}
		return 0
	}
	return method(o, a)
}

// failure is an NSError.
func (r *Runtime) failure(text string) id {
	o := r.make("NSError")
	o.text = text
	return r.auto(o)
}

// Float is the end of a command buffer.
func (r *Runtime) Float(to id, message string) float64 {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if message != "GPUEndTime" {
		r.stop("%s does not answer with a float", message)
	}
	return r.object(to, "MTLCommandBuffer").ended
}

// Pointer is the memory of a buffer.
func (r *Runtime) Pointer(to id, message string) unsafe.Pointer {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if message != "contents" {
		r.stop("%s does not answer with a pointer", message)
	}
	return unsafe.Pointer(unsafe.SliceData(r.object(to, "MTLBuffer").host))
}

// Text returns the text of a string object.
func (r *Runtime) Text(to id, message string) string {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if message != "UTF8String" {
		r.stop("%s does not answer with characters", message)
	}
	return r.object(to, "NSString").text
}

// SendText makes a string.
func (r *Runtime) SendText(to id, message, text string) id {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if to != r.class("NSString") || message != "stringWithUTF8String:" {
		r.stop("%s does not take characters", message)
	}
	return r.string(text)
}

func (r *Runtime) string(text string) id {
	o := r.make("NSString")
	o.text = text
	return r.auto(o)
}

// fence fills the memory behind a buffer, up to the end of a page and one page more.
const fence = 0x55

// buffer is a new MTLBuffer of which host and device have views at different addresses.
func (r *Runtime) buffer(size uintptr) *object {
	if size == 0 {
		r.stop("a buffer of no bytes")
	}
	file, err := os.CreateTemp("", "windrow-buffer")
	r.must(err)
	defer file.Close()
	defer os.Remove(file.Name())
	page := uintptr(os.Getpagesize())
	whole := int((size+page-1)/page*page + page)
	r.must(file.Truncate(int64(whole)))
	o := r.make("MTLBuffer")
	o.mapped = true
	for _, view := range []*[]byte{&o.host, &o.device} {
		all, err := syscall.Mmap(int(file.Fd()), 0, whole, syscall.PROT_READ|syscall.PROT_WRITE,
			syscall.MAP_SHARED)
		r.must(err)
		*view = all[:size]
	}
	for i := range o.host {
		o.host[i] = 0xff // undefined: not numbers
	}
	behind := o.host[size:whole]
	for i := range behind {
		behind[i] = fence
	}
	return o
}

// must ends the program when this machine fails.
func (r *Runtime) must(err error) {
	if err != nil {
		r.stop("%v", err)
	}
}

// arguments are the arguments of a message. A method must read each as the kind that it declares.
type arguments struct {
	*Runtime
	message string
	list    []any
}

func argument[T any](a arguments, i int) T {
	v, ok := a.list[i].(T)
	if !ok {
		a.stop("%s: argument %d is %v, a %v", a.message, i, a.list[i], reflect.TypeOf(a.list[i]))
	}
	return v
}

// count is an NSUInteger.
func (a arguments) count(i int) uintptr { return argument[uintptr](a, i) }

func (a arguments) object(i int, class string) *object {
	return a.Runtime.object(argument[id](a, i), class)
}

// bytes are at a pointer.
func (a arguments) bytes(i int, n uintptr) []byte {
	return unsafe.Slice((*byte)(argument[unsafe.Pointer](a, i)), n)
}

// address is where memory lies.
func address(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }

//go:build arm64

package metal

import (
	"sync"
	"unsafe"

	"github.com/ebitengine/purego"
	"github.com/ebitengine/purego/objc"
	"github.com/windrow-sim/windrow/kernels/cuda"
)

// OpenDriver opens the system's default device. Where that is not Apple silicon with macOS 13 or newer the error is ErrEnvironment.
func OpenDriver() (cuda.Driver, error) {
	const folder = "/System/Library/Frameworks/"
	// A program that does not use Core Graphics has no default device.
	if _, err := purego.Dlopen(folder+"CoreGraphics.framework/CoreGraphics", purego.RTLD_NOW|purego.RTLD_GLOBAL); err != nil {
		return nil, environment("CoreGraphics cannot be loaded (%v)", err)
	}
	library, err := purego.Dlopen(folder+"Metal.framework/Metal", purego.RTLD_NOW|purego.RTLD_GLOBAL)
	if err != nil {
		return nil, environment("Metal cannot be loaded (%v)", err)
	}
	var create func() objc.ID
	purego.RegisterLibFunc(&create, library, "MTLCreateSystemDefaultDevice")
	d, err := newDriver(&native{selectors: map[string]objc.SEL{}, classes: map[string]id{}}, id(create()))
	if err != nil {
		return nil, err // not a driver that is nil
	}
	return d, nil
}

// native is the system's own runtime. It looks up names once each: that takes a lock of the whole runtime.
type native struct {
	mutex     sync.Mutex
	selectors map[string]objc.SEL
	classes   map[string]id
}

func (n *native) selector(name string) objc.SEL {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	s, ok := n.selectors[name]
	if !ok {
		s = objc.RegisterName(name)
		n.selectors[name] = s
	}
	return s
}

func (n *native) class(name string) id {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	c, ok := n.classes[name]
	if !ok {
		c = id(objc.GetClass(name))
		n.classes[name] = c
	}
	return c
}

func (n *native) send(to id, message string, args ...any) id {
	return id(objc.ID(to).Send(n.selector(message), args...))
}

func (n *native) float(to id, message string) float64 {
	return objc.Send[float64](objc.ID(to), n.selector(message))
}

func (n *native) memory(to id, message string) unsafe.Pointer {
	return objc.Send[unsafe.Pointer](objc.ID(to), n.selector(message))
}

func (n *native) chars(to id, message string) string {
	return objc.Send[string](objc.ID(to), n.selector(message))
}

func (n *native) utf8(to id, message, text string) id {
	return n.send(to, message, text)
}

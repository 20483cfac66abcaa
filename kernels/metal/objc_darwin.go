//go:build arm64

package metal

import (
	"sync"
	"unsafe"

	"github.com/ebitengine/purego"
	"github.com/ebitengine/purego/objc"
	"github.com/windrow-sim/windrow/kernels/cuda"
)

// OpenDriver opens the system's default device. Where that is not Apple silicon with macOS 13 or
// newer the error is ErrEnvironment.
func OpenDriver() (cuda.Driver, error) {
	const folder = "/System/Library/Frameworks/"
	// A program that does not use Core Graphics has no default device.
	if _, err := purego.Dlopen(folder+"CoreGraphics.framework/CoreGraphics",
		purego.RTLD_NOW|purego.RTLD_GLOBAL); err != nil {
		return nil, environment("CoreGraphics cannot be loaded (%v)", err)
	}
	library, err := purego.Dlopen(folder+"Metal.framework/Metal",
		purego.RTLD_NOW|purego.RTLD_GLOBAL)
	if err != nil {
		return nil, environment("Metal cannot be loaded (%v)", err)
	}
	var create func() objc.ID
	purego.RegisterLibFunc(&create, library, "MTLCreateSystemDefaultDevice")
	return OpenOn(&native{selectors: map[string]objc.SEL{}, classes: map[string]ID{}}, ID(create()))
}

// native is the system's own runtime. It looks up each name once: a look-up locks the whole
// runtime.
type native struct {
	mutex     sync.Mutex
	selectors map[string]objc.SEL
	classes   map[string]ID
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

func (n *native) Class(name string) ID {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	c, ok := n.classes[name]
	if !ok {
		c = ID(objc.GetClass(name))
		n.classes[name] = c
	}
	return c
}

func (n *native) Send(to ID, message string, args ...any) ID {
	return ID(objc.ID(to).Send(n.selector(message), args...))
}

func (n *native) Float(to ID, message string) float64 {
	return objc.Send[float64](objc.ID(to), n.selector(message))
}

func (n *native) Pointer(to ID, message string) unsafe.Pointer {
	return objc.Send[unsafe.Pointer](objc.ID(to), n.selector(message))
}

func (n *native) Text(to ID, message string) string {
	return objc.Send[string](objc.ID(to), n.selector(message))
}

func (n *native) SendText(to ID, message, text string) ID {
	return n.Send(to, message, text)
}

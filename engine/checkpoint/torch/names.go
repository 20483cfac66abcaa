package torch

import (
	"fmt"
	"strings"

	"github.com/windrow-sim/windrow/engine/checkpoint/internal/tensor"
)

// name is a thing of Python that a pickle refers to, as "module name".
type name string

// The names that may be called.
const (
	orderedDict      name = "collections OrderedDict"
	rebuildTensor    name = "torch._utils _rebuild_tensor_v2"
	rebuildParameter name = "torch._utils _rebuild_parameter"
)

// storageType is the element type of a class of storages, "" for any other name.
func storageType(n name) tensor.DType {
	switch n {
	case "torch FloatStorage":
		return tensor.F32
	case "torch HalfStorage":
		return tensor.F16
	case "torch BFloat16Storage":
		return tensor.BF16
	case "torch DoubleStorage":
		return "F64"
	case "torch LongStorage":
		return "I64"
	case "torch IntStorage":
		return "I32"
	case "torch ShortStorage":
		return "I16"
	case "torch CharStorage":
		return "I8"
	case "torch ByteStorage":
		return tensor.U8
	case "torch BoolStorage":
		return "BOOL"
	}
	return ""
}

// allowed refuses every name but those above.
func allowed(n name) error {
	switch {
	case n == orderedDict, n == rebuildTensor, n == rebuildParameter, storageType(n) != "":
		return nil
	}
	module, thing, _ := strings.Cut(string(n), " ")
	hint := "save the state dict of the model alone"
	if strings.HasPrefix(module, "torch") {
		hint = "save the state dict alone, with contiguous tensors of a plain type; safetensors " +
			"holds the rest"
	}
	return fmt.Errorf("%w: the pickle asks for %q, which is not part of a dictionary of plain "+
		"tensors and was not run; %s",
		errUnsupported, tensor.Clip(module+"."+thing), hint)
}

// call carries out REDUCE.
func (m *machine) call(callee, args any) (any, error) {
	n, _ := callee.(name)
	list, ok := args.(tuple)
	if !ok {
		return nil, fmt.Errorf("%w: arguments are %s", errFormat, kind(args))
	}
	switch {
	case n == orderedDict && len(list) == 0:
		return m.newDict(true)
	case n == rebuildTensor && (len(list) == 6 || len(list) == 7):
		return m.rebuildTensor(list)
	case n == rebuildParameter && len(list) == 3:
		if v, ok := list[0].(*view); ok {
			return v, nil
		}
		return nil, fmt.Errorf("%w: a parameter made of %s", errFormat, kind(list[0]))
	case n == "":
		return nil, fmt.Errorf("%w: %s is called", errFormat, kind(callee))
	}
	return nil, fmt.Errorf("%w: %q with %d arguments", errUnsupported, tensor.Clip(string(n)),
		len(list))
}

// storages is the folder of the storages in the archive.
const storages = "data/"

// The memory of a storage and a view; a storage's includes the shape that its size is computed
// from.
const (
	storageMemory = 32 + 16
	viewMemory    = 80
)

// load resolves a persistent id: ('storage', class, key, location, number of elements).
func (m *machine) load(id any) (any, error) {
	t, ok := id.(tuple)
	if !ok || len(t) != 5 || t[0] != "storage" {
		return nil, fmt.Errorf("%w: a persistent id that is not ('storage', class, key, "+
			"location, elements)", errFormat)
	}
	class, _ := t[1].(name)
	key, isText := t[2].(string)
	n, isInt := t[4].(int64)
	dtype := storageType(class)
	if dtype == "" || !isText || !isInt || n < 0 {
		return nil, fmt.Errorf("%w: a storage of class %s, key %s, elements %s", errFormat,
			kind(t[1]), kind(t[2]), kind(t[4]))
	}
	e := m.archive.find(storages, key)
	if e == nil {
		return nil, m.archive.missing(storages, key)
	}
	if s := e.storage; s != nil {
		if s.dtype != dtype || s.elements != n {
			return nil, fmt.Errorf("%w: storage %q is %d %s and %d %s", errFormat, tensor.Clip(key),
				s.elements, s.dtype, n, dtype)
		}
		return s, nil
	}
	size, err := tensor.ByteSize(dtype, []int64{n})
	if err == nil {
		err = m.budget.spend(storageMemory)
	}
	if err != nil {
		return nil, err
	}
	at, err := m.archive.locate(e)
	if err == nil && e.size != size {
		err = fmt.Errorf("%w: storage %q has %d bytes, the pickle says %d", errFormat,
			tensor.Clip(key), e.size, size)
	}
	if err != nil {
		return nil, err
	}
	e.storage = &storage{dtype: dtype, elements: n, offset: at}
	return e.storage, nil
}

// rebuildTensor takes storage, offset, shape, strides, requires_grad, hooks and, in some versions,
// metadata.
func (m *machine) rebuildTensor(args tuple) (any, error) {
	s, ok := args[0].(*storage)
	if !ok {
		return nil, fmt.Errorf("%w: a tensor made of %s", errFormat, kind(args[0]))
	}
	offset, ok := args[1].(int64)
	shape, okShape, err := m.ints(args[2])
	if err != nil {
		return nil, err
	}
	strides, okStrides, err := m.ints(args[3])
	if err == nil {
		err = m.budget.spend(viewMemory)
	}
	if err != nil {
		return nil, err
	}
	if !ok || !okShape || !okStrides {
		return nil, fmt.Errorf("%w: a tensor with offset %s, shape %s, strides %s", errFormat,
			kind(args[1]), kind(args[2]), kind(args[3]))
	}
	return newView(s, offset, shape, strides)
}

// maxRank is PyTorch's own limit.
const maxRank = 64

// ints returns the integers of a tuple, and whether it is one.
func (m *machine) ints(v any) ([]int64, bool, error) {
	t, ok := v.(tuple)
	if len(t) > maxRank {
		return nil, false, fmt.Errorf("%w: a tensor with %d dimensions; at most %d are possible",
			errFormat, len(t), maxRank)
	}
	if err := m.budget.spend(int64(len(t)) * numberMemory); err != nil {
		return nil, false, err
	}
	list := make([]int64, len(t))
	for i, x := range t {
		n, isInt := x.(int64)
		ok = ok && isInt
		list[i] = n
	}
	return list, ok, nil
}

// build applies the attributes of an object. Only an ordered dictionary may have them: a module's
// has _metadata, which no tensor needs.
func build(object, state any) error {
	d, ok := object.(*dict)
	if _, isDict := state.(*dict); !ok || !d.ordered || !isDict {
		return fmt.Errorf("%w: attributes (%s) of %s", errUnsupported, kind(state), kind(object))
	}
	return nil
}

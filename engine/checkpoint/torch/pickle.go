package torch

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/windrow-sim/windrow/engine/checkpoint/internal/tensor"
)

// Limits of the machine. A tensor of a state dict costs about 35 opcodes and 150 bytes, so these admit 60,000 tensors in
// one file; the largest public models have a few thousand.
const (
	maxPickle = 16 << 20
	maxOps    = 1 << 21
	maxStack  = 1 << 16
	maxMemo   = 1 << 20
)

// The opcodes of protocol 2 that torch.save emits for dictionaries of tensors, numbers and text, by their names in pickletools.
const (
	opMark       = '('
	opStop       = '.'
	opPop        = '0'
	opBinFloat   = 'G'
	opBinInt     = 'J'
	opBinInt1    = 'K'
	opBinInt2    = 'M'
	opNone       = 'N'
	opBinPersID  = 'Q'
	opReduce     = 'R'
	opBinUnicode = 'X'
	opAppend     = 'a'
	opBuild      = 'b'
	opGlobal     = 'c'
	opAppends    = 'e'
	opBinGet     = 'h'
	opLongBinGet = 'j'
	opBinPut     = 'q'
	opLongBinPut = 'r'
	opSetItem    = 's'
	opTuple      = 't'
	opSetItems   = 'u'
	opEmptyTuple = ')'
	opEmptyList  = ']'
	opEmptyDict  = '}'
	opProto      = 0x80
	opTuple1     = 0x85
	opTuple2     = 0x86
	opTuple3     = 0x87
	opNewTrue    = 0x88
	opNewFalse   = 0x89
	opLong1      = 0x8A
)

// The values of the machine, besides name, *storage, *view, string, int64, float64, bool and nil. No code here follows
// a value into its parts without end, because a value may contain itself.
type (
	tuple []any
	list  struct{} // its items are of no use here
	mark  struct{} // on the stack only
	dict  struct { // with text keys
		ordered bool
		keys    []string
		values  map[string]any
	}
)

// machine runs one pickle.
type machine struct {
	code     []byte
	at       int
	stack    []any
	memo     map[uint32]any
	storages map[string]*storage
	// place finds the bytes of a storage of the given key and size in the file.
	place func(key string, size int64) (int64, error)
}

// run executes the whole pickle and returns the value it builds.
func (m *machine) run() (any, error) {
	m.memo, m.storages = map[uint32]any{}, map[string]*storage{}
	if len(m.code) < 2 || m.code[0] != opProto || m.code[1] != 2 {
		return nil, fmt.Errorf("%w: not a pickle of protocol 2; save it with torch.save's default pickle_protocol", errUnsupported)
	}
	m.at = 2
	for range maxOps {
		start := m.at
		op, err := m.take(1)
		if err == nil && op[0] == opStop {
			return m.end()
		}
		if err == nil {
			err = m.step(op[0])
		}
		if err == nil && (len(m.stack) > maxStack || len(m.memo) > maxMemo) {
			err = fmt.Errorf("%w: stack or memo beyond the limits of %d and %d", errFormat, maxStack, maxMemo)
		}
		if err != nil {
			return nil, fmt.Errorf("pickle byte %d: %w", start, err)
		}
	}
	return nil, fmt.Errorf("%w: pickle with more than %d operations", errFormat, maxOps)
}

func (m *machine) end() (any, error) {
	if len(m.stack) != 1 || m.at != len(m.code) {
		return nil, fmt.Errorf("%w: the pickle ends with %d values and %d bytes left", errFormat, len(m.stack), len(m.code)-m.at)
	}
	if _, isMark := m.stack[0].(mark); isMark {
		return nil, fmt.Errorf("%w: the pickle ends with a mark", errFormat)
	}
	return m.stack[0], nil
}

// take returns the next n bytes of code.
func (m *machine) take(n uint64) ([]byte, error) {
	if left := len(m.code) - m.at; n > uint64(left) {
		return nil, fmt.Errorf("%w: %d bytes are needed, the pickle has %d left", errFormat, n, left)
	}
	p := m.code[m.at:][:n]
	m.at += int(n)
	return p, nil
}

// number reads an unsigned number of n bytes, little-endian.
func (m *machine) number(n uint64) (uint64, error) {
	p, err := m.take(n)
	if err != nil {
		return 0, err
	}
	var word [8]byte
	copy(word[:], p)
	return binary.LittleEndian.Uint64(word[:]), nil
}

// line reads up to a line feed.
func (m *machine) line() (string, error) {
	const most = 1024 // longer than any name
	text, _, found := strings.Cut(string(m.code[m.at:min(len(m.code), m.at+most)]), "\n")
	if !found {
		return "", fmt.Errorf("%w: a name without end", errFormat)
	}
	m.at += len(text) + 1
	return text, nil
}

func (m *machine) push(v any) { m.stack = append(m.stack, v) }

// pop takes the top value; a mark is not one.
func (m *machine) pop() (any, error) {
	n := len(m.stack)
	if n == 0 || m.stack[n-1] == any(mark{}) {
		return nil, fmt.Errorf("%w: nothing on the stack", errFormat)
	}
	v := m.stack[n-1]
	m.stack = m.stack[:n-1]
	return v, nil
}

// popMark takes what lies above the last mark, and the mark. The caller must not keep it.
func (m *machine) popMark() ([]any, error) {
	for i := len(m.stack) - 1; i >= 0; i-- {
		if m.stack[i] == any(mark{}) {
			items := m.stack[i+1:]
			m.stack = m.stack[:i]
			return items, nil
		}
	}
	return nil, fmt.Errorf("%w: no mark on the stack", errFormat)
}

// step executes one opcode other than STOP: here those that make simple values, the others in combine.
func (m *machine) step(op byte) (err error) {
	var n uint64
	switch op {
	case opMark:
		m.push(mark{})
	case opNone:
		m.push(nil)
	case opNewTrue, opNewFalse:
		m.push(op == opNewTrue)
	case opEmptyTuple:
		m.push(tuple{})
	case opEmptyList:
		m.push(&list{})
	case opEmptyDict:
		m.push(&dict{})
	case opBinInt1:
		n, err = m.number(1)
		m.push(int64(n))
	case opBinInt2:
		n, err = m.number(2)
		m.push(int64(n))
	case opBinInt:
		n, err = m.number(4)
		m.push(int64(int32(n)))
	case opLong1:
		return m.long()
	case opBinFloat:
		var p []byte
		if p, err = m.take(8); err == nil {
			m.push(math.Float64frombits(binary.BigEndian.Uint64(p)))
		}
	case opBinUnicode:
		return m.text()
	case opGlobal:
		return m.global()
	default:
		return m.combine(op)
	}
	return err
}

// long reads a signed number of at most 8 bytes.
func (m *machine) long() error {
	n, err := m.number(1)
	if err == nil && n > 8 {
		err = fmt.Errorf("%w: a number of %d bytes", errUnsupported, n)
	}
	if err != nil {
		return err
	}
	v, err := m.number(n)
	shift := 64 - 8*n
	m.push(int64(v<<shift) >> shift) // the top bit is the sign; a shift by 64 gives the 0 that no bytes mean
	return err
}

func (m *machine) text() error {
	n, err := m.number(4)
	if err != nil {
		return err
	}
	p, err := m.take(n)
	if err == nil && !utf8.Valid(p) {
		err = fmt.Errorf("%w: text that is not UTF-8", errFormat)
	}
	m.push(string(p))
	return err
}

func (m *machine) global() error {
	module, err := m.line()
	if err != nil {
		return err
	}
	thing, err := m.line()
	if err != nil {
		return err
	}
	n := name(module + " " + thing)
	m.push(n)
	return allowed(n)
}

// combine executes the opcodes that work on values of the stack and the memo.
func (m *machine) combine(op byte) error {
	switch op {
	case opPop:
		_, err := m.pop()
		return err
	case opBinPut:
		return m.put(1)
	case opLongBinPut:
		return m.put(4)
	case opBinGet:
		return m.get(1)
	case opLongBinGet:
		return m.get(4)
	case opTuple1, opTuple2, opTuple3:
		return m.tupleOf(int(op-opTuple1) + 1)
	case opTuple:
		items, err := m.popMark()
		m.push(append(tuple{}, items...))
		return err
	case opAppend:
		return m.extend(1, false)
	case opAppends:
		return m.extend(0, false)
	case opSetItem:
		return m.extend(2, true)
	case opSetItems:
		return m.extend(0, true)
	case opReduce:
		return m.binary(m.call)
	case opBuild:
		return m.binary(func(object, state any) (any, error) { return object, build(object, state) })
	case opBinPersID:
		id, err := m.pop()
		if err != nil {
			return err
		}
		v, err := m.load(id)
		m.push(v)
		return err
	}
	return fmt.Errorf("%w: opcode %#02x, which no dictionary of tensors needs", errUnsupported, op)
}

// put stores the top value in the memo; its index has the given number of bytes.
func (m *machine) put(size uint64) error {
	n, err := m.number(size)
	if err != nil {
		return err
	}
	v, err := m.pop()
	m.push(v)
	m.memo[uint32(n)] = v
	return err
}

func (m *machine) get(size uint64) error {
	n, err := m.number(size)
	if err != nil {
		return err
	}
	v, ok := m.memo[uint32(n)]
	if !ok {
		return fmt.Errorf("%w: memo %d is empty", errFormat, n)
	}
	m.push(v)
	return nil
}

// tupleOf makes a tuple of the n top values.
func (m *machine) tupleOf(n int) error {
	t := make(tuple, n)
	for i := n - 1; i >= 0; i-- {
		v, err := m.pop()
		if err != nil {
			return err
		}
		t[i] = v
	}
	m.push(t)
	return nil
}

// binary replaces the two top values by one.
func (m *machine) binary(f func(a, b any) (any, error)) error {
	b, err := m.pop()
	if err != nil {
		return err
	}
	a, err := m.pop()
	if err != nil {
		return err
	}
	v, err := f(a, b)
	m.push(v)
	return err
}

// extend adds the n top values, or all above the mark for 0, to the list or dictionary below them.
func (m *machine) extend(n int, pairs bool) error {
	var items []any
	if n == 0 {
		var err error
		if items, err = m.popMark(); err != nil {
			return err
		}
	} else {
		for range n {
			v, err := m.pop()
			if err != nil {
				return err
			}
			items = append([]any{v}, items...)
		}
	}
	target, err := m.pop()
	if err != nil {
		return err
	}
	switch t := target.(type) {
	case *dict:
		if pairs {
			err = t.set(items)
			break
		}
		err = fmt.Errorf("%w: append to %s", errFormat, kind(target))
	case *list:
		if pairs {
			err = fmt.Errorf("%w: keys for %s", errFormat, kind(target))
		}
	default:
		err = fmt.Errorf("%w: items for %s", errFormat, kind(target))
	}
	m.push(target)
	return err
}

// set adds pairs of key and value. Python would keep the last of two values under one key, other readers the first.
func (d *dict) set(items []any) error {
	if len(items)%2 != 0 {
		return fmt.Errorf("%w: a key without a value", errFormat)
	}
	for ; len(items) > 0; items = items[2:] {
		key, ok := items[0].(string)
		if !ok {
			return fmt.Errorf("%w: a dictionary with a key that is %s, not text; save the state dict of the model alone", errUnsupported, kind(items[0]))
		}
		if _, twice := d.values[key]; twice {
			return fmt.Errorf("%w: the name %q occurs twice", errFormat, tensor.Clip(key))
		}
		if d.values == nil {
			d.values = map[string]any{}
		}
		d.values[key] = items[1]
		d.keys = append(d.keys, key)
	}
	return nil
}

// kind describes a value without its contents, which may be large or contain itself.
func kind(v any) string {
	switch v := v.(type) {
	case nil:
		return "None"
	case bool:
		return "a truth value"
	case int64:
		return fmt.Sprintf("the number %d", v)
	case float64:
		return "a number"
	case string:
		return fmt.Sprintf("the text %q", tensor.Clip(v))
	case name:
		return fmt.Sprintf("the name %q", tensor.Clip(string(v)))
	case tuple:
		return "a tuple"
	case *list:
		return "a list"
	case *dict:
		return "a dictionary"
	case *storage:
		return "a storage"
	case *view:
		return "a tensor"
	}
	return "a mark"
}

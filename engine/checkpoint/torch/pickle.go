package torch

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"
	"unicode/utf8"
)

// Limits of the machine. A tensor of a state dict costs about 35 opcodes and 150 bytes, so these
// admit 60,000 tensors in one file; the largest public models have a few thousand.
const (
	maxPickle = 16 << 20
	maxOps    = 1 << 21
	maxStack  = 1 << 16
	maxMemo   = 1 << 20
)

// The opcodes of protocol 2 that torch.save emits for dictionaries of tensors, numbers and text, by
// their names in pickletools.
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

// memoChunk is the number of memo values that are allocated at once: torch.save numbers them from
// 0, and a chunk that is never moved costs half of a list that grows.
const memoChunk = 64

// machine runs one pickle. Everything that an opcode allocates is charged to the budget.
type machine struct {
	code    string
	budget  *budget
	archive *archive // of the storages
	at      int
	stack   []any
	memo    []*[memoChunk]any // nil where nothing is stored
	dicts   *dict             // the last dictionary made
}

// run executes the whole pickle and returns the value it builds.
func (m *machine) run() (any, error) {
	if len(m.code) < 2 || m.code[0] != opProto || m.code[1] != 2 {
		return nil, fmt.Errorf("%w: not a pickle of protocol 2; save it with torch.save's "+
			"default pickle_protocol", errUnsupported)
	}
	m.at = 2
	for range maxOps {
		start := m.at
		op, err := m.take(1)
		if err == nil && op[0] == opStop {
			return m.end()
		}
		if err == nil {
			err = m.reserve()
		}
		if err == nil {
			err = m.step(op[0])
		}
		if err != nil {
			return nil, fmt.Errorf("pickle byte %d: %w", start, err)
		}
	}
	return nil, fmt.Errorf("%w: pickle with more than %d operations", errFormat, maxOps)
}

func (m *machine) end() (any, error) {
	if len(m.stack) != 1 || m.at != len(m.code) {
		return nil, fmt.Errorf("%w: the pickle ends with %d values and %d bytes left", errFormat,
			len(m.stack), len(m.code)-m.at)
	}
	if _, isMark := m.stack[0].(mark); isMark {
		return nil, fmt.Errorf("%w: the pickle ends with a mark", errFormat)
	}
	for d := m.dicts; d != nil; d = d.next {
		if err := d.sort(); err != nil {
			return nil, err
		}
	}
	return m.stack[0], nil
}

// reserve makes room for the one value that an opcode may add to the stack.
func (m *machine) reserve() error {
	n := len(m.stack)
	switch {
	case n < cap(m.stack):
		return nil
	case n >= maxStack:
		return fmt.Errorf("%w: the stack is beyond its limit of %d values", errFormat, maxStack)
	}
	const first = 32
	more := max(first, 2*n)
	if err := m.budget.spend(int64(more) * interfaceMemory); err != nil {
		return err
	}
	m.stack = append(make([]any, 0, more), m.stack...)
	return nil
}

// take returns the next n bytes of code.
func (m *machine) take(n uint64) (string, error) {
	if left := len(m.code) - m.at; n > uint64(left) {
		return "", fmt.Errorf("%w: %d bytes are needed, the pickle has %d left", errFormat, n, left)
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
	text, _, found := strings.Cut(m.code[m.at:min(len(m.code), m.at+most)], "\n")
	if !found {
		return "", fmt.Errorf("%w: a name without end", errFormat)
	}
	m.at += len(text) + 1
	return text, nil
}

// push needs the room that reserve has made or that pop has left.
func (m *machine) push(v any) { m.stack = append(m.stack, v) }

// pushInt pushes a number unless reading it failed.
func (m *machine) pushInt(n int64, err error) error {
	if err == nil {
		err = m.budget.spend(numberMemory)
	}
	if err == nil {
		m.push(n)
	}
	return err
}

// pop takes the top value, unless it is a mark.
func (m *machine) pop() (any, error) {
	n := len(m.stack)
	if n == 0 || m.stack[n-1] == any(mark{}) {
		return nil, fmt.Errorf("%w: nothing on the stack", errFormat)
	}
	v := m.stack[n-1]
	m.stack = m.stack[:n-1]
	return v, nil
}

// popN takes the n top values, none of which may be a mark. The caller must not keep the slice.
func (m *machine) popN(n int) ([]any, error) {
	from := len(m.stack) - n
	if from < 0 || slices.Contains(m.stack[from:], any(mark{})) {
		return nil, fmt.Errorf("%w: nothing on the stack", errFormat)
	}
	items := m.stack[from:]
	m.stack = m.stack[:from]
	return items, nil
}

// popMark takes the values above the last mark, and the mark. The caller must not keep them.
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

// step executes one opcode other than STOP: simple values here, the others in combine.
func (m *machine) step(op byte) error {
	switch op {
	case opMark:
		m.push(mark{})
	case opNone:
		m.push(none{})
	case opNewTrue, opNewFalse:
		m.push(op == opNewTrue)
	case opEmptyTuple:
		m.push(tuple(nil))
	case opEmptyList:
		m.push(&list{})
	case opEmptyDict:
		d, err := m.newDict(false)
		m.push(d)
		return err
	case opBinInt1:
		n, err := m.number(1)
		return m.pushInt(int64(n), err)
	case opBinInt2:
		n, err := m.number(2)
		return m.pushInt(int64(n), err)
	case opBinInt:
		n, err := m.number(4)
		return m.pushInt(int64(int32(n)), err)
	case opLong1:
		return m.long()
	case opBinFloat:
		n, err := m.number(8)
		if err == nil {
			err = m.budget.spend(numberMemory)
		}
		m.push(math.Float64frombits(bits.ReverseBytes64(n))) // the only big-endian number
		return err
	case opBinUnicode:
		return m.text()
	case opGlobal:
		return m.global()
	default:
		return m.combine(op)
	}
	return nil
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
	// the top bit is the sign; without bytes, a shift by 64 gives 0
	return m.pushInt(int64(v<<shift)>>shift, err)
}

func (m *machine) text() error {
	n, err := m.number(4)
	if err != nil {
		return err
	}
	p, err := m.take(n)
	if err == nil && !utf8.ValidString(p) {
		err = fmt.Errorf("%w: text that is not UTF-8", errFormat)
	}
	if err == nil {
		err = m.budget.spend(textMemory)
	}
	m.push(p)
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
	if err = allowed(n); err == nil {
		err = m.budget.spend(int64(len(n)))
	}
	if err == nil {
		err = m.budget.spend(textMemory)
	}
	m.push(n)
	return err
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
		items, err := m.popN(int(op-opTuple1) + 1)
		if err != nil {
			return err
		}
		return m.tupleOf(items)
	case opTuple:
		items, err := m.popMark()
		if err != nil {
			return err
		}
		return m.tupleOf(items)
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
		return m.binary(func(object, state any) (any, error) {
			return object,
				build(object, state)
		})
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
	if err != nil {
		return err
	}
	chunk := int(n / memoChunk)
	if n >= maxMemo {
		return fmt.Errorf("%w: memo %d is beyond the limit of %d", errFormat, n, maxMemo)
	}
	if chunk >= len(m.memo) {
		more := max(chunk+1, 2*len(m.memo))
		if err := m.budget.spend(int64(more) * pointerMemory); err != nil {
			return err
		}
		m.memo = append(make([]*[memoChunk]any, 0, more), m.memo...)[:more]
	}
	if m.memo[chunk] == nil {
		if err := m.budget.spend(memoChunk * interfaceMemory); err != nil {
			return err
		}
		m.memo[chunk] = new([memoChunk]any)
	}
	m.memo[chunk][n%memoChunk] = v
	return nil
}

func (m *machine) get(size uint64) error {
	n, err := m.number(size)
	if err != nil {
		return err
	}
	var v any
	if chunk := n / memoChunk; chunk < uint64(len(m.memo)) && m.memo[chunk] != nil {
		v = m.memo[chunk][n%memoChunk]
	}
	if v == nil {
		return fmt.Errorf("%w: memo %d is empty", errFormat, n)
	}
	m.push(v)
	return nil
}

// tupleOf pushes a tuple of values that were on the stack.
func (m *machine) tupleOf(items []any) error {
	if err := m.budget.spend(tupleMemory); err != nil {
		return err
	}
	if err := m.budget.spend(int64(len(items)) * interfaceMemory); err != nil {
		return err
	}
	m.push(append(make(tuple, 0, len(items)), items...))
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
	var err error
	if n == 0 {
		items, err = m.popMark()
	} else {
		items, err = m.popN(n)
	}
	if err != nil {
		return err
	}
	target, err := m.pop()
	if err != nil {
		return err
	}
	switch t := target.(type) {
	case *dict:
		if pairs {
			err = m.set(t, items)
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

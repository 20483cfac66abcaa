package torch

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestNothingButTensorsIsCalled(t *testing.T) {
	for name, c := range map[string]struct {
		pickle string
		kind   error
		want   string
	}{
		"system":          {newPickle().op("cos\nsystem\n").text("echo").op("\x85R.").String(), errUnsupported, `"os.system", which is not part of a dictionary of plain tensors and was not run`},
		"posix":           {"\x80\x02cposix\nsystem\n.", errUnsupported, `"posix.system"`},
		"builtins":        {"\x80\x02c__builtin__\neval\n.", errUnsupported, `"__builtin__.eval"`},
		"near the names":  {"\x80\x02ctorch._utils\n_rebuild_tensor\n.", errUnsupported, `"torch._utils._rebuild_tensor"`},
		"case":            {"\x80\x02ccollections\norderedDict\n.", errUnsupported, `"collections.orderedDict"`},
		"a line feed":     {"\x80\x02ccollections OrderedDict\n\n.", errUnsupported, "collections.OrderedDict "},
		"an attribute":    {"\x80\x02ccollections\nOrderedDict.__class__\n.", errUnsupported, "OrderedDict.__class__"},
		"inst":            {"\x80\x02(ios\nsystem\n.", errUnsupported, "opcode 0x69"},
		"obj":             {"\x80\x02(o.", errUnsupported, "opcode 0x6f"},
		"newobj":          {"\x80\x02)\x81.", errUnsupported, "opcode 0x81"},
		"stack global":    {newPickle().text("os").text("system").op("\x93.").String(), errUnsupported, "opcode 0x93"},
		"extension":       {"\x80\x02\x82\x01.", errUnsupported, "opcode 0x82"},
		"text persistent": {"\x80\x02Pos\n.", errUnsupported, "opcode 0x50"},
		"call text":       {newPickle().text("os").op(")R.").String(), errFormat, `the text "os" is called`},
		"call a tensor":   {"\x80\x02ctorch\nHalfStorage\n)R.", errUnsupported, "torch HalfStorage"},
		"dict of pairs":   {"\x80\x02ccollections\nOrderedDict\n]\x85R.", errUnsupported, "with 1 arguments"},
		"state of a list": {"\x80\x02]}b.", errUnsupported, "attributes"},
		"state is text":   {newPickle().op("ccollections\nOrderedDict\n)R").text("x").op("b.").String(), errUnsupported, "attributes"},
		"state of a dict": {"\x80\x02}}b.", errUnsupported, "attributes"},
		"parameter":       {"\x80\x02ctorch._utils\n_rebuild_parameter\nN\x88}\x87R.", errFormat, "a parameter made of None"},
		"persistent id":   {newPickle().text("storage").op("Q.").String(), errFormat, "a persistent id"},
		"storage key":     {newPickle().op("(").text("storage").op("ctorch\nHalfStorage\nNNK\x01tQ.").String(), errFormat, "key None"},
		"storage class":   {newPickle().op("(").text("storage").op("ccollections\nOrderedDict\n").text("0").op("NK\x01tQ.").String(), errFormat, "class the name"},
		"tensor of text":  {newPickle().op("ctorch._utils\n_rebuild_tensor_v2\n(").text("x").op("NNNNNtR.").String(), errFormat, "a tensor made of"},
		"tensor of six":   {"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n)R.", errUnsupported, "with 0 arguments"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := openBytes(archived(t, c.pickle))
			refused(t, err, c.kind, c.want)
		})
	}
}

func TestRefusesBrokenPickles(t *testing.T) {
	for name, c := range map[string]struct{ pickle, want string }{
		"nothing":          {"\x80\x02", "1 bytes are needed, the pickle has 0 left"},
		"no stop":          {"\x80\x02}", "0 left"},
		"text behind":      {"\x80\x02}.x", "1 bytes left"},
		"two values":       {"\x80\x02}}.", "2 values"},
		"no value":         {"\x80\x02.", "0 values"},
		"a mark":           {"\x80\x02(.", "ends with a mark"},
		"empty memo":       {"\x80\x02h\x00.", "memo 0 is empty"},
		"empty stack":      {"\x80\x02q\x00.", "nothing on the stack"},
		"pop":              {"\x80\x020.", "nothing on the stack"},
		"reduce":           {"\x80\x02)R.", "nothing on the stack"},
		"tuple of nothing": {"\x80\x02\x85.", "nothing on the stack"},
		"no mark":          {"\x80\x02}u.", "no mark"},
		"no dictionary":    {"\x80\x02(u.", "nothing on the stack"},
		"odd items":        {"\x80\x02}(Nu.", "a key without a value"},
		"items for None":   {"\x80\x02N(NNu.", "items for None"},
		"keys for a list":  {"\x80\x02](NNu.", "keys for a list"},
		"append to a dict": {"\x80\x02}Na.", "append to a dictionary"},
		"name without end": {"\x80\x02cos" + strings.Repeat("x", 2000), "a name without end"},
		"not UTF-8":        {"\x80\x02X\x01\x00\x00\x00\xff.", "UTF-8"},
		"arguments":        {"\x80\x02ccollections\nOrderedDict\nNR.", "arguments are None"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := openBytes(archived(t, c.pickle))
			refused(t, err, errFormat, c.want, "pickle")
		})
	}
	_, err := openBytes(archived(t, "\x80\x02}N}s."))
	refused(t, err, errUnsupported, "a key that is None")
	_, err = openBytes(archived(t, "\x80\x02\x8a\x09123456789."))
	refused(t, err, errUnsupported, "a number of 9 bytes")
}

// TestBombsStaySmall runs pickles that would fill the memory or the stack of a reader that follows them.
func TestBombsStaySmall(t *testing.T) {
	doubling := newPickle().op("]q\x00")
	for i := range 200 { // a list of the list before, twice: 2^200 leaves
		doubling.op("]h").op(string([]byte{byte(i)})).op("ah").op(string([]byte{byte(i)})).op("aq").op(string([]byte{byte(i + 1)}))
	}
	for name, c := range map[string]struct {
		pickle string
		want   string
	}{
		"nested tuples":  {"\x80\x02N" + strings.Repeat("\x85", maxOps) + ".", "more than 2097152 operations"},
		"nested marks":   {"\x80\x02" + strings.Repeat("(", maxStack+1), "beyond the limits"},
		"wide stack":     {"\x80\x02" + strings.Repeat("]", maxStack+1), "beyond the limits"},
		"memo":           {"\x80\x02N" + memoBomb(), "beyond the limits"},
		"copies":         {"\x80\x02N" + strings.Repeat("q\x00", maxOps), "more than 2097152 operations"},
		"doubling":       {doubling.op(".").String(), "201 values"},
		"a large pickle": {strings.Repeat("\x00", maxPickle+1), "the limit is 16777216"},
	} {
		t.Run(name, func(t *testing.T) {
			file := archived(t, c.pickle)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := openBytes(file)
			runtime.ReadMemStats(&after)
			refused(t, err, errFormat, c.want)
			if grown := after.TotalAlloc - before.TotalAlloc; grown > 400<<20 {
				t.Errorf("%d bytes were allocated", grown)
			}
		})
	}
	// A dictionary that holds itself.
	_, err := openBytes(archived(t, newPickle().op("}q\x00").text("a").op("h\x00s.").String()))
	refused(t, err, errUnsupported, `"a" is a dictionary inside`)
}

// memoBomb stores one value under more names than the machine keeps.
func memoBomb() string {
	var b strings.Builder
	for i := range maxMemo + 1 {
		b.WriteString("r")
		b.Write([]byte{byte(i), byte(i >> 8), byte(i >> 16), byte(i >> 24)})
	}
	return b.String()
}

func TestNumbers(t *testing.T) {
	for code, want := range map[string]int64{
		"K\xff": 255, "M\xff\xff": 65535, "J\xff\xff\xff\xff": -1, "J\x00\x00\x00\x80": math.MinInt32,
		"\x8a\x00": 0, "\x8a\x01\xff": -1, "\x8a\x01\x7f": 127, "\x8a\x05\x00\x00\x00\x00\x01": 1 << 32,
		"\x8a\x08\x00\x00\x00\x00\x00\x00\x00\x80": math.MinInt64, "\x8a\x02\x00\xff": -256,
	} {
		got, err := (&machine{code: []byte("\x80\x02" + code + ".")}).run()
		if err != nil || got != any(want) {
			t.Errorf("%x is %v, %v; want %d", code, got, err, want)
		}
	}
	if got, err := (&machine{code: []byte("\x80\x02G\xbf\xf8\x00\x00\x00\x00\x00\x00.")}).run(); err != nil || got != any(-1.5) {
		t.Errorf("%v, %v", got, err)
	}
}

// FuzzUnpickle: whatever the pickle, no panic, an error with a kind or tensors that can be read to their last byte.
func FuzzUnpickle(f *testing.F) {
	files, err := filepath.Glob("testdata/*.bin")
	if err != nil || len(files) < 10 {
		f.Fatalf("%d fixtures, %v", len(files), err)
	}
	for _, path := range files {
		raw, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		if start := strings.Index(string(raw), "\x80\x02"); start > 0 {
			end := strings.Index(string(raw[start:]), "PK")
			f.Add(raw[start:start+end], uint16(120))
		}
	}
	f.Add([]byte(one("HalfStorage", "0", 2, 0, []int64{2}, []int64{1})), uint16(4))
	f.Add([]byte(one("FloatStorage", "0", 6, 0, []int64{2, 3}, []int64{1, 2})), uint16(24))
	f.Fuzz(func(t *testing.T, pickle []byte, n uint16) {
		data := strings.Repeat("x", int(n))
		file, err := openBytes(archived(t, string(pickle), "data/0", data, "data/1", data[:n/2]))
		if err != nil {
			if !errors.Is(err, errFormat) && !errors.Is(err, errUnsupported) {
				t.Fatalf("no kind: %v", err)
			}
			return
		}
		for _, x := range file.Tensors() {
			if x.Size > int64(n) {
				t.Fatalf("%+v of a storage of %d bytes", x, n)
			}
			s, err := file.Section(x.Name)
			if err != nil {
				t.Fatal(err)
			}
			p := make([]byte, x.Size)
			if got, err := s.ReadAt(p, 0); got != len(p) || strings.Trim(string(p), "x") != "" {
				t.Fatalf("%+v: %d bytes, %v: %q", x, got, err, p)
			}
		}
	})
}

// FuzzOpen: whatever the file, no panic and an error with a kind.
func FuzzOpen(f *testing.F) {
	files, err := filepath.Glob("testdata/*.bin")
	if err != nil {
		f.Fatal(err)
	}
	for _, path := range files {
		raw, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		file, err := openBytes(b)
		if err != nil {
			if !errors.Is(err, errFormat) && !errors.Is(err, errUnsupported) {
				t.Fatalf("no kind: %v", err)
			}
			return
		}
		for _, x := range file.Tensors() {
			s, err := file.Section(x.Name)
			if err != nil {
				t.Fatal(err)
			}
			if n, err := s.ReadAt(make([]byte, x.Size), 0); int64(n) != x.Size {
				t.Fatalf("%+v: %d bytes, %v", x, n, err)
			}
		}
	})
}

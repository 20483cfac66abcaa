package torch

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/engine/checkpoint/internal/tensor"
	"github.com/windrow-sim/windrow/internal/alloctest"
)

func TestNothingButTensorsIsCalled(t *testing.T) {
	for name, c := range map[string]struct {
		pickle string
		kind   error
		want   string
	}{
		"system": {newPickle().op("cos\nsystem\n").text("echo").op("\x85R.").String(),
			errUnsupported,
			`"os.system", which is not part of a dictionary of plain tensors and was not run`},
		"posix":    {"\x80\x02cposix\nsystem\n.", errUnsupported, `"posix.system"`},
		"builtins": {"\x80\x02c__builtin__\neval\n.", errUnsupported, `"__builtin__.eval"`},
		"near the names": {"\x80\x02ctorch._utils\n_rebuild_tensor\n.", errUnsupported,
			`"torch._utils._rebuild_tensor"`},
		"case": {"\x80\x02ccollections\norderedDict\n.", errUnsupported,
			`"collections.orderedDict"`},
		"a line feed": {"\x80\x02ccollections OrderedDict\n\n.", errUnsupported,
			"collections.OrderedDict "},
		"an attribute": {"\x80\x02ccollections\nOrderedDict.__class__\n.", errUnsupported,
			"OrderedDict.__class__"},
		"inst":   {"\x80\x02(ios\nsystem\n.", errUnsupported, "opcode 0x69"},
		"obj":    {"\x80\x02(o.", errUnsupported, "opcode 0x6f"},
		"newobj": {"\x80\x02)\x81.", errUnsupported, "opcode 0x81"},
		"stack global": {newPickle().text("os").text("system").op("\x93.").String(),
			errUnsupported, "opcode 0x93"},
		"extension":       {"\x80\x02\x82\x01.", errUnsupported, "opcode 0x82"},
		"text persistent": {"\x80\x02Pos\n.", errUnsupported, "opcode 0x50"},
		"call text": {newPickle().text("os").op(")R.").String(), errFormat,
			`the text "os" is called`},
		"call a tensor": {"\x80\x02ctorch\nHalfStorage\n)R.", errUnsupported,
			"torch HalfStorage"},
		"dict of pairs": {"\x80\x02ccollections\nOrderedDict\n]\x85R.", errUnsupported,
			"with 1 arguments"},
		"state of a list": {"\x80\x02]}b.", errUnsupported, "attributes"},
		"state is text": {newPickle().op("ccollections\nOrderedDict\n)R").text("x").op(
			"b.").String(), errUnsupported, "attributes"},
		"state of a dict": {"\x80\x02}}b.", errUnsupported, "attributes"},
		"parameter": {"\x80\x02ctorch._utils\n_rebuild_parameter\nN\x88}\x87R.", errFormat,
			"a parameter made of None"},
		"persistent id": {newPickle().text("storage").op("Q.").String(), errFormat,
			"a persistent id"},
		"storage key": {newPickle().op("(").text("storage").op("ctorch\nHalfStorage\n" +
			"NNK\x01tQ.").String(), errFormat, "key None"},
		"storage class": {newPickle().op("(").text("storage").op(
			"ccollections\nOrderedDict\n").text("0").op("NK\x01tQ.").String(), errFormat,
			"class the name"},
		"tensor of text": {newPickle().op("ctorch._utils\n_rebuild_tensor_v2\n(").text("x").op(
			"NNNNNtR.").String(), errFormat, "a tensor made of"},
		"tensor of six": {"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n)R.", errUnsupported,
			"with 0 arguments"},
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

// TestBombsStaySmall runs pickles that would fill the memory or the stack of a reader that follows
// them.
func TestBombsStaySmall(t *testing.T) {
	doubling := newPickle().op("]q\x00")
	for i := range 200 { // a list of the list before, twice: 2^200 leaves
		doubling.op("]h").op(string([]byte{byte(i)})).op("ah").op(string([]byte{byte(i)})).op(
			"aq").op(string([]byte{byte(i + 1)}))
	}
	// a file that has this much besides its pickle may build as much as the limits allow
	const large = 32 << 20
	for name, c := range map[string]struct {
		pickle string
		beside int
		want   string
	}{
		"nested tuples": {"\x80\x02N" + strings.Repeat("\x85", maxOps) + ".", 0,
			"more memory than"},
		"nested tuples, large": {"\x80\x02N" + strings.Repeat("\x85", maxOps) + ".", large,
			"more than 2097152 operations"},
		"nested marks": {"\x80\x02" + strings.Repeat("(", maxStack+1), 0,
			"more memory than"},
		"nested marks, large": {"\x80\x02" + strings.Repeat("(", maxStack+1), large,
			"beyond its limit"},
		"wide stack, large": {"\x80\x02" + strings.Repeat("]", maxStack+1), large,
			"beyond its limit"},
		"memo":         {"\x80\x02N" + memoBomb(), 0, "more memory than"},
		"memo, large":  {"\x80\x02N" + memoBomb(), large, "beyond the limit"},
		"one far memo": {"\x80\x02Nr\xff\xff\xff\xff", large, "beyond the limit"},
		"copies": {"\x80\x02N" + strings.Repeat("q\x00", maxOps), 0,
			"more than 2097152 operations"},
		"doubling":       {doubling.op(".").String(), 0, "201 values"},
		"a large pickle": {strings.Repeat("\x00", maxPickle+1), 0, "the limit is 16777216"},
		"dimensions": {newPickle().op("ctorch._utils\n_rebuild_tensor_v2\n(").op(
			"(").text("storage").op("ctorch\nHalfStorage\n").text("0").text("cpu").int(0).op(
			"tQK\x00(").op(strings.Repeat("K\x01", maxRank+1)).op("tq\x00h\x00\x89NtR.").String(),
			0, "a tensor with 65 dimensions"},
	} {
		t.Run(name, func(t *testing.T) {
			file := archived(t, c.pickle, "data/0", "", "beside", strings.Repeat("x", c.beside))
			var err error
			used := alloctest.Bytes(func() { _, err = openBytes(file) })
			t.Logf("%d bytes, %.2f times that allocated", len(file),
				float64(used)/float64(len(file)))
			refused(t, err, errFormat, c.want)
			if used > uint64(perByte*len(file)+allocFixed) {
				t.Errorf("%d bytes were allocated for a file of %d", used, len(file))
			}
		})
	}
	// A dictionary that holds itself.
	_, err := openBytes(archived(t, newPickle().op("}q\x00").text("a").op("h\x00s.").String()))
	refused(t, err, errUnsupported, `"a" is a dictionary inside`)
}

// Opening a small file may allocate allocFixed in addition to perByte times its size: the least
// budget, the File, errors, and the fuzzing engine's own work. The test's copy of the file is not
// counted.
const allocFixed = floor + 1<<16

// saved writes a state dict of n tensors as torch.save does, with a memo. Each has 16 elements: the
// 64 bytes that torch.save takes for one element too, because it aligns them, which this does not.
func saved(t testing.TB, n int) []byte {
	t.Helper()
	var memo int
	p := newPickle()
	put := func() {
		if memo < 256 {
			p.op("q" + string([]byte{byte(memo)}))
		} else {
			p.op("r" + string([]byte{byte(memo), byte(memo >> 8), byte(memo >> 16),
				byte(memo >> 24)}))
		}
		memo++
	}
	p.op("}")
	put()
	files := make([]string, 0, 2*n)
	for i := range n {
		if i%1000 == 0 {
			p.op("(")
		}
		key := strconv.Itoa(i)
		p.text("model.layers." + key + ".weight")
		put()
		if i == 0 {
			p.op("ctorch._utils\n_rebuild_tensor_v2\n")
			put() // 2
		} else {
			p.op("h\x02")
		}
		p.op("((")
		if i == 0 {
			p.text("storage")
			put() // 3
			p.op("ctorch\nFloatStorage\n")
			put() // 4
		} else {
			p.op("h\x03h\x04")
		}
		p.text(key)
		put()
		if i == 0 {
			p.text("cpu")
			put() // 6
		} else {
			p.op("h\x06")
		}
		p.op("K\x10t")
		put()
		p.op("QK\x00K\x10\x85")
		put()
		p.op("K\x01\x85")
		put()
		p.op("\x89")
		if i == 0 {
			p.op("ccollections\nOrderedDict\n")
			put() // 10
		} else {
			p.op("h\x0a")
		}
		p.op(")R")
		put()
		p.op("t")
		put()
		p.op("R")
		put()
		if i%1000 == 999 || i == n-1 {
			p.op("u")
		}
		files = append(files, "data/"+key, strings.Repeat("\x00\x00\x80\x3f", 16))
	}
	return archived(t, p.op(".").String(), files...)
}

// TestOpeningTakesMemoryInProportion opens files that hold as many entries of the zip archive and
// values of the pickle in their bytes as they can.
func TestOpeningTakesMemoryInProportion(t *testing.T) {
	const n = 1 << 16 // the limit on the opcodes of a pickle leaves room for about as many tensors
	word := func(i int) string { return strconv.FormatInt(int64(i), 36) }
	entries := func(n int) []string {
		all := make([]string, 0, 2*n)
		for i := range n {
			all = append(all, word(i), "")
		}
		return all
	}
	numbers := func(op string) string {
		return newPickle().op("(").op(strings.Repeat(op, maxStack/2)).op("t0(").op(strings.Repeat(
			op, maxStack/2)).op("t.").String()
	}
	const refusal = "more memory than"
	const extra = "\x55\x54\x05\x00\x01\x83\x00\x00\x00" // a time
	// A tensor of as many dimensions as there can be, from arguments in the memo, six bytes each
	// time.
	views := func(n int) string {
		ones := slices.Repeat([]int64{1}, maxRank)
		return newPickle().op("ctorch._utils\n_rebuild_tensor_v2\nq\x000((").text("storage").op(
			"ctorch\nHalfStorage\n").text("0").text("cpu").int(1).op("tQ").
			int(0).ints(ones...).ints(ones...).op(
			"\x89ccollections\nOrderedDict\nq\x02)Rtq\x010").op(strings.Repeat("h\x00h\x01R0",
			n)).op("}.").String()
	}
	for name, c := range map[string]struct {
		file []byte
		want string // of the error
	}{
		"views": {archived(t, views(n), "data/0", "ab"), refusal},
		"a few views": {archived(t, views(n/64), "data/0", "ab", "data/1", strings.Repeat("ab",
			10*n)), ""},
		"calls": {archived(t, newPickle().op("ccollections\nOrderedDict\nq\x000").op(
			strings.Repeat("h\x00)R0", n)).op("}.").String()), refusal},
		"tensors":          {saved(t, n/2), ""},
		"entries":          {archived(t, newPickle().op("}.").String(), entries(n)...), ""},
		"only a directory": {onlyDirectory(t, n-2, ""), ""},
		"times":            {onlyDirectory(t, n-2, extra), ""},
		"keys":             {archived(t, keyed(n)), refusal},
		"bytes":            {archived(t, numbers("K\xff")), refusal},
		"words":            {archived(t, numbers("M\xff\xff")), refusal},
		"doubles":          {archived(t, numbers("G\x00\x00\x00\x00\x00\x00\x00\x01")), refusal},
		"texts":            {archived(t, numbers("X\x01\x00\x00\x00a")), refusal},
		"tuples": {archived(t, newPickle().op("N").op(strings.Repeat("\x85",
			n)).op(".").String()), refusal},
		"dictionaries": {archived(t, newPickle().op(strings.Repeat("}0", n)).op("}.").String()),
			refusal},
		"a long text": {archived(t, newPickle().text(strings.Repeat("a",
			20*n)).op(".").String()), "the text"},
		"a long key": {archived(t, newPickle().op("}").text(strings.Repeat("a",
			20*n)).op("Ns.").String()), ""},
		"a key twice": {archived(t, newPickle().op("}(").text(strings.Repeat("a",
			20*n)).op("q\x00Nh\x00Nu.").String()), "occurs twice"},
	} {
		t.Run(name, func(t *testing.T) {
			alloctest.InProportion(t, len(c.file), perByte, 0, c.want, func() error {
				_, err := openBytes(c.file)
				return err
			})
		})
	}
}

// keyed is the pickle of a dictionary of n keys without tensors.
func keyed(n int) string {
	p := newPickle().op("}")
	for i := range n {
		if i%1000 == 0 {
			p.op("(")
		}
		p.text(strconv.FormatInt(int64(i), 36)).op("N")
		if i%1000 == 999 || i == n-1 {
			p.op("u")
		}
	}
	return p.op(".").String()
}

// onlyDirectory is a file whose directory has n entries more than the file, each with the given
// extra field.
func onlyDirectory(t testing.TB, n int, extra string) []byte {
	t.Helper()
	file := archived(t, newPickle().op("}.").String())
	end := bytes.LastIndex(file, []byte(endMagic))
	start := bytes.Index(file, []byte(entryMagic))
	one := slices.Clone(file[start:][:entrySize])
	directory := slices.Clone(file[start:end])
	tail := slices.Clone(file[end:])
	for i := range n {
		name := strconv.FormatInt(int64(i), 36)
		binary.LittleEndian.PutUint16(one[28:], uint16(len(name)))
		binary.LittleEndian.PutUint16(one[30:], uint16(len(extra)))
		directory = append(append(append(directory, one...), name...), extra...)
	}
	binary.LittleEndian.PutUint16(tail[8:], uint16(n+1))
	binary.LittleEndian.PutUint16(tail[10:], uint16(n+1))
	binary.LittleEndian.PutUint32(tail[12:], uint32(len(directory)))
	return slices.Concat(file[:start], directory, tail)
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
		"K\xff": 255, "M\xff\xff": 65535, "J\xff\xff\xff\xff": -1,
		"J\x00\x00\x00\x80": math.MinInt32,
		"\x8a\x00":          0, "\x8a\x01\xff": -1, "\x8a\x01\x7f": 127,
		"\x8a\x05\x00\x00\x00\x00\x01":             1 << 32,
		"\x8a\x08\x00\x00\x00\x00\x00\x00\x00\x80": math.MinInt64, "\x8a\x02\x00\xff": -256,
	} {
		got, err := (&machine{code: "\x80\x02" + code + ".", budget: newBudget(0)}).run()
		if err != nil || got != any(want) {
			t.Errorf("%x is %v, %v; want %d", code, got, err, want)
		}
	}
	if got, err := (&machine{code: "\x80\x02G\xbf\xf8\x00\x00\x00\x00\x00\x00.",
		budget: newBudget(0)}).run(); err != nil || got != any(-1.5) {
		t.Errorf("%v, %v", got, err)
	}
}

// FuzzUnpickle: whatever the pickle, no panic, memory in proportion to the file, an error with a
// kind or tensors that can be read to their last byte.
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
		whole := archived(t, string(pickle), "data/0", data, "data/1", data[:n/2])
		var file *File
		var err error
		if used := alloctest.Bytes(func() { file, err = openBytes(whole) }); used > uint64(
			perByte*len(whole)+allocFixed) {
			t.Fatalf("%d bytes allocated for a file of %d", used, len(whole))
		}
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

// sameAsZip demands that archive/zip finds the same entries in the same places: two readers must
// not see two models.
func sameAsZip(t *testing.T, file []byte) {
	t.Helper()
	z, err := zip.NewReader(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatalf("archive/zip refuses the file: %v", err)
	}
	size := int64(len(file))
	a, err := openArchive(tensor.NewRaw("torch", "test", bytes.NewReader(file), size),
		newBudget(size), size)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, theirs := range z.File {
		name, ok := strings.CutPrefix(theirs.Name, a.prefix)
		if !ok {
			continue
		}
		n++
		ours := a.find("", name)
		if ours == nil {
			t.Fatalf("no entry %q", theirs.Name)
		}
		at, err := a.locate(ours)
		if err != nil {
			continue
		}
		if offset, err := theirs.DataOffset(); err != nil || offset != at ||
			theirs.CompressedSize64 != uint64(ours.size) || theirs.Method != zip.Store {
			t.Fatalf("entry %q: %d bytes at %d; archive/zip: %d at %d, %v", theirs.Name, ours.size,
				at, theirs.CompressedSize64, offset, err)
		}
	}
	if n != len(a.entries) {
		t.Fatalf("%d entries, archive/zip finds %d", len(a.entries), n)
	}
}

// FuzzOpen: for every file no panic, memory in proportion to it, and an error of a kind, or an
// archive that archive/zip reads too.
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
		var file *File
		var err error
		if used := alloctest.Bytes(func() { file, err = openBytes(b) }); used > uint64(
			perByte*len(b)+allocFixed) {
			t.Fatalf("%d bytes allocated for a file of %d", used, len(b))
		}
		if err != nil {
			if !errors.Is(err, errFormat) && !errors.Is(err, errUnsupported) {
				t.Fatalf("no kind: %v", err)
			}
			return
		}
		sameAsZip(t, b)
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

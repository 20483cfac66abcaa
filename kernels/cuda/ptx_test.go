package cuda_test

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/kernels/cuda"
	"github.com/windrow-sim/windrow/kernels/ref"
	"github.com/windrow-sim/windrow/kernels/source"
)

// sources are the device code's files by name, sorted, with the hash that kernels.ptx carries.
func sources(t *testing.T) (names []string, text map[string]string, hash string) {
	t.Helper()
	names, err := fs.Glob(source.CUDA, "*.*")
	if err != nil {
		t.Fatal(err)
	}
	text = map[string]string{}
	h := sha256.New()
	for _, name := range names {
		content, err := fs.ReadFile(source.CUDA, name)
		if err != nil {
			t.Fatal(err)
		}
		text[name] = string(content)
		fmt.Fprintf(h, "%s %d\n%s", name, len(content), content)
	}
	return names, text, fmt.Sprintf("%x", h.Sum(nil))
}

// head is the first line of kernels.ptx.
func head(hash string) string {
	return "// Made by tools/cuda/ptx.sh from kernels/source, SHA-256 " + hash + "\n"
}

// TestPTXIsOfThisSource needs no compiler: after a change of the source, the PTX must be made
// again.
func TestPTXIsOfThisSource(t *testing.T) {
	_, _, hash := sources(t)
	ptx, err := os.ReadFile("kernels.ptx")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(ptx), head(hash)) {
		t.Error("kernels.ptx was not made from the present source; run go generate " +
			"./kernels/cuda")
	}
}

// spy notes the arguments of launches, by kernel.
type spy struct {
	cuda.Driver
	names    map[cuda.Function]string
	launched map[string][]cuda.ArgKind
}

func (s *spy) Function(m cuda.Module, name string) (cuda.Function, error) {
	f, err := s.Driver.Function(m, name)
	s.names[f] = name
	return f, err
}

func (s *spy) Launch(f cuda.Function, g cuda.Grid, threads int, stream cuda.Stream,
	args []cuda.Arg) error {
	var kinds []cuda.ArgKind
	for _, a := range args {
		kinds = append(kinds, a.Kind())
	}
	s.launched[s.names[f]] = kinds
	return s.Driver.Launch(f, g, threads, stream, args)
}

// TestArgumentsMatchPTX launches every kernel and compares Go's arguments with the PTX's
// declarations: a device would take any bytes.
func TestArgumentsMatchPTX(t *testing.T) {
	ptx, err := os.ReadFile("kernels.ptx")
	if err != nil {
		t.Fatal(err)
	}
	declared := map[string][]cuda.ArgKind{}
	parameter := regexp.MustCompile(`\.param \.(\w+)`)
	for _, entry := range regexp.MustCompile(`(?s)\.entry (\w+)\((.*?)\)`).FindAllStringSubmatch(
		string(ptx), -1) {
		for _, p := range parameter.FindAllStringSubmatch(entry[2], -1) {
			declared[entry[1]] = append(declared[entry[1]], cuda.ArgKind(p[1]))
		}
	}
	d, _ := open(t)
	s := &spy{Driver: d.Driver, names: map[cuda.Function]string{},
		launched: map[string][]cuda.ArgKind{}}
	d.Driver = s
	k, err := cuda.NewKernels(d)
	if err != nil {
		t.Fatal(err)
	}
	launchAll(t, d, k)
	if len(declared) != len(s.names) {
		t.Errorf("the PTX has %d kernels, the program asks for %d", len(declared), len(s.names))
	}
	for name, want := range declared {
		if got := s.launched[name]; !slices.Equal(got, want) {
			t.Errorf("%s is launched with %v, the PTX declares %v", name, got, want)
		}
	}
}

// launchAll launches every kernel in every format, from memory z that is all zero to memory m.
func launchAll(t *testing.T, d *cuda.Device, k *cuda.Kernels) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	z, err := d.Alloc(1 << 12)
	must(err)
	m, err := d.Alloc(1 << 12)
	must(err)
	must(d.Fill(z.Ptr, 0, z.Size, 0))
	for _, f := range ref.Formats() {
		dim := f.Group()
		must(k.MatVec(0, &cuda.MatVec{Format: f, W: z, X: z, Y: m, Rows: 1, Cols: dim, Tokens: 1}))
		must(k.Embed(0, &cuda.Embed{Format: f, Table: z, IDs: z, X: m, Rows: 1, Dim: dim,
			Tokens: 1}))
		must(k.FFN(0, &cuda.FFN{Format: f, Up: z, Down: z, X: z, Act: m, Scratch: m, Out: m,
			Rows: 1, Dim: dim, Total: 1, Tokens: 1}))
		if f != ref.F16 && f != ref.F32 {
			continue
		}
		a := &cuda.Attention{Cache: cuda.Cache{Format: f, Keys: m, Vals: m, Sequences: 1,
			Context: 1, KVHeads: 1, Dim: 1},
			Q: z, Out: m, Seqs: z, Positions: z, Scratch: m, Heads: 1, Tokens: 1, Longest: 1}
		must(k.StoreKV(0, a, z, z))
		must(k.Attention(0, a))
	}
	must(k.Norm(0, &cuda.Norm{X: z, Y: m, W: z, B: z, Rows: 1, Dim: 1}))
	must(k.Norm(0, &cuda.Norm{X: z, Y: m, W: z, Rows: 1, Dim: 1, RMS: true}))
	must(k.Add(0, m, z, 1))
	must(k.SoftCap(0, m, 1, 1))
	must(k.Rotary(0, &cuda.Rotary{X: m, Table: z, Positions: z, Heads: 1, Dim: 2, Half: 1,
		Tokens: 1, Context: 1}))
	must(k.MaskAtLeast(0, &cuda.MaskAtLeast{Scores: z, Mask: m, N: 1, Tokens: 1}))
	must(k.MaskList(0, m, m, z, 1))
	rows := &cuda.RowBuffers{Up: m, Down: m, Places: 1, Size: 2}
	must(k.Scatter(0, rows, z, z, z, 1))
	must(k.Move(0, rows, z, z, 1))
	must(d.Synchronize())
}

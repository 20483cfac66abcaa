package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/ir"
	"github.com/mmcloughlin/avo/pass"
	"github.com/mmcloughlin/avo/printer"
)

// Names of the generated files, in the folder of the package they belong to.
const (
	asmFile  = "kernels_amd64.s"
	stubFile = "stubs_amd64.go"
)

func main() {
	dir := flag.String("dir", "../../kernels/cpu", "`folder` of the package to write into")
	flag.Parse()
	if err := run(*dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(dir string) error {
	files, err := generate()
	if err != nil {
		return err
	}
	for _, name := range []string{asmFile, stubFile} {
		if err := os.WriteFile(filepath.Join(dir, name), files[name], 0o644); err != nil {
			return fmt.Errorf("avo: write: %w", err)
		}
	}
	return nil
}

// generate builds every kernel and returns the text of the two files by name.
func generate() (map[string][]byte, error) {
	c := build.NewContext()
	c.ConstraintExpr("!purego")
	dot(c, "dotAVX2", half(),
		"dotAVX2 returns the sum of w[i]*x[i] for float16 weights and i in [0,n). While it reads",
		"w[i], it prefetches the cache line at ahead bytes beyond w[i]. Prefetching an unmapped",
		"address is harmless. The other kernels use ahead in the same way.")
	dot(c, "dotBF16AVX2", bfloat(),
		"dotBF16AVX2 is dotAVX2 for bfloat16 weights.")
	dot(c, "dotF32AVX2", float(),
		"dotF32AVX2 is dotAVX2 for float32 weights.")
	axpy(c, "axpyAVX2", half(),
		"axpyAVX2 adds a*w[i] to y[i] for float16 weights and i in [0,n), rounding once.")
	axpy(c, "axpyBF16AVX2", bfloat(),
		"axpyBF16AVX2 is axpyAVX2 for bfloat16 weights.")
	axpy(c, "axpyF32AVX2", float(),
		"axpyF32AVX2 is axpyAVX2 for float32 weights.")
	dotQuantised(c, "dotQ8AVX2", eightBits,
		"dotQ8AVX2 returns the sum of w[i]*x[i] for float16 scales, each followed by a group of",
		"32 weights of 8 bits.")
	dotQuantised(c, "dotQ4AVX2", fourBits,
		"dotQ4AVX2 is dotQ8AVX2 for weights of 4 bits.")
	axpyQuantised(c, "axpyQ8AVX2", eightBits,
		"axpyQ8AVX2 adds a*w[i] to y[i] for groups of weights as in dotQ8AVX2, rounding once.")
	axpyQuantised(c, "axpyQ4AVX2", fourBits,
		"axpyQ4AVX2 is axpyQ8AVX2 for weights of 4 bits.")
	widenF16(c)
	streamRead(c)
	f, err := c.Result()
	if err != nil {
		return nil, fmt.Errorf("avo: build: %w", err)
	}
	if err := pass.Compile.Execute(f); err != nil {
		return nil, fmt.Errorf("avo: compile: %w", err)
	}
	return render(f)
}

func render(f *ir.File) (map[string][]byte, error) {
	cfg := printer.Config{Name: "avo", Pkg: "cpu"}
	out := make(map[string][]byte, 2)
	for name, p := range map[string]printer.Printer{
		asmFile:  printer.NewGoAsm(cfg),
		stubFile: printer.NewStubs(cfg),
	} {
		text, err := p.Print(f)
		if err != nil {
			return nil, fmt.Errorf("avo: print %s: %w", name, err)
		}
		out[name] = append(bytes.TrimRight(text, "\n"), '\n')
	}
	return out, nil
}

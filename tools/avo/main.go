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
	dotF16(c)
	dotF32(c)
	axpyF16(c)
	axpyF32(c)
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

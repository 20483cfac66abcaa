package source

import (
	"embed"
	"fmt"
	"io/fs"
	"strings"
)

//go:embed metal
var metal embed.FS

// Metal returns kernels.metal with all its includes in place, each file once, for a compiler
// without a folder. A file in metal/ replaces the file of the same name in this folder. The
// language's own header, <metal_stdlib>, is left to the compiler.
func Metal() (string, error) {
	t := text{seen: map[string]bool{}}
	if err := t.include("kernels.metal"); err != nil {
		return "", err
	}
	return t.out.String(), nil
}

type text struct {
	out  strings.Builder
	seen map[string]bool
}

func (t *text) include(name string) error {
	if t.seen[name] {
		return nil
	}
	t.seen[name] = true
	content, err := fs.ReadFile(metal, "metal/"+name)
	if err != nil {
		content, err = fs.ReadFile(CUDA, name)
	}
	if err != nil {
		return fmt.Errorf("source: %s is included, but it is not here: %w", name, err)
	}
	// The compiler's messages then name the file and line that people read.
	fmt.Fprintf(&t.out, "#line 1 %q\n", name)
	number := 0
	for line := range strings.Lines(string(content)) {
		number++
		switch {
		case strings.HasPrefix(line, "#pragma once"):
			t.out.WriteString("\n")
		case strings.HasPrefix(line, `#include "`):
			_, quoted, _ := strings.Cut(line, `"`)
			inner, _, _ := strings.Cut(quoted, `"`)
			if err := t.include(inner); err != nil {
				return err
			}
			fmt.Fprintf(&t.out, "#line %d %q\n", number+1, name)
		default:
			t.out.WriteString(line)
		}
	}
	return nil
}

// Command gpucheck runs everything of this program that needs a GPU, on a machine that has one and
// nothing else: no Go, no network. It is given a folder with programs that were built elsewhere
// (scripts/gpu-check -bundle) and this repository, and writes a JSON document, a page for
// docs/measured, and here.device.yaml, the device model of the machine.
//
//	gpucheck -bundle bin/gpu-check -library libcuda.so.1 -o DIR
//
// With -emulated it runs on the stand-in for a device: the same steps on small sizes, without
// times.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	c := &check{}
	flag.StringVar(&c.bundle, "bundle", "bin/gpu-check",
		"`FOLDER` with windrow, kernels.test and backend.test")
	flag.StringVar(&c.repository, "repository", ".", "`FOLDER` of this repository")
	flag.StringVar(&c.library, "library", "libcuda.so.1", "the driver library, `FILE`")
	flag.BoolVar(&c.emulated, "emulated", false, "run on the stand-in for a device")
	out := flag.String("o", ".", "write gpu-check.json and gpu-check.md to `FOLDER`")
	flag.Parse()
	if err := run(c, *out); err != nil {
		fmt.Fprintln(os.Stderr, "gpucheck:", err)
		os.Exit(1)
	}
}

// run does all steps and writes what they found; a step that failed is an error at the end.
func run(c *check, out string) error {
	var err error
	for _, folder := range []*string{&c.bundle, &c.repository, &out} {
		if *folder, err = filepath.Abs(*folder); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	c.out = out
	if c.work, err = os.MkdirTemp("", "gpucheck"); err != nil {
		return err
	}
	defer os.RemoveAll(c.work)
	doc := c.all(context.Background())
	data, err := json.MarshalIndent(doc, "", " ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(out, "gpu-check.json"), append(data, '\n'),
		0o644); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(out, "gpu-check.md"), []byte(doc.page()),
		0o644); err != nil {
		return err
	}
	if n := doc.failed(); n > 0 {
		return fmt.Errorf("%d of %d steps failed; %s says which", n, len(doc.Steps),
			filepath.Join(out, "gpu-check.md"))
	}
	return nil
}

package probe

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"

	"github.com/windrow-sim/windrow/engine/flashio"
	"github.com/windrow-sim/windrow/internal/document"
	"github.com/windrow-sim/windrow/internal/output"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/kernels/cpu"
)

// Examination is what a host can do, with the disk that a path is on.
type Examination struct {
	File     flashio.FileInfo `json:"file"`
	Findings []Finding        `json:"findings"`
	Path     string           `json:"path"`
}

// Examine tries what this program needs of a host and of the disk that path is on. For a folder it
// makes a small file there and removes it.
func Examine(ctx context.Context, path string) (*Examination, error) {
	file, remove, err := fileAt(path)
	if err != nil {
		return nil, err
	}
	defer remove()
	info, err := flashio.Describe(file)
	if err != nil {
		return nil, err
	}
	info.Path = path
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	x := &Examination{File: info, Findings: examine(info, file), Path: path}
	for i := range x.Findings {
		x.Findings[i].Detail = strings.ReplaceAll(x.Findings[i].Detail, file, path)
	}
	return x, nil
}

// Document describes the checks.
func (x *Examination) Document() *document.Document {
	d := &document.Document{Name: "doctor", Title: "windrow doctor",
		Headline: verdictOf(x.Findings), Result: x}
	t := document.NewTable(document.Text("what"), document.Text("state"), document.Text("detail"))
	for _, f := range x.Findings {
		t.Add(f.What, f.State, f.Detail)
	}
	d.Add("This host", "", *t)
	return d
}

// Finding is one check of a host: its state is pass, warn or fail.
type Finding struct {
	What   string `json:"what"`
	State  string `json:"state"`
	Detail string `json:"detail"`
}

// verdictOf counts what is missing.
func verdictOf(findings []Finding) string {
	failed, warned := 0, 0
	for _, f := range findings {
		switch f.State {
		case "fail":
			failed++
		case "warn":
			warned++
		}
	}
	if failed+warned == 0 {
		return "This host can do everything."
	}
	return fmt.Sprintf("%d of %d checks fail, %d warn.", failed, len(findings), warned)
}

// fileAt returns path itself, or for a folder a small temporary file in it, since a folder has no
// direct I/O of its own.
func fileAt(path string) (file string, remove func(), err error) {
	st, err := os.Stat(path)
	if err != nil {
		return "", nil, fmt.Errorf("probe: %w", err)
	}
	if !st.IsDir() {
		return path, func() {}, nil
	}
	tmp, err := output.Scratch(path, "windrow-probe")
	if err != nil {
		return "", nil, fmt.Errorf("probe: cannot make a file to try; name a folder that can "+
			"be written, or a file: %w", err)
	}
	_, err = tmp.Write(make([]byte, 64*units.KiB))
	if err = errors.Join(err, tmp.Seal()); err != nil {
		return "", nil, fmt.Errorf("probe: cannot write a file to try: %w", err)
	}
	return tmp.Name(), tmp.Abort, nil
}

// examine looks at the host and at the disk that file is on.
func examine(info flashio.FileInfo, file string) []Finding {
	list := []Finding{{"processor", "pass", fmt.Sprintf("%d cores, %s", runtime.NumCPU(),
		runtime.GOARCH)}}
	kernels := Finding{"kernels", "pass", cpu.Features()}
	if cpu.Features() == "generic" {
		kernels.State, kernels.Detail = "warn", "portable Go only: this processor has no AVX2, "+
			"FMA and F16C; everything works, several times slower"
	}
	list = append(list, kernels)

	disk := Finding{"disk", "pass", fmt.Sprintf("%s on %s, logical block %v", info.FileSystem,
		info.Device, info.LogicalBlock)}
	if info.MemoryBacked {
		disk.State, disk.Detail = "fail", info.FileSystem+" is memory, not flash: measure on a disk"
	}
	list = append(list, disk, directFinding(file))

	ring := Finding{"io_uring", "pass", "available"}
	if ok, why := flashio.UringStatus(); !ok {
		ring.State, ring.Detail = "warn", why+"; reads use a pool of threads instead"
	}
	return append(list, ring)
}

// directFinding tries a direct read.
func directFinding(path string) Finding {
	f := Finding{What: "direct reads", State: "pass"}
	r, err := flashio.Open(path, flashio.Options{Engine: flashio.EnginePread,
		Direct: flashio.DirectOn, Parallel: 1})
	if err != nil {
		f.State, f.Detail = "fail", err.Error()
		return f
	}
	f.Detail = fmt.Sprintf("alignment %v", r.Mode().Align)
	for _, n := range r.Mode().Notes {
		f.State, f.Detail = "warn", f.Detail+"; "+n
	}
	if err := r.Close(); err != nil {
		f.State, f.Detail = "warn", err.Error()
	}
	return f
}

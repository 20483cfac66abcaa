package cli

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/windrow-sim/windrow/engine/flashio"
	"github.com/windrow-sim/windrow/engine/session"
	"github.com/windrow-sim/windrow/internal/document"
	"github.com/windrow-sim/windrow/internal/units"
)

func doctorCommand(e *env) *cli.Command {
	return &cli.Command{
		Name: "doctor", Usage: "what this host can do, why not, and what to run about it",
		ArgsUsage: "[PATH]",
		Description: "PATH is a file or folder on the disk in question (default: the working " +
			"folder).\n\n" + examples("windrow doctor", "windrow doctor --json ."),
		Flags:  nil,
		Action: e.doctor,
	}
}

// finding is one line of the doctor: state is pass, warn or fail.
type finding struct {
	What   string `json:"what"`
	State  string `json:"state"`
	Detail string `json:"detail"`
}

func (e *env) doctor(c *cli.Context) error {
	path := "."
	if c.NArg() == 1 {
		path = c.Args().First()
	} else if c.NArg() > 1 {
		return usageError("doctor takes one path, got %d", c.NArg())
	}
	file, remove, err := fileAt(path)
	if err != nil {
		return err
	}
	defer remove()
	info, err := flashio.Describe(file)
	if err != nil {
		return err
	}
	info.Path = path
	findings := examine(info, file)
	for i := range findings {
		findings[i].Detail = strings.ReplaceAll(findings[i].Detail, file, path)
	}
	d := &document.Document{Name: "doctor", Title: "windrow doctor",
		Headline: verdictOf(findings),
		Result:   map[string]any{"path": path, "file": info, "findings": findings}}
	t := document.NewTable(document.Text("what"), document.Text("state"), document.Text("detail"))
	for _, f := range findings {
		t.Add(f.What, f.State, f.Detail)
	}
	d.Add("This host", "", *t)
	return e.put(c, d)
}

// verdictOf counts what is missing.
func verdictOf(findings []finding) string {
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
		return "", nil, fmt.Errorf("doctor: %w", err)
	}
	if !st.IsDir() {
		return path, func() {}, nil
	}
	tmp, err := os.CreateTemp(path, ".windrow-doctor-*")
	if err != nil {
		return "", nil, fmt.Errorf("doctor: cannot make a file to try; name a folder that can "+
			"be written, or a file: %w", err)
	}
	remove = func() { os.Remove(tmp.Name()) }
	_, err = tmp.Write(make([]byte, 64*units.KiB))
	if err = errors.Join(err, tmp.Close()); err != nil {
		remove()
		return "", nil, fmt.Errorf("doctor: cannot write a file to try: %w", err)
	}
	return tmp.Name(), remove, nil
}

// examine looks at the host and at the disk that file is on.
func examine(info flashio.FileInfo, file string) []finding {
	list := []finding{{"processor", "pass", fmt.Sprintf("%d cores, %s", runtime.NumCPU(),
		runtime.GOARCH)}}
	kernels := finding{"kernels", "pass", session.Kernels()}
	if session.Kernels() == "generic" {
		kernels.State, kernels.Detail = "warn", "portable Go only: this processor has no AVX2, "+
			"FMA and F16C; everything works, several times slower"
	}
	list = append(list, kernels)

	disk := finding{"disk", "pass", fmt.Sprintf("%s on %s, logical block %v", info.FileSystem,
		info.Device, info.LogicalBlock)}
	if info.MemoryBacked {
		disk.State, disk.Detail = "fail", info.FileSystem+" is memory, not flash: measure on a disk"
	}
	list = append(list, disk, directFinding(file))

	ring := finding{"io_uring", "pass", "available"}
	if ok, why := flashio.UringStatus(); !ok {
		ring.State, ring.Detail = "warn", why+"; reads use a pool of threads instead"
	}
	return append(list, ring)
}

// directFinding tries a direct read.
func directFinding(path string) finding {
	f := finding{What: "direct reads", State: "pass"}
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

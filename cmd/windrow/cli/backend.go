package cli

import (
	"errors"
	"os"
	"runtime"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/windrow-sim/windrow/engine"
	"github.com/windrow-sim/windrow/engine/cuda"
	"github.com/windrow-sim/windrow/engine/model"
	"github.com/windrow-sim/windrow/internal/refusal"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/kernels/metal"
)

// libraryVariable names a driver library by file, in place of the system's own: one that lies
// elsewhere, or a stand-in.
const libraryVariable = "WINDROW_CUDA_LIBRARY"

// deviceMemory reads --device-memory; 0 is no limit.
func deviceMemory(c *cli.Context) (units.Bytes, error) {
	text := c.String("device-memory")
	if text == "" {
		return 0, nil
	}
	if c.String("backend") == "cpu" {
		return 0, usageError("--device-memory %s: the CPU computes in main memory, which --dram "+
			"is for; add --backend cuda, or leave it out", text)
	}
	limit, err := units.ParseBytes(text)
	if err != nil || limit < 1 {
		return 0, usageError("--device-memory %q: a size (8GiB) is wanted", text)
	}
	return limit, nil
}

// useBackend puts the resident weights of a model where --backend wants them; close of the model
// takes them back.
func (e *env) useBackend(c *cli.Context, m *openedModel) error {
	limit, err := deviceMemory(c)
	if err != nil {
		return err
	}
	name := c.String("backend")
	switch name {
	case "cpu":
		return nil
	case "cuda", "metal", "auto":
	default:
		return usageError("--backend %q: it is cpu, cuda, metal or auto", name)
	}
	b, err := openDevice(name, m.weights, cuda.Options{Library: os.Getenv(libraryVariable),
		Memory: limit})
	if name == "auto" && noDevice(err) {
		e.note("note: computing on the CPU: %v", err)
		return nil
	}
	if err != nil {
		return err
	}
	m.device = b
	e.note("%s: %v of weights on %s", m.image.Name, b.Bytes(), b.Device().Name)
	return nil
}

// openDevice takes a GPU into use: with auto the one that this system can have.
func openDevice(name string, w *model.Weights, opt cuda.Options) (*cuda.Backend, error) {
	if name == "cuda" || name == "auto" && runtime.GOOS != "darwin" {
		return cuda.Open(w, opt)
	}
	d, err := metal.Open()
	if err != nil {
		return nil, err
	}
	return cuda.New(d, w, opt)
}

// noDevice says that an error is about a machine without a GPU that can be used.
func noDevice(err error) bool {
	return errors.Is(err, refusal.ErrHost)
}

// computedOn is what a Run says of the device that computed it.
func computedOn(b *cuda.Backend) string {
	text := "computed on " + b.Device().Name
	if strings.Contains(text, "emulat") {
		text += ": its times mean nothing"
	}
	return text
}

// refused is an error of an engine that was asked for what it cannot do; on a device it can also be
// the device's.
func refused(m *openedModel, err error) error {
	if m.device != nil {
		return err
	}
	return usageError("%v", err)
}

// backend and store are where a model is computed and its rows are kept: nil for the CPU.
func (m *openedModel) backend() engine.Backend {
	if m.device == nil {
		return nil
	}
	return m.device
}

func (m *openedModel) store() engine.Store {
	if m.device == nil {
		return nil
	}
	return m.device
}

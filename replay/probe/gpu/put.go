package gpu

import (
	"fmt"
	"time"

	"github.com/windrow-sim/windrow/devicemodels"
	"github.com/windrow-sim/windrow/internal/document"
)

// Put puts a measured GPU into a device model.
func Put(d *devicemodels.Device, g *devicemodels.GPU, when time.Time) {
	if d.Sources == nil {
		d.Sources = map[string]string{}
	}
	off, worst := Worst(g)
	d.GPU = g
	d.Sources["gpu"] = fmt.Sprintf("measured by windrow probe --backend cuda on %s: medians of "+
		"%d runs by the device's events; the worst sample, %s of %s, is missed by %s %%",
		when.UTC().Format(time.RFC3339), worst.Runs, worst.Of, worst.Shape, document.Sig3(off))
	for of, name := range map[string]string{"transfer": "transfer", "scatter": "scatter",
		"move": "move", "dense": "dense", "rows": "row", "kv": "kv"} {
		text := fmt.Sprintf("fit: a line over the sizes of the samples of %s, of weights those "+
			"in fp16", of)
		d.Sources["gpu."+name+"_rate"], d.Sources["gpu."+name+"_fixed"] = text, text
	}
	d.Sources["gpu.memory"] = "what the driver says"
	d.Sources["gpu.kernel_fixed"] = "measured: a small kernel by the device's events"
	d.Sources["gpu.launch_fixed"] = "measured: the host's time, by its own clock, from one " +
		"launch to the next while the stream is held"
	d.Sources["gpu.sync_fixed"] = "measured: the host's time for one small kernel and waiting " +
		"for it, less the kernel and its launch"
}

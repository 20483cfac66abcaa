package main

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// rates reads the lines of BenchmarkKernels. The first of them is the copy that all are compared
// with.
func rates(output string) (list []kernelRate, err error) {
	line := regexp.MustCompile(`(?m)^BenchmarkKernels/(\S+?)(?:-\d+)?\s+\d+\s.*?([0-9.]+) GB/s`)
	for _, found := range line.FindAllStringSubmatch(output, -1) {
		rate, err := strconv.ParseFloat(found[2], 64)
		if err != nil {
			return nil, err
		}
		list = append(list, kernelRate{Name: found[1], Rate: rate})
	}
	if len(list) == 0 || list[0].Name != "copy" || !(list[0].Rate > 0) {
		return nil, errors.New("the benchmarks have no rate of a copy to compare with")
	}
	for i := range list {
		list[i].Share = list[i].Rate / list[0].Rate
	}
	return list, nil
}

// page is the document for docs/measured.
func (d *document) page() string {
	var b strings.Builder
	b.WriteString("# GPU check\n\n")
	if d.Device != nil {
		f := d.Device
		fmt.Fprintf(&b, "Device: %s, %v of memory, %d multiprocessors, compute capability "+
			"%d.%d; the driver supports CUDA %d.%d.\n\n",
			f.Name, f.Memory, f.Processors, f.Capability[0], f.Capability[1], f.Driver/1000,
			f.Driver%1000/10)
	}
	if d.Emulated {
		b.WriteString("This was an emulation: it shows that everything runs and agrees with the " +
			"CPU, and has no times. Still to be measured on a device: the rates of kernels " +
			"beside its " +
			"bandwidth, tokens per second, the parts of a replay, and the device model.\n\n")
	}
	b.WriteString("| step | result | seconds | |\n|---|---|---:|---|\n")
	for _, s := range d.Steps {
		result := "passed"
		if !s.OK {
			result = "**failed**"
		}
		says := strings.ReplaceAll(strings.ReplaceAll(s.Says, "\n", " "), "|", "\\|")
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", s.Name, result, number(s.Seconds), says)
	}
	if len(d.Texts) > 0 {
		b.WriteString("\nThe shipped model, greedy:\n\n" +
			"| text | same tokens | CPU (tokens/s) | device (tokens/s) |\n|---|---|---:|---:|\n")
		for _, t := range d.Texts {
			fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", t.Name, yes(t.Same), number(t.CPU),
				number(t.CUDA))
		}
	}
	if len(d.Replays) > 0 {
		b.WriteString("\nReplay of a synthetic trace:\n\n" +
			"| configuration | same counters | CPU (tokens/s) | device (tokens/s) |\n" +
			"|---|---|---:|---:|\n")
		for _, r := range d.Replays {
			fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", r.Name, yes(r.Same), number(r.CPURate),
				number(r.CUDARate))
		}
	}
	if len(d.Compared) > 0 {
		b.WriteString("\nSimulation on the probed device beside a replay:\n\n" +
			"| schedule | same counters | simulated (tokens/s) | measured (tokens/s) | error " +
			"(%) |\n|---|---|---:|---:|---:|\n")
		for _, r := range d.Compared {
			fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", r.Name, yes(r.Same),
				number(r.Simulated), number(r.Measured), number(r.Error))
		}
		d.phases(&b)
	}
	if len(d.Kernels) > 0 {
		b.WriteString("\nKernels at the sizes of OPT-6.7B. A copy on the device reads and " +
			"writes each byte; `scatter-pinned` is limited by the bus.\n\n" +
			"| kernel | GB/s | of the copy |\n|---|---:|---:|\n")
		for _, k := range d.Kernels {
			fmt.Fprintf(&b, "| %s | %s | %s |\n", k.Name, number(k.Rate), number(k.Share))
		}
	}
	return b.String()
}

// phases is what the replays on demand did, simulated and by the device's events. There are none of
// an emulation.
func (d *document) phases(b *strings.Builder) {
	for _, r := range d.Compared {
		if r.Phases[0] == [5]int64{} || r.Phases[1] == [5]int64{} {
			continue
		}
		fmt.Fprintf(b, "\nPhases of %s, all tokens:\n\n"+
			"| phase | simulated (ms) | measured (ms) |\n|---|---:|---:|\n", r.Name)
		for i, name := range []string{"read", "stage", "scatter", "compute", "sync"} {
			fmt.Fprintf(b, "| %s | %s | %s |\n", name, number(float64(r.Phases[0][i])/1e6),
				number(float64(r.Phases[1][i])/1e6))
		}
	}
}

// number has three digits; what was not measured is a dash.
func number(v float64) string {
	if v == 0 {
		return "–"
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

func yes(v bool) string {
	if v {
		return "yes"
	}
	return "**no**"
}

package reproduce

import (
	"fmt"

	"github.com/windrow-sim/windrow/internal/ioengine"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/sim/speculative"
)

// speculation is the speculative run of the RTX 4090.
type speculation struct {
	speculative.Speculation
	volume units.Bytes // read per token
	alpha  Input
}

// calibrateSpeculation finds the α with the published I/O per token. It counts the rows that
// verifications load under the paper's window rule, on the trace.
func (s *study) calibrateSpeculation(reads units.Rate) (*speculation, error) {
	trace, err := s.trace(workload{like: "OPT-6.7B", dtype: 2})
	if err != nil {
		return nil, err
	}
	spec := &speculation{Speculation: speculative.Speculation{
		Draft: int(s.val("speculative/lambda")), Window: s.optWindow()}}
	loads := make([]float64, spec.Draft+2) // by last
	for last := 1; last < len(loads); last++ {
		if loads[last], err = spec.Loads(trace, last); err != nil {
			return nil, err
		}
	}
	const id = "table5/opt/gpu/speculative/io"
	record := float64(trace.Head.UnitBytes)
	wanted := float64(reads) * s.ms(id).Seconds() / record
	spec.Acceptance = speculative.AcceptanceFor(spec.Draft, wanted, func(last int) float64 {
		return loads[last]
	})
	spec.volume = units.Bytes(loads[spec.Last()] / spec.Tokens() * record)
	spec.alpha = calibrated("α", fmt.Sprintf("%.3f: %.3g tokens per verification", spec.Acceptance,
		spec.Tokens()), id)
	return spec, nil
}

// speculative adds the speculative row of the RTX 4090, predicted from the parts of its "all" row:
//
//	I/O      fixes α, see calibrateSpeculation
//	memory   managed once per verification: the time of the "all" row divided by the tokens of a
//	         verification
//	compute  that of the "all" row, divided by the published speedup of plain speculative decoding
func (s *study) speculative(prefix string) error {
	all, err := s.gpuTimes()
	if err != nil {
		return err
	}
	linux := s.machines.devices[rtx]
	reads := linux.Flash.Throughput(ioengine.Pread, linux.Host.Cores, bundleBytes, threads)
	spec, err := s.calibrateSpeculation(reads)
	if err != nil {
		return err
	}
	t := &times{
		io: reads.Time(spec.volume),
		ioFrom: append([]Input{spec.alpha, s.given("λ", "speculative/lambda"), other("volume",
			spec.volume.String(), "counted on the trace, per token")}, all.ioFrom...),
		memory: units.FromSeconds(all.memory.Seconds() / spec.Tokens()), memoryFrom: append([]Input{
			spec.alpha}, all.memoryFrom...),
		compute: units.FromSeconds(all.compute.Seconds() / s.val("speculative/plain")),
		computeFrom: append([]Input{s.given("speedup of plain speculative decoding",
			"speculative/plain")}, all.computeFrom...),
	}
	s.columns(prefix+"/speculative", "OPT-6.7B, RTX 4090, speculative", t, map[string]string{
		"io": "α of speculative decoding (from Table 5)"})
	if prefix == "table3/opt/gpu" {
		parts := append(append(append([]Input{}, t.ioFrom...), t.memoryFrom...), t.computeFrom...)
		s.predict("speculative/speedup", "speculative over all",
			all.total().Seconds()/t.total().Seconds(), allTolerance, parts...)
	}
	return nil
}

package reproduce

import (
	"fmt"

	"github.com/windrow-sim/windrow/sim/speculative"
)

// acceptance is α of the speculative run, which the paper does not state. It is chosen so that the
// I/O of table5/opt/gpu/speculative/io comes out.
const acceptance = 0.72

// speculative adds the speculative row of the RTX 4090, as "windrow speculate" computes it.
func (s *study) speculative(prefix string) error {
	opt, err := s.model("opt")
	if err != nil {
		return err
	}
	c := s.gpuAll(opt)
	trace, err := s.trace(c)
	if err != nil {
		return err
	}
	cfg, err := s.config(c, &trace.Head)
	if err != nil {
		return err
	}
	draft := int(s.val("speculative/lambda"))
	if s.drafted == nil {
		if s.drafted, err = speculative.Run(s.ctx, trace, speculative.Config{Sim: cfg,
			Draft: draft, Acceptance: acceptance, Skip: cfg.Policy.Window}); err != nil {
			return err
		}
	}
	row := s.drafted.Asked
	run := &measured{io: row.IO, memory: row.Memory, compute: row.Compute,
		total: row.IO + row.Memory + row.Compute}
	inputs := append(s.inputs(c), s.given("λ", "speculative/lambda"), calibrated("α",
		fmt.Sprintf("%.3g: %.3g tokens per verification", acceptance, row.Tokens),
		"table5/opt/gpu/speculative/io"))
	s.columns(prefix+"/speculative", "OPT-6.7B, RTX 4090, speculative", run, map[string]string{
		"io": "α of speculative decoding (from Table 5)"}, inputs)
	if prefix == "table3/opt/gpu" {
		all, err := s.simulate(c)
		if err != nil {
			return err
		}
		s.without("speculative/plain", "plain speculative decoding of a model in memory", "The "+
			"draft model is not stated.")
		s.row(Simulated, "speculative/speedup", "speculative over all",
			all.total.Seconds()/run.total.Seconds(), totalTolerance, inputs)
	}
	return nil
}

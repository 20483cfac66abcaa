package reproduce

import (
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/traces/synth"
)

// windowing adds the shares that a window keeps and loads, of simulated traces.
func (s *study) windowing() error {
	opt, err := s.model("opt")
	if err != nil {
		return err
	}
	c := s.all(opt)
	full, err := s.simulate(c)
	if err != nil {
		return err
	}
	c.policy = "none"
	each, err := s.simulate(c)
	if err != nil {
		return err
	}
	printed := tolerance{5, "half of the last printed digit is 2 to 5 %"}
	s.row(Simulated, "window/opt/predicted", opt.name+": predicted active", each.share(each.read),
		printed, s.inputs(c))
	const process = "process of traces/synth (fitted)"
	s.calibrate("window/opt/new", opt.name+": new per token", full.share(full.read),
		process).TolerancePercent = printed.percent
	s.calibrate("window/opt/cached", opt.name+": cached", full.share(full.resident),
		process).TolerancePercent = printed.percent
	falcon, err := s.model("falcon")
	if err != nil {
		return err
	}
	c = s.all(falcon)
	m, err := s.simulate(c)
	if err != nil {
		return err
	}
	other := tolerance{10, "the time scales are those of OPT-6.7B"}
	s.row(Simulated, "window/falcon/new", falcon.name+": new per token", m.share(m.read), other,
		s.inputs(c))
	s.row(Simulated, "window/falcon/cached", falcon.name+": cached", m.share(m.resident), other,
		s.inputs(c))
	return nil
}

// dram adds the budgets of appendix C. All but the cached part are arithmetic of the shape.
func (s *study) dram() error {
	exact := tolerance{5, "shares printed with two or three digits"}
	for _, key := range []string{"opt", "falcon"} {
		m, err := s.model(key)
		if err != nil {
			return err
		}
		id := "dram/" + key + "/"
		shape := []Input{other("shape", m.name, "traces/shapes/models.csv")}
		ranks := append(shape[:1:1], other("ranks", number(float64(m.predictor)/1e6)+" M weights",
			"rank/"+key+"/…: Σ rank·(d_model + d_ffn)"))
		s.row(Arithmetic, id+"embeddings", m.name+": embeddings", m.percent(m.embedding), exact,
			shape)
		s.row(Arithmetic, id+"attention", m.name+": attention", m.percent(m.attention), exact,
			shape)
		s.row(Arithmetic, id+"predictor", m.name+": predictors", m.percent(m.predictor), exact,
			ranks)
		s.row(Arithmetic, id+"ffn_total", m.name+": FFN", m.percent(m.ffn), exact, shape)
		c := s.all(m)
		run, err := s.simulate(c)
		if err != nil {
			return err
		}
		cached := m.percent(part(m.ffn, run.share(run.resident)/100))
		kind := Simulated
		if key == "opt" { // the share of the FFN is fitted
			kind = Arithmetic
		}
		s.row(kind, id+"ffn_cached_window", m.name+": cached part of the FFN", cached, exact,
			s.inputs(c))
		s.row(kind, id+"total_dram", m.name+": DRAM of all",
			m.percent(m.embedding+m.attention+m.predictor)+cached, exact, append(ranks,
				s.inputs(c)...))
	}
	return s.dramOthers(exact)
}

func (s *study) dramOthers(exact tolerance) error {
	opt, err := s.model("opt")
	if err != nil {
		return err
	}
	const positions = 2048
	kv := int64(positions) * 2 * int64(opt.shape.KVHeads*opt.shape.HeadDim) *
		int64(opt.shape.Layers)
	s.row(Arithmetic, "dram/opt/kv_cache_2048", opt.name+": keys and values of 2048 tokens",
		opt.percent(kv), exact, []Input{other("shape", opt.name, "traces/shapes/models.csv, 2 B "+
			"each; the footnote's formula lacks the layers (I33)")})
	p, err := s.model("persimmon")
	if err != nil {
		return err
	}
	cached := s.val("dram/persimmon/cached_of_ffn") / 100
	without := p.attention + p.ffn
	total := 100 * (float64(p.attention) + cached*float64(p.ffn)) / float64(without)
	s.row(Arithmetic, "dram/persimmon/total", p.name+": DRAM of all", total, exact, []Input{
		s.given("cached share of the FFN", "dram/persimmon/cached_of_ffn"),
		other("weights", "attention and FFN", "shape; the published share holds only without "+
			"embeddings (I21)")})
	return nil
}

// claims adds the headline numbers.
func (s *study) claims() error {
	opt, err := s.model("opt")
	if err != nil {
		return err
	}
	half := gb(sized(opt.moved(), 2)/2) / s.sequential(m1CPU) // seconds
	ffn := gb(sized(opt.ffn, 2))
	text := tolerance{10, "I25: the text takes an FFN of 8.9 GB; it has 8.59 GB"}
	for _, r := range []struct {
		id    string
		chunk units.Bytes
	}{{"1.25", 8 * units.KiB}, {"2.25", 16 * units.KiB}} {
		s.row(Arithmetic, "claims/break-even/"+r.id, "share of the FFN that takes as long as "+
			"hybrid, at "+r.id+" GB/s", 100*s.rate(m1CPU, r.chunk, threads)*half/ffn, text, []Input{
			other("rates", "of the preset m1-max", "its fit")})
	}
	return s.speedups()
}

// speedups compares totals of rows that other tables have.
func (s *study) speedups() error {
	mine := *s
	mine.table, mine.rows = "table3", nil
	if err := mine.table3(); err != nil {
		return err
	}
	s.err = mine.err
	total := map[string]float64{}
	for i := range mine.rows {
		total[mine.rows[i].ID] = mine.rows[i].Ours
	}
	for _, c := range []struct {
		id, what, row string
		kind          Kind
	}{
		{"cpu", "all over naive, M1 Max CPU", "table3/opt/cpu", Simulated},
		{"gpu", "all over naive, RTX 4090", "table3/opt/gpu", Identity}, // of calibrated rows
	} {
		s.row(c.kind, "claims/speedup/"+c.id, c.what,
			total[c.row+"/naive/total"]/total[c.row+"/all/total"], totalTolerance, []Input{
				other("times", "ours", c.row+"/naive/total and "+c.row+"/all/total")})
	}
	s.without("claims/speedup/metal", "all over naive, M2 Ultra Metal", s.misses["m2"])
	return nil
}

// expect is the closed form of the synthetic process.
func (s *study) expect(like string, share float64) (*synth.Expected, error) {
	return synth.Expect(synth.Options{Like: like, Tokens: 1, Predicted: true, ActiveShare: share})
}

package reproduce

import "github.com/windrow-sim/windrow/internal/ioengine"

import "github.com/windrow-sim/windrow/traces/synth"

// windowing adds the shares that a window keeps and loads, of simulated traces.
func (s *study) windowing() error {
	opt, err := s.model("opt")
	if err != nil {
		return err
	}
	full, err := s.simulate(s.optCPU())
	if err != nil {
		return err
	}
	// Without a window, as in Table 2: the volume does not depend on the size of a weight.
	each, err := s.simulate(workload{like: "OPT-6.7B", dtype: 2, unbundled: true, machine: m1Metal})
	if err != nil {
		return err
	}
	rates := []Input{other("predictor", "5 % false negatives, 7 % false positives; 3.3 % active",
		"traces/synth/targets.csv")}
	s.predict("window/opt/predicted", opt.name+": predicted active", each.share(each.read), 5,
		rates...)
	s.calibrate("window/opt/new", opt.name+": new per token", full.share(full.read),
		"process of traces/synth (fitted)").TolerancePercent = 5
	s.calibrate("window/opt/cached", opt.name+": cached", full.share(full.resident),
		"process of traces/synth (fitted)").TolerancePercent = 5
	falcon, err := s.model("falcon")
	if err != nil {
		return err
	}
	w, trace := s.cpuWorkload(falcon)
	m, err := s.simulate(w)
	if err != nil {
		return err
	}
	s.predict("window/falcon/new", falcon.name+": new per token", m.share(m.read), 10, trace...)
	s.predict("window/falcon/cached", falcon.name+": cached", m.share(m.resident), 10, trace...)
	return nil
}

// dram adds the budgets of appendix C.
func (s *study) dram() error {
	const exact = 5
	for _, key := range []string{"opt", "falcon"} {
		m, err := s.model(key)
		if err != nil {
			return err
		}
		id := "dram/" + key + "/"
		shape := other("shape", m.name, "traces/shapes/models.csv")
		ranks := other("ranks", number(float64(m.predictor)/1e6)+" M weights",
			"rank/"+key+"/…: Σ rank·(d_model + d_ffn)")
		s.predict(id+"embeddings", m.name+": embeddings", m.percent(m.embedding), exact, shape)
		s.predict(id+"attention", m.name+": attention", m.percent(m.attention), exact, shape)
		s.predict(id+"predictor", m.name+": predictors", m.percent(m.predictor), exact, shape,
			ranks)
		s.predict(id+"ffn_total", m.name+": FFN", m.percent(m.ffn), exact, shape)
		cached, from, err := s.cachedShare(m)
		if err != nil {
			return err
		}
		window := m.percent(part(m.ffn, cached/100))
		s.predict(id+"ffn_cached_window", m.name+": cached part of the FFN", window, exact, shape,
			from)
		s.predict(id+"total_dram", m.name+": DRAM of all",
			m.percent(m.embedding+m.attention+m.predictor)+window, exact, shape, ranks, from)
	}
	return s.dramOthers()
}

// cachedShare is the percentage of the FFN that the window keeps. It is simulated if the trace is
// fitted to the model.
func (s *study) cachedShare(m *model) (float64, Input, error) {
	if m.key == "falcon" {
		return s.val("window/falcon/cached"), s.given("cached share of the FFN",
			"window/falcon/cached"), nil
	}
	run, err := s.simulate(s.optCPU())
	if err != nil {
		return 0, Input{}, err
	}
	share := run.share(run.resident)
	return share, calibrated("cached share of the FFN", number(share)+" %", "window/opt/cached"),
		nil
}

func (s *study) dramOthers() error {
	opt, err := s.model("opt")
	if err != nil {
		return err
	}
	const positions = 2048
	kv := int64(positions) * 2 * int64(opt.shape.KVHeads*opt.shape.HeadDim) *
		int64(opt.shape.Layers)
	s.predict("dram/opt/kv_cache_2048", opt.name+": keys and values of 2048 tokens",
		opt.percent(kv), 5, other("shape", opt.name, "traces/shapes/models.csv, 2 B each; the "+
			"footnote's formula lacks the layers (I33)"))
	p, err := s.model("persimmon")
	if err != nil {
		return err
	}
	cached := s.val("dram/persimmon/cached_of_ffn") / 100
	without := p.attention + p.ffn
	total := 100 * (float64(p.attention) + cached*float64(p.ffn)) / float64(without)
	s.predict("dram/persimmon/total", p.name+": DRAM of all", total, 5,
		s.given("cached share of the FFN", "dram/persimmon/cached_of_ffn"),
		other("weights", "attention and FFN", "shape; the published share holds only without "+
			"embeddings (I21)"))
	return nil
}

// claims adds the headline numbers.
func (s *study) claims() error {
	opt, err := s.model("opt")
	if err != nil {
		return err
	}
	device := s.machines.devices[m1CPU]
	half := sequential(device).Time(sized(opt.moved(), 2) / 2)
	ffn := sized(opt.ffn, 2)
	for _, r := range []struct {
		id    string
		bytes int64
	}{{"1.25", rowBytes}, {"2.25", bundleBytes}} {
		rate := device.Flash.Throughput(ioengine.Pread, device.Host.Cores, sized(r.bytes, 1),
			threads)
		volume := float64(rate) * half.Seconds()
		s.predict("claims/break-even/"+r.id,
			"share of the FFN that takes as long as hybrid, at "+r.id+" GB/s",
			100*volume/float64(ffn), 10, s.machines.m1Reads...).Note = "I25: the text takes an " +
			"FFN of 8.9 GB; it has 8.59 GB"
	}
	return s.speedups()
}

// speedups compares totals of rows that other tables have.
func (s *study) speedups() error {
	rows := s.rows
	mine := *s
	mine.table = "table3"
	mine.rows = nil
	if err := mine.table3(); err != nil {
		return err
	}
	total := map[string]float64{}
	for i := range mine.rows {
		total[mine.rows[i].ID] = mine.rows[i].Ours
	}
	s.rows, s.err = rows, mine.err
	for _, c := range []struct{ id, what, row string }{
		{"cpu", "all over naive, M1 Max CPU", "table3/opt/cpu"},
		{"metal", "all over naive, M2 Ultra Metal", "table3/opt/metal-m2"},
		{"gpu", "all over naive, RTX 4090", "table3/opt/gpu"},
	} {
		s.predict("claims/speedup/"+c.id, c.what,
			total[c.row+"/naive/total"]/total[c.row+"/all/total"], allTolerance,
			other("times", "ours", c.row+"/naive/total and "+c.row+"/all/total"))
	}
	return nil
}

// expect is the closed form of the synthetic process.
func (s *study) expect(like string, share float64) (*synth.Expected, error) {
	return synth.Expect(synth.Options{Like: like, Tokens: 1, Predicted: true, ActiveShare: share})
}

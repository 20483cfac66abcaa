package answers

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"testing"

	"github.com/windrow-sim/windrow/devicemodels"
	"github.com/windrow-sim/windrow/internal/units"
	"github.com/windrow-sim/windrow/sim"
	"github.com/windrow-sim/windrow/traces"
	"github.com/windrow-sim/windrow/traces/synth"
)

// planQuestion is small: 2 layers of a quarter of OPT-6.7B's units on the M1 Max.
func planQuestion(t *testing.T) PlanConfig {
	t.Helper()
	d, err := devicemodels.Preset("m1-max")
	if err != nil {
		t.Fatal(err)
	}
	src := synthetic(t, synth.Options{Layers: 2, Units: 4096, Tokens: 40, ActiveShare: 0.1})
	m := ModelOf(&src.Head)
	return PlanConfig{Trace: src, Model: m, Device: d, Budget: m.Bytes(), Prefix: 32,
		Parallel: []int{8, 32}, Chunks: []units.Bytes{0}}
}

func planOf(t *testing.T, cfg PlanConfig) *Plan {
	t.Helper()
	p, err := MakePlan(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestPlanIsTheBestThatFits(t *testing.T) {
	cfg := planQuestion(t)
	rows := windowsOf(t, cfg.Trace.(*traces.Memory), false, cfg.Device.Flash.Align)
	cfg.Budget = account(t, cfg.Model, rows, 5, Holding{}).Total
	plan := planOf(t, cfg)
	if plan.Best.Window != 5 || plan.Best.Memory > cfg.Budget ||
		plan.Memory.Total != plan.Best.Memory {
		t.Errorf("window %d with %v of memory; the budget of %v is that of window 5, and a "+
			"longer one is never slower", plan.Best.Window, plan.Best.Memory, cfg.Budget)
	}
	if len(plan.Winners) != 3 {
		t.Fatalf("%d winners", len(plan.Winners))
	}
	for i := range plan.Winners {
		if w := &plan.Winners[i]; !w.Fits || w.TokensPerS > plan.Best.TokensPerS*(1+negligible) ||
			w.Prediction == nil {
			t.Errorf("winner %d: %+v", i, w)
		}
	}
	beyond := 0
	for i, p := range plan.Pareto {
		if i > 0 && !(p.Memory > plan.Pareto[i-1].Memory &&
			p.TokensPerS > plan.Pareto[i-1].TokensPerS) {
			t.Errorf("point %d of the front is beaten by the one before: %+v", i, p)
		}
		if p.Fits != (p.Memory <= cfg.Budget) {
			t.Errorf("point %d: fits %v with %v", i, p.Fits, p.Memory)
		}
		if !p.Fits {
			beyond++
		}
	}
	if beyond == 0 {
		t.Error("the front ends with the budget; what more memory would bring is not shown")
	}
}

// TestNeedsAreEnoughAndNeeded is invariant 3, checked by simulating the needed values and slightly
// worse ones.
func TestNeedsAreEnoughAndNeeded(t *testing.T) {
	cfg := planQuestion(t)
	rows := windowsOf(t, cfg.Trace.(*traces.Memory), false, cfg.Device.Flash.Align)
	// so that reads take most of the time
	cfg.Budget = account(t, cfg.Model, rows, 0, Holding{}).Total
	cfg.Target = planOf(t, cfg).Best.TokensPerS * 1.04
	plan := planOf(t, cfg)
	if plan.Meets {
		t.Fatal("the target is already met")
	}
	p, err := newPlanner(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	reached := 0
	for _, l := range leversOf(sim.OnHost) {
		n := needNamed(plan.Needs, l.name)
		if n == nil || n.Needed == nil {
			if n != nil && !(*n.Ceiling < cfg.Target) {
				t.Errorf("%s: said to be not enough, with %g tokens/s for a target of %g", l.name,
					*n.Ceiling, cfg.Target)
			}
			continue
		}
		reached++
		at := func(better float64) float64 {
			if l.inverse {
				better = 1 / better
			}
			rate, _, err := p.simulate(p.prefix, l.moved(cfg.Device, better), plan.Best.Setting, 0)
			if err != nil {
				t.Fatal(err)
			}
			return rate.Value
		}
		worse := *n.Factor / (1 + 3*needTolerance)
		if l.whole {
			worse = (*n.Needed - 1) / n.Now
		}
		if at(*n.Factor) < cfg.Target || at(worse) >= cfg.Target {
			t.Errorf("%s: %g times as good gives %g tokens/s and %g times %g; the target is %g",
				l.name, *n.Factor, at(*n.Factor), worse, at(worse), cfg.Target)
		}
	}
	if reached < 3 {
		t.Errorf("only %d levers reach a target of 4 %% more", reached)
	}
	share := needNamed(plan.Needs, nameActiveShare)
	if share == nil || share.Needed == nil || !(*share.Needed < share.Now) {
		t.Errorf("active share: %+v", share)
	}
}

func needNamed(list []Need, name string) *Need {
	for i := range list {
		if list[i].Name == name {
			return &list[i]
		}
	}
	return nil
}

// TestRoomIsShown: a target far below what is reached leaves room everywhere.
func TestRoomIsShown(t *testing.T) {
	cfg := planQuestion(t)
	cfg.Target = planOf(t, cfg).Best.TokensPerS * 0.8
	plan := planOf(t, cfg)
	if !plan.Meets || plan.Leanest == nil || plan.Leanest.TokensPerS < cfg.Target ||
		plan.Leanest.Memory > plan.Best.Memory {
		t.Errorf("meets %v, leanest %+v", plan.Meets, plan.Leanest)
	}
	for _, n := range plan.Needs {
		if n.Factor == nil || *n.Factor > 1 {
			t.Errorf("%s has no room: %+v", n.Name, n)
		}
	}
}

// TestElasticitiesOfAllTimesSumToOne: without overlap, a machine that does everything f times as
// fast is f times as fast (Euler).
func TestElasticitiesOfAllTimesSumToOne(t *testing.T) {
	plan := planOf(t, planQuestion(t))
	sum, last := 0.0, math.Inf(1)
	for _, s := range plan.Sensitivities {
		if s.Name == "all of the flash" || s.Name == "compute" {
			sum += s.Elasticity
		}
		if a := math.Abs(s.Elasticity); a > last {
			t.Errorf("%s is not ranked: %g after %g", s.Name, a, last)
		} else {
			last = a
		}
		if wantsLess := s.Name == "LTFB" ||
			s.Name == nameActiveShare; wantsLess != (s.Elasticity < 0) {
			t.Errorf("elasticity of %s is %g", s.Name, s.Elasticity)
		}
	}
	if math.Abs(sum-1) > 0.01 {
		t.Errorf("flash and compute have elasticities of %g together, want 1", sum)
	}
}

// TestPurchases: the machine's own flash among the others is worth exactly what it is, and a faster
// one more.
func TestPurchases(t *testing.T) {
	cfg := planQuestion(t)
	faster := *cfg.Device
	faster.Name, faster.Flash.LTFB = "faster", cfg.Device.Flash.LTFB/2
	cfg.Others = []*devicemodels.Device{cfg.Device, &faster}
	plan := planOf(t, cfg)
	if len(plan.Purchases) != 2 || plan.Purchases[0].Name != "faster" ||
		plan.Purchases[0].Ratio <= 1 || math.Abs(plan.Purchases[1].Ratio-1) > 2*negligible {
		t.Errorf("%+v", plan.Purchases)
	}
}

func TestParetoWithEnergy(t *testing.T) {
	joules := func(v float64) *float64 { return &v }
	front := pareto([]Point{
		{Memory: 3, TokensPerS: 3, Joules: joules(3)}, {Memory: 2, TokensPerS: 2,
			Joules: joules(2)},
		{Memory: 2, TokensPerS: 1, Joules: joules(1)}, {Memory: 2, TokensPerS: 2,
			Joules: joules(2)}, {Memory: 3, TokensPerS: 2, Joules: joules(2)},
	})
	if len(front) != 3 || front[0].TokensPerS != 2 || front[1].TokensPerS != 1 ||
		front[2].Memory != 3 {
		t.Errorf("%+v", front)
	}
}

func TestThinKeepsProportionsAndNests(t *testing.T) {
	m := synthetic(t, synth.Options{Layers: 2, Tokens: 8, Predicted: true})
	half, less := thin(m, 0.5), thin(m, 0.25)
	for i := range m.List {
		for l := range m.List[i].Active {
			for w := range m.List[i].Active[l] {
				a, h, q := m.List[i].Active[l][w], half.List[i].Active[l][w],
					less.List[i].Active[l][w]
				if h&^a != 0 || q&^h != 0 {
					t.Fatalf("token %d, layer %d: thinning added units", i, l)
				}
			}
		}
	}
	for _, predicted := range []bool{false, true} {
		if r := activeShare(half, predicted) / activeShare(m, predicted); math.Abs(r-0.5) > 0.03 {
			t.Errorf("half of the units kept %g of the activity", r)
		}
	}
}

func TestPlanIsDeterministic(t *testing.T) {
	text := func() string {
		cfg := planQuestion(t)
		cfg.Target, cfg.Prefix = 1e3, 12
		b, err := json.Marshal(planOf(t, cfg))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	if a, b := text(), text(); a != b {
		t.Errorf("two plans differ:\n%s\n%s", a, b)
	}
}

func TestPlanRefuses(t *testing.T) {
	cfg := planQuestion(t)
	cfg.Budget = units.MiB
	if plan := planOf(t, cfg); plan.Fits || plan.Best != nil || plan.No() == "" ||
		plan.Memory.Window != 0 || plan.Memory.Total <= cfg.Budget {
		t.Errorf("a budget below the floor: %+v", plan)
	}
	cfg = planQuestion(t)
	cfg.Target = math.NaN()
	if _, err := MakePlan(context.Background(), cfg); !errors.Is(err, ErrInput) {
		t.Errorf("a target that is no number: %v", err)
	}
	cfg = planQuestion(t)
	cfg.Predicted = true
	if _, err := MakePlan(context.Background(), cfg); !errors.Is(err, ErrInput) {
		t.Errorf("predicted masks of a trace without: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := MakePlan(ctx, planQuestion(t)); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestSpeedLeavesTheFirstTokensOut(t *testing.T) {
	run := &traces.Run{}
	for seq := range uint32(2) {
		for i, dur := range []units.Nanos{100, 10, 10} {
			for range 2 { // parts
				run.Rows = append(run.Rows, traces.RunRow{Token: seq*3 + uint32(i), Seq: seq,
					Dur: dur})
			}
		}
	}
	run.Meta.Totals.TokensPerS = 7
	for warm, want := range map[int]float64{0: 6 / 480e-9, 1: 4 / 80e-9, 2: 2 / 40e-9, 3: 7} {
		if got := speed(run, warm); math.Abs(got/want-1) > 1e-12 {
			t.Errorf("without the first %d tokens: %g tokens/s, want %g", warm, got, want)
		}
	}
}

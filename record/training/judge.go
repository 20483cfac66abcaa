package training

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/windrow-sim/windrow/engine/checkpoint"
	"github.com/windrow-sim/windrow/engine/predictor"
	"github.com/windrow-sim/windrow/engine/predictor/centroid"
	"github.com/windrow-sim/windrow/internal/refusal"
	"github.com/windrow-sim/windrow/record"
)

// Judge says how good a predictor of either kind is on the trace of a configuration, of which only
// Trace, Workers, Speeds and Tell are used.
func Judge(ctx context.Context, path string, cfg Config) (*Result, error) {
	if err := cfg.Speeds.check(); err != nil {
		return nil, err
	}
	r := &Result{}
	p, err := predictor.Load(ctx, path)
	if errors.Is(err, checkpoint.ErrUnsupported) {
		sets, other := centroid.Load(ctx, path)
		if other == nil {
			r.Centroid, err = cfg.judgeCentroids(ctx, path, sets)
			return r, kinded(err)
		}
		if !errors.Is(other, checkpoint.ErrUnsupported) {
			err = other
		}
	}
	if err != nil {
		return nil, err
	}
	r.LowRank, err = cfg.judgeLowRank(ctx, path, p)
	return r, kinded(err)
}

func (c *Config) judgeLowRank(ctx context.Context, path string,
	p *predictor.Predictor) (*LowRankResult, error) {
	feature, ahead := p.Facts().Feature.Kind()
	t, err := c.openJudged(ctx, path, p.Facts().Trace, string(feature), ahead)
	if err != nil {
		return nil, err
	}
	defer t.close()
	s := t.test
	if err := p.For(s.Layers(), s.Width(), s.Units(), s.Header().ModelSHA256); err != nil {
		return nil, err
	}
	scores, err := predictor.Evaluate(ctx, p, s, 0, s.Len(), c.Workers)
	if err != nil {
		return nil, err
	}
	r := newLowRankResult(path, p, s.Header().Model)
	r.add(filepath.Base(t.testPath), p, scores)
	r.Texts[0].Speed, err = c.Speeds.of(s, s.All(), lowRankNamer(p), path)
	return r, err
}

func (c *Config) judgeCentroids(ctx context.Context, path string,
	p *centroid.Predictor) (*CentroidResult, error) {
	t, err := c.openJudged(ctx, path, p.Facts().Trace, p.Feature(), false)
	if err != nil {
		return nil, err
	}
	defer t.close()
	judged := record.TokenSamples{Of: t.test}
	if err := p.Fits(t.test.Header().ModelSHA256, judged.Shape()); err != nil {
		return nil, err
	}
	r := newCentroidResult(path, t.test, p)
	if err := r.judge(ctx, c, p, filepath.Base(t.testPath), judged); err != nil {
		return nil, err
	}
	n, err := centroidNamer(p)
	if err != nil {
		return nil, err
	}
	r.Texts[0].Speed, err = c.Speeds.of(t.test, t.test.All(), n, path)
	return r, err
}

// openJudged opens the trace to judge by. learned is the hash of the trace that the predictor was
// trained on, feature the kind that it predicts from.
func (c *Config) openJudged(ctx context.Context, path, learned, feature string,
	ahead bool) (t *texts, err error) {
	t = &texts{testPath: c.Trace}
	if t.test, err = t.samples(ctx, &c.Tell, t.testPath, ahead); err != nil {
		t.close()
		return nil, err
	}
	switch held := t.test.Header().FeatureKind; {
	case feature == "":
		c.Tell.Notef("note: %s does not say what it predicts from; %s is taken", path, held)
	case feature != held:
		t.close()
		return nil, refusal.Config("%s predicts from %s, and %s holds %s; record one with "+
			"{FeatureKind} %s", path, feature, t.testPath, held, feature)
	}
	if learned != "" && learned == t.test.SHA256() {
		c.Tell.Notef("warning: the predictor was trained on this trace; other texts say more")
	}
	return t, nil
}

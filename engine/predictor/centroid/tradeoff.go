package centroid

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/windrow-sim/windrow/internal/units"
)

// TradeoffOptions configure a study of sizes.
type TradeoffOptions struct {
	Counts []int // sizes of the vocabularies
	KMax   []int // sizes of the active sets
	// Sized makes vocabularies for each K_max, with centroids of that many units
	// (ClusterOptions.Size). They find more true units than one vocabulary for all, because less is
	// padded and truncated. The study takes as many times longer.
	Sized   bool
	Holdout float64 // share of the training samples that decides when training ends; 0 = 0.1
	Build   BuildOptions
	Train   TrainOptions
	// Progress, if not nil, is called after each predictor's evaluation, from one goroutine.
	Progress func(done, total int)
}

// Tradeoff is the result of one predictor, over all layers.
type Tradeoff struct {
	Count int         `json:"count"` // centroids in a vocabulary, at most
	Size  int         `json:"size"`  // units of a centroid; 0 = free
	Bytes units.Bytes `json:"bytes"`
	FLOPs int64       `json:"flops"`
	Mean  LayerReport `json:"mean"`
}

// Tradeoffs trains a predictor for each vocabulary size and evaluates it on test, which must have
// no document in common with train.
func Tradeoffs(ctx context.Context, train, test Samples, opt TradeoffOptions) ([]Tradeoff, error) {
	setDefault(&opt.Holdout, 0.1)
	fit, held, err := Split(train, opt.Holdout)
	if err != nil {
		return nil, err
	}
	type job struct {
		count, size int
		kMax        []int
	}
	var jobs []job
	for _, n := range opt.Counts {
		if !opt.Sized {
			jobs = append(jobs, job{n, opt.Build.Size, opt.KMax})
			continue
		}
		for _, k := range opt.KMax {
			jobs = append(jobs, job{n, k, []int{k}})
		}
	}
	list := make([]Tradeoff, 0, len(jobs))
	for i, j := range jobs {
		opt.Build.Count, opt.Build.Size = j.count, j.size
		book, err := Build(ctx, fit, opt.Build)
		if err != nil {
			return nil, err
		}
		p, err := Train(ctx, fit, held, book, opt.Train)
		if err != nil {
			return nil, err
		}
		r, err := Evaluate(ctx, p, test, EvaluateOptions{KMax: j.kMax, Workers: opt.Train.Workers})
		if err != nil {
			return nil, err
		}
		list = append(list, Tradeoff{Count: j.count, Size: j.size, Bytes: r.Bytes, FLOPs: r.FLOPs,
			Mean: r.Mean})
		if opt.Progress != nil {
			opt.Progress(i+1, len(jobs))
		}
	}
	return list, nil
}

// WriteTradeoffs writes a line for each vocabulary size and K_max. Shares are in percent.
func WriteTradeoffs(w io.Writer, list []Tradeoff) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "centroids\tmemory\ttop-1\tK_max\toracle recall\tpredicted "+
		"recall\tprecision\tratio\tstatic recall\t")
	for _, row := range list {
		for _, s := range row.Mean.Sets {
			fmt.Fprintf(t, "%d\t%v\t%s\t%d\t%.1f\t%.1f\t%.1f\t%.2f\t%s\t\n", row.Count, row.Bytes,
				percents(row.Mean.Top1), s.KMax,
				100*s.Oracle.Recall, 100*s.Predicted.Recall, 100*s.Predicted.Precision,
				s.Predicted.Ratio, s.static())
		}
	}
	return t.Flush()
}

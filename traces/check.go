package traces

import (
	"context"
	"errors"
	"fmt"
)

// Report is the result of a full scan of a trace.
type Report struct {
	Path      string   `json:"path"`
	Bytes     int64    `json:"bytes"`
	SHA256    string   `json:"sha256"`
	Verified  bool     `json:"verified"` // the SHA-256 is that of the manifest
	Complete  bool     `json:"complete"`
	Header    Header   `json:"header"`
	Tokens    int      `json:"tokens"`
	Prefill   int      `json:"prefill_tokens"`
	Sequences int      `json:"sequences"`
	Rows      int      `json:"rows"`
	Batches   int      `json:"batches"`
	Compress  string   `json:"compress"`
	Active    int64    `json:"active_units"`    // set bits of all active masks
	Predicted int64    `json:"predicted_units"` // of all predicted masks
	Magnitude int64    `json:"magnitudes,omitempty"`
	Feature   int64    `json:"feature_numbers,omitempty"` // of all features
	NotFinite int64    `json:"feature_numbers_not_finite,omitempty"`
	Warnings  []string `json:"warnings"`
}

// CheckFile opens a trace and reads every row, which checks all invariants of the package. The
// Report is complete only when the error is nil.
func CheckFile(ctx context.Context, path string) (rep Report, err error) {
	rep.Path = path
	r, err := Open(ctx, path)
	if err != nil {
		return rep, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	rep = Report{
		Path: path, Bytes: int64(len(r.mapping.Data())), SHA256: r.SHA256(), Verified: r.Verified(),
		Complete: r.Complete(),
		Header:   *r.Header(), Rows: r.rows, Batches: r.Batches(), Compress: r.Compress(),
		Warnings: r.Warnings(),
	}
	t := Token{Reuse: &Buffer{}}
	var sequences Sequences
	for i := range r.Tokens() {
		if err := r.Token(i, &t); err != nil {
			return rep, err
		}
		if sequences.Begins(t.Seq) {
			rep.Sequences++
		}
		if t.Phase == Prefill {
			rep.Prefill++
		}
		for _, m := range t.Active {
			rep.Active += int64(m.Count())
		}
		for _, m := range t.Predicted {
			rep.Predicted += int64(m.Count())
		}
		for _, m := range t.Magnitude {
			rep.Magnitude += int64(len(m))
		}
		for _, f := range t.Feature {
			rep.Feature += int64(len(f) / featureNumberBytes)
			rep.NotFinite += int64(notFinite(f))
		}
		rep.Tokens++
	}
	if rep.NotFinite > 0 {
		rep.Warnings = append(rep.Warnings,
			fmt.Sprintf("%d of %d numbers of features are infinite or not a number: too large "+
				"for float16, or wrong in the model",
				rep.NotFinite, rep.Feature))
	}
	return rep, nil
}

package answers

import (
	_ "embed"
	"encoding/csv"
	"fmt"
	"strconv"
	"strings"
)

//go:embed published.csv
var publishedTable string

// Study is one line of NeuroPrefetcher's study of twenty systems on a Jetson AGX Orin with 11.9 GiB
// available. The model is Mistral-7B-v0.1 in fp16 (13.5 GiB), or OPT-6.7B (12.4 GiB) for systems
// that know no other.
type Study struct {
	Group   string // as published
	Systems string // the systems that the study names
	Count   int
	Class   string  // one of the classes; "" = memory does not decide
	Verdict Verdict // the published outcome
	Source  string
	Quality string
	Note    string
}

// PublishedStudy returns the study.
func PublishedStudy() ([]Study, error) {
	lines, err := csv.NewReader(strings.NewReader(publishedTable)).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("answers: published.csv: %w", err)
	}
	var list []Study
	for _, l := range lines[1:] {
		count, err := strconv.Atoi(l[2])
		if err != nil {
			return nil, fmt.Errorf("answers: published.csv: count of %s: %w", l[0], err)
		}
		list = append(list, Study{Group: l[0], Systems: l[1], Count: count, Class: l[3],
			Verdict: Verdict(l[4]), Source: l[5], Quality: l[6], Note: l[7]})
	}
	return list, nil
}

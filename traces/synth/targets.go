package synth

import (
	_ "embed"
	"encoding/csv"
	"fmt"
	"strconv"
	"strings"
)

//go:embed targets.csv
var targetTable string

// reference is the model to which the process is fitted: its temporal statistics are published.
const reference = "OPT-6.7B"

// Target is one published number, a row of targets.csv, that the generator aims at.
type Target struct {
	Model    string `json:"model"`
	Quantity string `json:"quantity"`
	// "mean" over the layers, "each" of them, or a layer counted from 1
	Layer   string  `json:"layer"`
	Percent float64 `json:"value_percent"`
	Source  string  `json:"source"`
	Quality string  `json:"quality"`
	Note    string  `json:"note"`
}

// Targets returns the published numbers of a model, in the order of the table. The name is spelt as
// in shapes.Info.Name.
func Targets(model string) ([]Target, error) {
	lines, err := csv.NewReader(strings.NewReader(targetTable)).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("synth: targets.csv: %w", err)
	}
	var list []Target
	for _, line := range lines[1:] {
		if line[0] != model {
			continue
		}
		value, err := strconv.ParseFloat(line[3], 64)
		if err != nil {
			return nil, fmt.Errorf("synth: targets.csv: %s of %s: %w", line[1], line[0], err)
		}
		list = append(list, Target{Model: line[0], Quantity: line[1], Layer: line[2],
			Percent: value,
			Source:  line[4], Quality: line[5], Note: line[6]})
	}
	return list, nil
}

// statistics are the targets of a model that the generator uses, as fractions of 1.
type statistics struct {
	share         float64 // mean active share over layers
	flat          bool    // every layer has the share; else they follow the reference model's depth
	falseNegative float64 // per active neuron
	falsePositive float64 // per inactive neuron
	// share of predicted neurons that were predicted at the previous token; 0 = as the reference
	// model
	persistence float64
	origin      string // for the header: what is published and what is assumed
}

// statisticsOf returns the targets of a model. Values that are not published are those of the
// reference model. A share > 0 replaces the published one.
func statisticsOf(model string, share float64) (statistics, error) {
	base, err := Targets(reference)
	if err != nil {
		return statistics{}, err
	}
	own, err := Targets(model)
	if err != nil {
		return statistics{}, err
	}
	var s statistics
	s.fill(base)
	s.share = 0
	s.fill(own)
	s.origin = fmt.Sprintf("active share %.4g %% (published)", 100*s.share)
	if share > 0 {
		s.share = share
		s.origin = fmt.Sprintf("active share %.4g %% (given)", 100*share)
	}
	if s.share == 0 {
		return statistics{}, fmt.Errorf("synth: model %s: no active share is published; give "+
			"one, for example 0.033 as %s",
			model, reference)
	}
	switch {
	case model == reference:
		s.origin += "; temporal parameters fitted to " + reference
	case s.persistence > 0:
		s.origin += fmt.Sprintf("; persistence %.4g %% published, other temporal parameters "+
			"assumed as %s", 100*s.persistence, reference)
	default:
		s.origin += "; predictor errors and temporal parameters assumed as " + reference
	}
	return s, nil
}

func (s *statistics) fill(targets []Target) {
	for _, t := range targets {
		if t.Layer != "mean" && t.Layer != "each" {
			continue
		}
		switch value := t.Percent / 100; t.Quantity {
		case "active_share":
			s.share, s.flat = value, t.Layer == "each"
		case "false_negative":
			s.falseNegative = value
		case "false_positive":
			s.falsePositive = value
		case "persistence":
			s.persistence = value
		}
	}
}

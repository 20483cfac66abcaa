package model

import (
	"fmt"
	"slices"
	"strings"

	"github.com/windrow-sim/windrow/engine/checkpoint"
)

// family describes the models with one reader of config.json and one table of tensor names. Each
// family is a file of this package, family_NAME.go, and a row of families. read returns what its
// layers compute as an Arch: package engine has no code for a single family.
type family struct {
	name  string // Arch.Family, stored in images
	title string // for people, with the models that count as this family
	// modelTypes and classes are the accepted values of model_type and architectures in
	// config.json.
	modelTypes, classes []string
	// read makes the Arch of a config.json.
	read func(f *fields) Arch
	// names returns the names of tensors in a Hugging Face folder.
	names func(a *Arch) naming
	// Every model of the family has the traits of always; some models also have those of sometimes.
	// An image with any other trait is refused.
	always, sometimes traits
	// finalNormByTensors lets the tensors decide whether there is a final norm, for a family with a
	// config.json that may be wrong about it.
	finalNormByTensors bool
}

// families lists the families in the order of help texts.
func families() []*family {
	return []*family{optFamily(), llamaFamily(), falconFamily(), persimmonFamily(), phiFamily(),
		qwen2Family(), qwen3Family(), gptNeoXFamily(), phi3Family(),
		gemmaFamily()}
}

// Families lists the families for people: "OPT", "Llama (Mistral, ...)", ...
func Families() []string {
	var list []string
	for _, f := range families() {
		list = append(list, f.title)
	}
	return list
}

// familyOf returns the family of a checked architecture.
func familyOf(a *Arch) *family {
	f := findFamily(func(f *family) bool { return f.name == a.Family })
	if f == nil {
		panic("model: the architecture was not checked") // readConfig and decodeArch check
	}
	return f
}

func findFamily(is func(*family) bool) *family {
	list := families()
	if i := slices.IndexFunc(list, is); i >= 0 {
		return list[i]
	}
	return nil
}

// traits are properties of an architecture that only models of some families have.
type traits uint16

const (
	gated            traits = 1 << iota // a neuron has a gate row
	rmsNorm                             // norms without mean and bias
	postNorm                            // norms behind the residual additions
	parallel                            // attention and FFN start from the same residual
	sharedNorm                          // one norm for both
	qkNorm                              // norms over each head's query and key
	learnedPositions                    // in place of rotary ones
	projected                           // embeddings of another width than d_model
	headBias                            // a bias of the output head
	someWindows                         // a sliding window in some layers, not in all
	longRope                            // rotary factors that depend on the context
	outNorms                            // norms over the outputs of attention and FFN
	embedScale                          // scaled embeddings
	softCaps                            // bounds of the scores or the logits
	localRotary                         // other rotary positions in layers with a window
)

// trait describes one of the traits.
type trait struct {
	bit  traits
	name string
	has  func(a *Arch) bool
}

func allTraits() []trait {
	return []trait{
		{gated, "gate rows", func(a *Arch) bool { return a.gated() }},
		{rmsNorm, "RMS norms", func(a *Arch) bool { return a.RMSNorm }},
		{postNorm, "norms behind the residual additions", func(a *Arch) bool { return a.PostNorm }},
		{parallel, "parallel attention and FFN", func(a *Arch) bool { return a.Parallel }},
		{sharedNorm, "one norm for attention and FFN", func(a *Arch) bool { return a.SharedNorm }},
		{qkNorm, "norms of queries and keys", func(a *Arch) bool { return a.QKNorm }},
		{learnedPositions, "learned positions", func(a *Arch) bool { return a.Positions }},
		{projected, "projected embeddings", func(a *Arch) bool {
			return a.Embed != a.Shape.DModel
		}},
		{headBias, "a bias of the output head", func(a *Arch) bool { return a.HeadBias }},
		{someWindows, "a sliding window in some layers", func(a *Arch) bool {
			return len(a.FullLayers) > 0
		}},
		{longRope, "rotary factors by context (longrope)", func(a *Arch) bool {
			return a.Rotary.longRope()
		}},
		{outNorms, "norms over the outputs of attention and FFN", func(a *Arch) bool {
			return a.OutNorms
		}},
		{embedScale, "scaled embeddings", func(a *Arch) bool { return a.EmbedScale != 0 }},
		{softCaps, "soft caps of scores or logits", func(a *Arch) bool {
			return a.ScoreCap != 0 || a.LogitCap != 0
		}},
		{localRotary, "other rotary positions in layers with a window", func(a *Arch) bool {
			return a.LocalRotary.Dim > 0
		}},
	}
}

// String lists the traits by name.
func (t traits) String() string {
	var list []string
	for _, one := range allTraits() {
		if t&one.bit != 0 {
			list = append(list, one.name)
		}
	}
	return strings.Join(list, ", ")
}

// traits returns the traits of an architecture.
func (a *Arch) traits() traits {
	var t traits
	for _, one := range allTraits() {
		if one.has(a) {
			t |= one.bit
		}
	}
	return t
}

// check refuses an architecture that no model of the family has.
func (f *family) check(a *Arch) error {
	has := a.traits()
	if extra := has &^ (f.always | f.sometimes); extra != 0 {
		return fmt.Errorf("%w: %v: no model of family %s has this", checkpoint.ErrUnsupported,
			extra, f.name)
	}
	if lacks := f.always &^ has; lacks != 0 {
		return fmt.Errorf("%w: a model without %v: every model of family %s has this",
			checkpoint.ErrUnsupported, lacks, f.name)
	}
	return nil
}

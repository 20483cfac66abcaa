package sweep

import (
	"testing"

	"github.com/windrow-sim/windrow/traces"
	"github.com/windrow-sim/windrow/traces/batch"
	"github.com/windrow-sim/windrow/traces/synth"
)

// The headroom of every configuration is what sim says of it, for all policies, masks, batches, and
// sequences.
func TestHeadroom(t *testing.T) {
	src := smallTrace(t)
	stream, err := batch.NewStream(src)
	if err != nil {
		t.Fatal(err)
	}
	union, err := stream.Union(2, 1)
	if err != nil {
		t.Fatal(err)
	}
	configs := inBatches(mixed(testDevice("servers", nil))[35:], 0, 2)
	for i, r := range run(t, FromSource(src, 0), configs, Options{Headroom: true}) {
		var on traces.Source = src
		if configs[i].Batch > 0 {
			on = union
		}
		want, err := configs[i].Headroom(on)
		if err != nil {
			t.Fatal(err)
		}
		if r.Least == nil || *r.Least != want.Least || r.Misses != want.Loads ||
			want.Least > want.Loads {
			t.Errorf("%d, %s: %v of %d misses, want %d of %d", i, r.Policy, r.Least, r.Misses,
				want.Least, want.Loads)
		}
	}
}

// It is found for a trace that is made on the way, too, and only when asked for.
func TestHeadroomOfSynthetic(t *testing.T) {
	opt := synth.Options{Like: "opt-125m", Layers: 2, Units: 500, Tokens: 30, Seed: 9,
		ActiveShare: 0.08}
	made, err := FromSynth(opt, 0)
	if err != nil {
		t.Fatal(err)
	}
	memory, err := synth.Collect(t.Context(), opt)
	if err != nil {
		t.Fatal(err)
	}
	list := mixed(testDevice("servers", nil))[6:7]
	want, err := list[0].Headroom(memory)
	if err != nil {
		t.Fatal(err)
	}
	if r := run(t, made, list, Options{Headroom: true})[0]; *r.Least != want.Least {
		t.Errorf("%d of %d misses, want %+v", *r.Least, r.Misses, want)
	}
	if r := run(t, made, list, Options{})[0]; r.Least != nil {
		t.Errorf("%d misses at least, which nobody asked for", *r.Least)
	}
}

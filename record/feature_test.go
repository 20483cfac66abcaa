package record

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/windrow-sim/windrow/engine"
	"github.com/windrow-sim/windrow/engine/model"
	"github.com/windrow-sim/windrow/engine/tokenizer"
	"github.com/windrow-sim/windrow/internal/mask"
	"github.com/windrow-sim/windrow/kernels/ref"
	"github.com/windrow-sim/windrow/traces"
)

func TestRecorderOfFeatures(t *testing.T) {
	var got [][]byte
	r := newFor(t, traces.Header{Layers: 1, Units: 64, FeatureKind: traces.FFNInput,
		FeatureWidth: 3}, func(tok *traces.Token) error {
		got = append(got, slices.Clone(tok.Feature[0]))
		return nil
	})
	for _, input := range [][]float32{{1, -2, 0.5}, {65504, 1e6, float32(math.Inf(-1))}} {
		if err := r.Layer(&engine.LayerEvent{Active: []uint64{0}, Feature: input}); err != nil {
			t.Fatal(err)
		}
		clear(input) // the engine goes on with it
		if err := r.Token(&engine.TokenEvent{}); err != nil {
			t.Fatal(err)
		}
	}
	want := [][]byte{{0x00, 0x3C, 0x00, 0xC0, 0x00, 0x38}, {0xFF, 0x7B, 0x00, 0x7C, 0x00, 0xFC}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("features (-want +got):\n%s", d)
	}
	err := r.Layer(&engine.LayerEvent{Active: []uint64{0}, Feature: []float32{1}})
	if err == nil || !strings.Contains(err.Error(), "layer 0 has a feature of 1 numbers of kind "+
		"ffn_input: those of the trace have 3") {
		t.Errorf("a feature of another width: %v", err)
	}
	err = r.Layer(&engine.LayerEvent{Active: []uint64{0}, Feature: []float32{1, 2, 3},
		FeatureKind: engine.Residual})
	if err == nil || !strings.Contains(err.Error(), "of kind residual: those of the trace have "+
		"3 and are of kind ffn_input") {
		t.Errorf("a feature of another kind: %v", err)
	}
}

func TestNewForRefusesWhatTheEngineDoesNotTell(t *testing.T) {
	for want, head := range map[string]traces.Header{
		`features of kind "key"`: {Layers: 1, Units: 64, FeatureKind: "key", FeatureWidth: 3},
		"predicted masks":        {Layers: 1, Units: 64, HasPredicted: true},
	} {
		if _, err := NewFor(nil, &head); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error with %q, got %v", want, err)
		}
	}
}

// tales is the shipped model, with its tokenizer.
type tales struct {
	weights *model.Weights
	rows    engine.Rows
	text    *tokenizer.Tokenizer
	head    traces.Header
}

func openTales(t *testing.T) *tales {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tales.flash.safetensors")
	if _, err := model.Pack(context.Background(), "../examples/models/tales", path,
		model.PackOptions{}); err != nil {
		t.Fatal(err)
	}
	image, err := model.OpenImage(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { image.Close() })
	m := &tales{head: traces.Header{
		UnitKind: traces.Neuron, Layers: image.Shape.Layers, Units: image.Shape.DFFN,
		HasMagnitude: true,
		FeatureKind:  traces.FFNInput, FeatureWidth: image.Shape.DModel,
	}}
	if m.weights, err = image.Weights(t.Context()); err != nil {
		t.Fatal(err)
	}
	bundles := make([][]byte, image.Shape.Layers)
	for l := range bundles {
		bundles[l] = make([]byte, image.LayerBytes())
		if err := image.Bundles(l, bundles[l]); err != nil {
			t.Fatal(err)
		}
	}
	if m.rows, err = engine.NewResident(m.weights, bundles, image.Geometry()); err != nil {
		t.Fatal(err)
	}
	if m.text, err = tokenizer.Load(t.Context(), "../examples/models/tales"); err != nil {
		t.Fatal(err)
	}
	return m
}

// prompts are the first of those that come with the model.
func (m *tales) prompts(t *testing.T, n int) [][]uint32 {
	t.Helper()
	text, err := os.ReadFile("../examples/prompts/tales.txt")
	if err != nil {
		t.Fatal(err)
	}
	var ids [][]uint32
	for _, line := range strings.SplitN(string(text), "\n", n+1)[:n] {
		ids = append(ids, m.text.Encode(line))
	}
	return ids
}

// record runs the prompts in batches and returns the trace.
func (m *tales) record(t *testing.T, prompts [][]uint32, size, chunk int,
	watch func(engine.Observer) engine.Observer) *traces.Memory {
	t.Helper()
	trace := &traces.Memory{Head: m.head}
	order := NewInOrder(appendFunc(func(tok *traces.Token) error {
		trace.List = append(trace.List, clone(tok))
		return nil
	}))
	r, err := NewFor(order, &trace.Head)
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.New(m.weights, m.rows, engine.Config{Threads: 1, Sequences: size, Batch: size -
		1 + chunk, Observer: watch(r), FeatureKind: r.FeatureKind()})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	for from := 0; from < len(prompts); from += size {
		opt := engine.GenerateOptions{Seq: from, MaxTokens: 7, Sampling: engine.Sampling{
			Temperature: 0.8, Seed: 3}, Vocab: m.text.VocabSize(), Chunk: chunk}
		if _, err := e.GenerateBatch(context.Background(),
			prompts[from:min(from+size, len(prompts))], opt, func(int, uint32) error {
				return nil
			}); err != nil {
			t.Fatal(err)
		}
		if err := order.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	return trace
}

func unwatched(o engine.Observer) engine.Observer { return o }

// inputs keeps what the engine showed to the Recorder.
type inputs struct {
	engine.Observer
	list [][]float32 // layer after layer, token after token
}

func (o *inputs) Layer(ev *engine.LayerEvent) error {
	o.list = append(o.list, slices.Clone(ev.Feature))
	return o.Observer.Layer(ev)
}

// The kinds that a trace can name are those that the engine can show.
func TestKindsOfTracesAreTheEngines(t *testing.T) {
	kinds := traces.FeatureKinds()
	if len(kinds) != engine.FeatureKinds {
		t.Fatalf("traces know %v, the engine %d kinds", kinds, engine.FeatureKinds)
	}
	for i, name := range kinds {
		if kind, err := engine.ParseFeatureKind(name); err != nil || int(kind) != i {
			t.Errorf("%s: %v, %v", name, kind, err)
		}
	}
}

// The feature of every token and layer is what the engine showed, to what float16 can tell, and
// differs from layer to layer.
func TestFeaturesAreTheEngines(t *testing.T) {
	for _, kind := range traces.FeatureKinds() {
		t.Run(kind, func(t *testing.T) { sameAsShown(t, kind) })
	}
}

func sameAsShown(t *testing.T, kind string) {
	m := openTales(t)
	m.head.FeatureKind = kind
	seen := &inputs{}
	trace := m.record(t, m.prompts(t, 2), 1, 1, func(o engine.Observer) engine.Observer {
		seen.Observer = o
		return seen
	})
	if len(trace.List) < 14 || len(seen.list) != len(trace.List)*m.head.Layers {
		t.Fatalf("%d tokens, %d layers seen", len(trace.List), len(seen.list))
	}
	for i, input := range seen.list {
		feature := trace.List[i/m.head.Layers].Feature[i%m.head.Layers]
		if len(feature) != 2*len(input) {
			t.Fatalf("a feature of %d bytes for %d numbers", len(feature), len(input))
		}
		sum := 0.0
		for k, v := range input {
			got := ref.F16ToF32(binary.LittleEndian.Uint16(feature[2*k:]))
			if math.Abs(float64(got-v)) > 1e-3*math.Max(math.Abs(float64(v)), 1e-3) {
				t.Fatalf("layer event %d, number %d: %g is recorded as %g", i, k, v, got)
			}
			sum += math.Abs(float64(v))
		}
		if sum == 0 || i > 0 && slices.Equal(input, seen.list[i-1]) {
			t.Fatalf("layer event %d has an input of zeros, or the one before", i)
		}
	}
}

// A batch gives the rows of single runs in the order of single runs: masks, magnitudes, features of
// each kind, whatever the chunks.
func TestBatchesRecordTheRowsOfSingleRuns(t *testing.T) {
	for _, kind := range traces.FeatureKinds() {
		t.Run(kind, func(t *testing.T) { sameInBatches(t, kind) })
	}
}

func sameInBatches(t *testing.T, kind string) {
	m := openTales(t)
	m.head.FeatureKind = kind
	prompts := m.prompts(t, 5)
	for i := range prompts {
		// of several lengths, so that sequences end at several steps
		prompts[i] = prompts[i][:max(1, len(prompts[i])-2*i)]
	}
	want := m.record(t, prompts, 1, 1, unwatched)
	for _, c := range []struct{ size, chunk int }{{3, 1}, {5, 4}, {2, 16}, {1, 3}} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			got := m.record(t, prompts, c.size, c.chunk, unwatched)
			if len(got.List) != len(want.List) {
				t.Fatalf("%d tokens, single runs have %d", len(got.List), len(want.List))
			}
			for i, tok := range got.List {
				if single := &want.List[i]; !reflect.DeepEqual(tok, *single) {
					t.Fatalf("token %d is sequence %d, position %d, of single runs sequence %d, "+
						"position %d, or its layers differ", i, tok.Seq, tok.Pos, single.Seq,
						single.Pos)
				}
			}
		})
	}
}

// Only the first sequence passes at once; the others wait for Flush and then come in order.
func TestInOrder(t *testing.T) {
	var got []string
	o := NewInOrder(appendFunc(func(tok *traces.Token) error {
		got = append(got, fmt.Sprintf("%d.%d%v", tok.Seq, tok.Pos, tok.Active))
		return nil
	}))
	need := mask.Mask{0}
	add := func(seq, pos uint32) error {
		need[0] = uint64(10*seq + pos)
		return o.Append(&traces.Token{Seq: seq, Pos: pos, Active: []mask.Mask{need}})
	}
	for pos := range uint32(2) {
		for _, seq := range []uint32{4, 6, 5} {
			if err := add(seq, pos); err != nil {
				t.Fatal(err)
			}
		}
	}
	if want := []string{"4.0[[40]]", "4.1[[41]]"}; !slices.Equal(got, want) {
		t.Errorf("before Flush %v, want %v", got, want)
	}
	if err := o.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := add(7, 0); err != nil {
		t.Fatal(err)
	}
	if want := []string{"4.0[[40]]", "4.1[[41]]", "5.0[[50]]", "5.1[[51]]", "6.0[[60]]",
		"6.1[[61]]", "7.0[[70]]"}; !slices.Equal(got, want) {
		t.Errorf("in all %v, want %v", got, want)
	}
	if err := add(6, 2); err == nil || !strings.Contains(err.Error(),
		"sequence 6, position 2: comes after sequence 7 has begun") {
		t.Errorf("a token that is too late: %v", err)
	}
}

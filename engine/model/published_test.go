package model

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/engine/checkpoint"
	"github.com/windrow-sim/windrow/internal/refusal"
)

const familiesDir = "../testdata/families"

// llamaConfig is a small config.json of a type of model that is computed as Llama.
func llamaConfig(kind, more string) string {
	return fmt.Sprintf(`{"model_type":%q,"hidden_size":32,"num_hidden_layers":2,`+
		`"num_attention_heads":4,"intermediate_size":64,"vocab_size":96%s}`, kind, more)
}

// accept parses a config.json that must be accepted.
func accept(t *testing.T, text string) Config {
	t.Helper()
	c, err := parse(t, text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return c
}

// copied copies a checkpoint of a family and changes fields of its config.json; nil removes one.
func copied(t *testing.T, name string, change map[string]any) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(familiesDir, name))); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "golden.safetensors")); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "config.json")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	config := map[string]any{}
	if err := json.Unmarshal(text, &config); err != nil {
		t.Fatal(err)
	}
	for field, value := range change {
		if value == nil {
			delete(config, field)
		} else {
			config[field] = value
		}
	}
	writeJSON(t, path, config)
	return dir
}

// TestField_F8_SavedByTransformers5: a folder that transformers 5 saved means the same model as the
// one that transformers 4 saved, apart from Persimmon's default base. TestGolden compares the
// logits of both.
func TestField_F8_SavedByTransformers5(t *testing.T) {
	dirs, err := filepath.Glob(familiesDir + "/*-t5")
	if err != nil || len(dirs) < 30 {
		t.Fatalf("%d folders, %v", len(dirs), err)
	}
	for _, dir := range dirs {
		name := filepath.Base(dir)
		read := func(dir string) Config {
			text, err := os.ReadFile(filepath.Join(dir, "config.json"))
			if err != nil {
				t.Fatal(err)
			}
			return accept(t, string(text))
		}
		before, now := read(strings.TrimSuffix(dir, "-t5")), read(dir)
		if before.Arch.Family == Persimmon {
			if before.Arch.Rotary.Theta != 25000 || now.Arch.Rotary.Theta != 10000 {
				t.Errorf("%s: bases %v and %v", name, before.Arch.Rotary, now.Arch.Rotary)
			}
			before.Arch.Rotary.Theta = 10000
		}
		if !reflect.DeepEqual(before.Arch, now.Arch) || before.DType != now.DType {
			t.Errorf("%s: %+v\nsaved before: %+v", name, now, before)
		}
		img, report := pack(t, copied(t, name, nil), PackOptions{})
		if len(report.Notes) > 0 {
			t.Errorf("%s: notes %q", name, report.Notes)
		}
		if ends := !strings.HasPrefix(name, "qwen"); ends != (len(img.Ends) == 1) {
			t.Errorf("%s: texts end with %d", name, img.Ends)
		}
	}
}

// TestRotaryForms: rope_parameters, and what transformers 4 writes in its place.
func TestRotaryForms(t *testing.T) {
	for more, want := range map[string]Rotary{
		``:                                     {Dim: 8, Theta: 1e4},
		`"rope_theta":500`:                     {Dim: 8, Theta: 500},
		`"rope_scaling":null`:                  {Dim: 8, Theta: 1e4},
		`"rope_parameters":null`:               {Dim: 8, Theta: 1e4},
		`"rope_parameters":{}`:                 {Dim: 8, Theta: 1e4},
		`"rope_parameters":{"rope_theta":500}`: {Dim: 8, Theta: 500},
		`"rope_scaling":{"type":"default"}`:    {Dim: 8, Theta: 1e4},
		`"rope_scaling":{"rope_type":"linear","type":"linear","factor":4}`: {Dim: 8, Theta: 1e4,
			Factor: 4},
		`"rope_theta":500,"rope_scaling":{"type":"linear","factor":4},"rope_parameters":` +
			`{"rope_theta":500,"rope_type":"linear","factor":4.0}`: {Dim: 8, Theta: 500, Factor: 4},
		`"partial_rotary_factor":1,"rope_parameters":{"partial_rotary_factor":1.0}`: {Dim: 8,
			Theta: 1e4},
	} {
		if more != "" {
			more = "," + more
		}
		if got := accept(t, llamaConfig("llama", more)).Arch.Rotary; !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", more, got, want)
		}
	}
	// Persimmon's default base is another one since version 5.
	for more, want := range map[string]float64{``: 25000, `,"rope_parameters":{}`: 10000,
		`,"rope_parameters":{"rope_theta":500}`: 500} {
		if r := accept(t, llamaConfig("persimmon", more)).Arch.Rotary; r.Theta != want {
			t.Errorf("persimmon%s: %+v, want a base of %v", more, r, want)
		}
	}
	const phi = `,"rope_parameters":{"partial_rotary_factor":0.25,"rope_theta":500}`
	if r := accept(t, llamaConfig("phi", phi)).Arch.Rotary; r.Dim != 2 || r.Theta != 500 {
		t.Errorf("phi: %+v", r)
	}
	for _, c := range [][2]string{
		{`"rope_theta":500,"rope_parameters":{"rope_theta":600}`,
			"rope_theta is 500, and 600 in rope_parameters"},
		{`"rope_theta":500,"rope_scaling":{"rope_theta":600}`,
			"rope_theta is 500, and 600 in rope_scaling"},
		{`"rope_scaling":{"type":"linear","factor":4},"rope_parameters":{}`,
			"rope_scaling and rope_parameters differ"},
		{`"rope_parameters":{"rope_type":"linear","type":"llama3"}`, "rope_parameters.rope_type"},
		{`"rope_parameters":{"factor":2}`, "missing: rope_parameters.rope_type"},
		{`"rope_parameters":[]`, "rope_parameters: is not an object"},
		{`"rope_parameters":{"rope_theta":"x"}`, `rope_parameters.rope_theta: "x" is not a number`},
		{`"rope_parameters":{"rope_theta":0}`, "rope_theta is 0"},
		{`"partial_rotary_factor":2`, "partial_rotary_factor is 2"},
		{`"partial_rotary_factor":0.01`, "even number"},
	} {
		more, want := c[0], c[1]
		_, err := parse(t, llamaConfig("llama", ","+more))
		refused(t, err, checkpoint.ErrFormat, want)
	}
	for _, c := range [][2]string{
		{`"rope_parameters":{"rope_type":"yarn","factor":2}`, "rope_parameters = {"},
		{`"rope_parameters":{"rope_type":"default","factor":2}`, "rope_parameters.factor = 2"},
		{`"rope_scaling":{"type":"linear","factor":2,"mrope_section":[1,2]}`,
			"rope_scaling.mrope_section = [1,2]"},
		{`"rope_parameters":{"full_attention":{"rope_type":"default"},"rope_type":"default"}`,
			"rope_parameters.full_attention"},
		{`"partial_rotary_factor":0.5`, "partial_rotary_factor"},
		{`"rope_parameters":{"partial_rotary_factor":0.5}`, "partial_rotary_factor"},
	} {
		more, want := c[0], c[1]
		_, err := parse(t, llamaConfig("llama", ","+more))
		refused(t, err, checkpoint.ErrUnsupported, want)
	}
}

// TestField_F1_FieldsOfOtherTypes: a model_type has the fields of its own class in transformers
// alone. Others are ignored with a note, as transformers ignores them without one. That logits are
// then transformers' is TestGolden/llama-unused-window and /mistral-unused-bias in package engine.
func TestField_F1_FieldsOfOtherTypes(t *testing.T) {
	for _, kind := range []string{"llama", "sparsellama"} {
		c := accept(t, llamaConfig(kind, `,"sliding_window":5`))
		if c.Arch.Window != 0 || len(c.notes) != 1 || !strings.Contains(c.notes[0],
			"sliding_window = 5: ignored") {
			t.Errorf("%s: a window of %d, notes %q", kind, c.Arch.Window, c.notes)
		}
		if c := accept(t, llamaConfig(kind, `,"sliding_window":null`)); len(c.notes) != 0 {
			t.Errorf("%s: notes %q", kind, c.notes)
		}
	}
	for _, kind := range []string{"mistral", "bamboo"} {
		c := accept(t, llamaConfig(kind, `,"sliding_window":5,"num_key_value_heads":2`))
		if c.Arch.Window != 5 || len(c.notes) != 0 {
			t.Errorf("%s: a window of %d, notes %q", kind, c.Arch.Window, c.notes)
		}
		c = accept(t, llamaConfig(kind, `,"attention_bias":true,"mlp_bias":true,`+
			`"num_key_value_heads":null,"sliding_window":null`))
		if a := c.Arch; a.AttnBias || a.OutBias || a.FFNBias || len(c.notes) != 2 ||
			a.Window != 0 || a.Shape.KVHeads != 4 {
			t.Errorf("%s: %+v, notes %q", kind, c.Arch, c.notes)
		}
		// Defaults of the class, where Llama has others.
		c = accept(t, strings.Replace(llamaConfig(kind, ""), `heads":4`, `heads":8`, 1))
		if a := c.Arch; a.Window != 4096 || a.Shape.KVHeads != 8 || a.Shape.MaxPos != 131072 {
			t.Errorf("%s: defaults %+v", kind, a)
		}
		_, err := parse(t, strings.Replace(llamaConfig(kind, ""), `heads":4`, `heads":4`, 1))
		refused(t, err, checkpoint.ErrFormat, "kv_heads 8")
	}
}

// TestField_F3_RopeFactors: a scaling without its numbers is not a scaling by 1.
func TestField_F3_RopeFactors(t *testing.T) {
	const llama3 = `"low_freq_factor":1,"high_freq_factor":4,"original_max_position_embeddings":16`
	for _, name := range []string{"rope_scaling", "rope_parameters"} {
		for scaling, want := range map[string]string{
			`"type":"linear"`:                                                          "missing: " + name + ".factor",
			`"type":"linear","factor":null`:                                            "missing: " + name + ".factor",
			`"type":"linear","factor":0`:                                               name + ".factor is 0",
			`"type":"linear","factor":-2.5`:                                            name + ".factor is -2.5",
			`"type":"linear","factor":"4"`:                                             name + `.factor: "4" is not a number`,
			`"rope_type":"llama3",` + llama3:                                           "missing: " + name + ".factor",
			`"rope_type":"llama3","factor":8`:                                          name + ".high_freq_factor",
			`"rope_type":"llama3","factor":0,` + llama3:                                name + ".factor is 0",
			`"rope_type":"llama3","factor":8,` + strings.Replace(llama3, "4", "1", 1):  "low_freq_factor",
			`"rope_type":"llama3","factor":8,` + strings.Replace(llama3, "16", "0", 1): "1 position",
		} {
			_, err := parse(t, llamaConfig("llama", fmt.Sprintf(`,%q:{%s}`, name, scaling)))
			refused(t, err, checkpoint.ErrFormat, want)
		}
	}
}

// TestField_F7_IDsThatEndATextAreInTheImage: those of config.json and generation_config.json, lists
// too.
func TestField_F7_IDsThatEndATextAreInTheImage(t *testing.T) {
	for i, c := range []struct {
		config, generation any // eos_token_id; nil = no such field
		want               []uint32
		note               string
	}{
		{nil, nil, nil, ""},
		{2, nil, []uint32{2}, ""},
		{nil, []int{6, 2}, []uint32{2, 6}, ""},
		{2, []int{2, 6}, []uint32{2, 6}, ""},
		{[]any{7, 3.0}, 2, []uint32{2, 3, 7}, ""},
		{[]int{}, nil, nil, ""},
		{-1, nil, nil, "config.json: eos_token_id -1"},
		{2, 96, []uint32{2}, "generation_config.json: eos_token_id 96"},
	} {
		dir := copied(t, "llama", map[string]any{endsField: c.config})
		if c.generation != nil {
			writeJSON(t, filepath.Join(dir, "generation_config.json"), map[string]any{
				endsField: c.generation, "temperature": 0.7})
		}
		img, report := pack(t, dir, PackOptions{})
		if !slices.Equal(img.Ends, c.want) || !slices.Equal(report.Ends, c.want) {
			t.Errorf("case %d: %d, want %d", i, img.Ends, c.want)
		}
		if notes := strings.Join(report.Notes, "\n"); (notes == "") != (c.note == "") ||
			!strings.Contains(notes, c.note) {
			t.Errorf("case %d: notes %q, want %q", i, notes, c.note)
		}
	}
	out := filepath.Join(t.TempDir(), "x")
	for _, bad := range []any{"</s>", true, []any{2, "</s>"}, 1.5, [][]int{{2}},
		make([]int, mostEnds+1)} {
		_, err := Pack(t.Context(), copied(t, "llama", map[string]any{endsField: bad}), out,
			PackOptions{})
		refused(t, err, checkpoint.ErrFormat, "config.json", endsField)
	}
	dir := copied(t, "llama", nil)
	if err := os.WriteFile(filepath.Join(dir, "generation_config.json"), []byte("{"),
		0o666); err != nil {
		t.Fatal(err)
	}
	_, err := Pack(t.Context(), dir, out, PackOptions{})
	refused(t, err, checkpoint.ErrFormat, "generation_config.json")
	for _, bad := range []string{"-1", "96", "2 2", "3 2", "x", "4294967296",
		strings.Repeat("1 ", mostEnds+1)} {
		if _, err := decodeEnds(bad, 96); err == nil {
			t.Errorf("%.20q is read from an image", bad)
		}
	}
}

// TestField_F9_PublishedFalconConfigs: names and defaults from before transformers had the family.
// The logits are TestGolden/falcon-published and /falcon-refinedweb in package engine.
func TestField_F9_PublishedFalconConfigs(t *testing.T) {
	const rest = `"hidden_size":64,"vocab_size":96,"hidden_dropout":0.0,"bias":false,` +
		`"apply_residual_connection_post_layernorm":false,"alibi":false,"n_head":8,"n_layer":2`
	// As tiiuae/falcon-7b and falcon-40b were first published.
	seven := accept(t, `{"model_type":"RefinedWebModel","architectures":["RWForCausalLM"],`+
		`"multi_query":true,"parallel_attn":true,`+rest+`}`).Arch
	if s := seven.Shape; s.Layers != 2 || s.Heads != 8 || s.KVHeads != 1 || !seven.Parallel ||
		!seven.SharedNorm || s.DFFN != 256 {
		t.Errorf("7B: %+v", seven)
	}
	forty := accept(t, `{"model_type":"RefinedWeb","architectures":["RWForCausalLM"],`+
		`"parallel_attn":true,"n_head_kv":2,`+rest+`}`).Arch
	if forty.Shape.KVHeads != 2 || !forty.Parallel || forty.SharedNorm {
		t.Errorf("40B: %+v", forty)
	}
	// The same with the newer name of the number of keys.
	again := accept(t, `{"model_type":"RefinedWeb","parallel_attn":true,"num_kv_heads":2,`+rest+
		`}`).Arch
	if again.Shape.KVHeads != 2 || again.SharedNorm {
		t.Errorf("40B with num_kv_heads: %+v", again)
	}
	// Without the two fields the classes of that time are sequential, with a key per query.
	plain := accept(t, `{"model_type":"RefinedWebModel",`+rest+`}`).Arch
	if plain.Shape.KVHeads != 8 || plain.Parallel {
		t.Errorf("without its fields: %+v", plain)
	}
	// The renamed type with the old names, and both names where they agree.
	both := accept(t, `{"model_type":"falcon","num_attention_heads":8,`+rest+`}`).Arch
	if both.Shape.Heads != 8 || !both.Parallel {
		t.Errorf("both names: %+v", both)
	}
	_, err := parse(t, `{"model_type":"falcon","num_attention_heads":4,`+rest+`}`)
	refused(t, err, checkpoint.ErrFormat, "n_head is 8 and num_attention_heads is 4")
	_, err = parse(t, `{"model_type":"falcon",`+strings.Replace(rest, `layernorm":false`,
		`layernorm":true`, 1)+`}`)
	refused(t, err, checkpoint.ErrUnsupported, "apply_residual_connection_post_layernorm = true")
	_, err = parse(t, `{"model_type":"RefinedWebModel",`+strings.Replace(rest, `alibi":false`,
		`alibi":true`, 1)+`}`)
	refused(t, err, checkpoint.ErrUnsupported, "alibi = true")
}

// TestField_F12_FieldsThatChangeNothing: the known ones pass, an unknown one passes if the user
// says so, and one that counts never does.
func TestField_F12_FieldsThatChangeNothing(t *testing.T) {
	for _, group := range harmless() {
		if group.why == "" {
			t.Errorf("no reason why %s change nothing", group.names)
		}
		for _, name := range strings.Fields(group.names) {
			name, value, only := strings.Cut(name, "=")
			if !only {
				value = `"any"`
			}
			switch name {
			case "model_type", "architectures", "dtype", "torch_dtype":
				continue // read, and checked by other tests
			}
			accept(t, llamaConfig("llama", fmt.Sprintf(`,%q:%s`, name, value)))
			if only {
				_, err := parse(t, llamaConfig("llama", fmt.Sprintf(`,%q:"other"`, name)))
				refused(t, err, checkpoint.ErrUnsupported, name+` = "other"`)
			}
		}
	}
	accept(t, llamaConfig("llama", `,"never_heard_of":null`))
	o, err := checkpoint.ParseObject([]byte(llamaConfig("llama", `,"chat":{"a":1},"use_x":true,`+
		`"rope_scaling":{"type":"linear","factor":2,"note":"hi"}`)))
	if err != nil {
		t.Fatal(err)
	}
	_, err = parseConfig(o, configOptions{})
	refused(t, err, checkpoint.ErrUnsupported, `chat = {"a":1}`, "use_x = true",
		`rope_scaling.note = "hi"`, "IgnoreKey NAME")
	if text := refusal.Text(err, func(string) string { return "--flag" }); !strings.Contains(text,
		"--flag NAME") {
		t.Errorf("%s: the remedy is not a flag", text)
	}
	all := []string{"use_x", "chat", "rope_scaling.note"}
	c, err := parseConfig(o, configOptions{ignored: all})
	if err != nil || c.Arch.Rotary.Factor != 2 || !slices.Equal(c.Ignored, []string{"chat",
		"rope_scaling.note", "use_x"}) {
		t.Errorf("ignored %q: %v", c.Ignored, err)
	}
	for _, counts := range []string{"hidden_size", "vocab_siz", "rope_scaling", "note", "alibi"} {
		_, err = parseConfig(o, configOptions{ignored: append(slices.Clone(all), counts)})
		refused(t, err, refusal.ErrConfig, counts)
	}
	dir := copied(t, "llama", map[string]any{"use_x": true})
	out := filepath.Join(t.TempDir(), "x")
	_, err = Pack(t.Context(), dir, out, PackOptions{})
	refused(t, err, checkpoint.ErrUnsupported, "use_x = true")
	img, report := pack(t, dir, PackOptions{IgnoreKeys: []string{"use_x"}})
	if want := []string{"use_x"}; !slices.Equal(img.Ignored, want) ||
		!slices.Equal(report.Ignored, want) {
		t.Errorf("the image says %q, the report %q", img.Ignored, report.Ignored)
	}
}

// TestField_F13_NumbersAsPythonWritesThem: whole numbers with a fraction are whole, and one that is
// not finite is refused by its name.
func TestField_F13_NumbersAsPythonWritesThem(t *testing.T) {
	for _, text := range []string{"32.0", "3.2e1", "320e-1", "32"} {
		c := accept(t, strings.Replace(llamaConfig("llama", ""), `"hidden_size":32`,
			`"hidden_size":`+text, 1))
		if c.Arch.Shape.DModel != 32 {
			t.Errorf("%s is read as %d", text, c.Arch.Shape.DModel)
		}
	}
	for text, want := range map[string]string{
		"32.5": "hidden_size: 32.5 is not a whole number",
		`"32"`: `hidden_size: "32" is not a whole number`,
		"true": "hidden_size: true", "[32]": "hidden_size: is not", "1e30": "hidden_size: 1e30",
		"1e999": "hidden_size: 1e999", "{}": "hidden_size: is not",
	} {
		_, err := parse(t, strings.Replace(llamaConfig("llama", ""), `"hidden_size":32`,
			`"hidden_size":`+text, 1))
		refused(t, err, checkpoint.ErrFormat, want)
		if strings.Contains(err.Error(), "Go ") || strings.Contains(err.Error(), "unmarshal") {
			t.Errorf("%s: %v speaks of Go", text, err)
		}
	}
	for more, want := range map[string]string{
		`,"rms_norm_eps":"x"`:             `rms_norm_eps: "x" is not a number`,
		`,"tie_word_embeddings":1`:        "tie_word_embeddings: 1 is neither true nor false",
		`,"architectures":"x"`:            `architectures: "x" is not a list`,
		`,"hidden_act":1`:                 "hidden_act: 1 is not a text",
		`,"rms_norm_eps":NaN`:             "rms_norm_eps is NaN",
		`,"rope_theta":Infinity`:          "rope_theta is Infinity",
		`,"a":{"b":[1,-Infinity]}`:        "a.b is -Infinity",
		`,"initializer_range": NaN,"x":1`: "initializer_range is NaN",
	} {
		o, err := checkpoint.ParseObject([]byte(llamaConfig("llama", more)))
		if err == nil {
			_, err = ParseConfig(o)
		}
		refused(t, err, checkpoint.ErrFormat, want)
	}
	c := accept(t, llamaConfig("llama", `,"rope_theta":1000000,"rms_norm_eps":1E-6`))
	if c.Arch.Rotary.Theta != 1e6 || math.Abs(c.Arch.Epsilon-1e-6) > 1e-18 {
		t.Errorf("%+v", c.Arch)
	}
}

// TestField_F14_HeadSizeOfTheQueryProjection: without head_dim the tensors say it.
func TestField_F14_HeadSizeOfTheQueryProjection(t *testing.T) {
	// 3 heads of 14 elements, where hidden_size is 32.
	img, report := pack(t, copied(t, "llama-head-size", map[string]any{"head_dim": nil}),
		PackOptions{})
	if img.Shape.HeadDim != 14 || len(report.Notes) != 1 || !strings.Contains(report.Notes[0],
		"42 rows for 3 heads") {
		t.Errorf("heads of %d, notes %q", img.Shape.HeadDim, report.Notes)
	}
	whole, _ := pack(t, filepath.Join(familiesDir, "llama-head-size"), PackOptions{})
	if !reflect.DeepEqual(whole.Arch, img.Arch) || whole.Hash != img.Hash {
		t.Errorf("%+v, with head_dim %+v", img.Arch, whole.Arch)
	}
	// Where hidden_size is a multiple of the heads too: 4 heads of 8 or 2 heads of 16.
	img, _ = pack(t, copied(t, "mistral", map[string]any{"head_dim": nil}), PackOptions{})
	if img.Shape.HeadDim != 8 {
		t.Errorf("heads of %d", img.Shape.HeadDim)
	}
	out := filepath.Join(t.TempDir(), "x")
	for _, c := range []struct {
		name   string
		change map[string]any
		want   string
	}{
		// 42 rows are no heads of one size, and neither is hidden_size.
		{"llama-head-size", map[string]any{"head_dim": nil, "num_attention_heads": 5},
			"hidden_size 32 is not a multiple of num_attention_heads 5"},
		// A value that the tensors contradict.
		{"llama-head-size", map[string]any{"head_dim": 10}, "_proj"},
		// A family without the field.
		{"phi", map[string]any{"num_attention_heads": 5}, "hidden_size 32 is not a multiple"},
	} {
		_, err := Pack(t.Context(), copied(t, c.name, c.change), out, PackOptions{})
		refused(t, err, checkpoint.ErrFormat, c.want)
	}
}

// TestPhiQKNorm: the logits are TestGolden/phi-qk-norm in package engine.
func TestPhiQKNorm(t *testing.T) {
	for more, want := range map[string]bool{"": false, `,"qk_layernorm":false`: false,
		`,"qk_layernorm":true`: true} {
		if a := accept(t, llamaConfig("phi", more)).Arch; a.QKNorm != want {
			t.Errorf("%s: %v", more, a.QKNorm)
		}
	}
}

// TestField_F15_TiedAndBothHeads: a head beside the embedding that config.json ties it to is taken
// as the version of transformers does that saved the model.
func TestField_F15_TiedAndBothHeads(t *testing.T) {
	// This checkpoint has a head of its own.
	own, _ := pack(t, copied(t, "llama", nil), PackOptions{})
	for version, taken := range map[string]bool{"4.46.3": false, "5.0.0": true, "10.1": true,
		"x": false, "": false} {
		img, report := pack(t, copied(t, "llama", map[string]any{"tie_word_embeddings": true,
			"transformers_version": version}), PackOptions{})
		if img.Arch.Tied == taken || taken != (img.Hash == own.Hash) || len(report.Notes) != 1 ||
			!strings.Contains(report.Notes[0], "lm_head.weight differs from embed_tokens.weight") {
			t.Errorf("%q: tied %v, notes %q", version, img.Arch.Tied, report.Notes)
		}
	}
	out := filepath.Join(t.TempDir(), "x")
	for more, want := range map[any]string{nil: "no tie_word_embeddings, which means false",
		false: "tie_word_embeddings is false"} {
		_, err := Pack(t.Context(), copied(t, "llama-tied-bias", map[string]any{
			"tie_word_embeddings": more}), out, PackOptions{})
		refused(t, err, checkpoint.ErrFormat, want, "no lm_head.weight", "set it to true")
	}
}

package model

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/windrow-sim/windrow/engine/checkpoint"
	"github.com/windrow-sim/windrow/internal/refusal"
)

// Config holds the facts of config.json that the computation depends on.
type Config struct {
	Arch Arch
	// DType is the file's torch_dtype (or dtype); may be empty. It is only a hint: the tensors' own
	// types count.
	DType string
	// Ends are the ids that end a text, ascending.
	Ends []uint32
	// Ignored are the fields that PackOptions.IgnoreKeys made it ignore, sorted.
	Ignored []string
	notes   []string // whole sentences about fields without effect
	version string   // of transformers that saved the file; may be empty
	tied    bool     // the file has tie_word_embeddings
}

// ParseConfig reads config.json. A field that could change the computation and is not honoured is
// an ErrUnsupported that names it with its value. So is every field that is not known to be
// harmless: a field ignored in silence is a model computed wrongly.
func ParseConfig(o checkpoint.Object) (Config, error) {
	c, err := parseConfig(o, configOptions{})
	if err != nil {
		return c, fmt.Errorf("model: %w", err)
	}
	return c, nil
}

// configOptions say how to read a config.json. The zero value reads it alone and strictly.
type configOptions struct {
	ignored []string // unknown fields that count as harmless
	// tensor finds a tensor of the checkpoint; may be nil
	tensor func(name string) (checkpoint.TensorInfo, bool)
}

func parseConfig(o checkpoint.Object, opt configOptions) (Config, error) {
	c, err := readConfig(o, opt)
	if err != nil {
		return c, fmt.Errorf("config.json: %w", err)
	}
	return c, nil
}

func readConfig(o checkpoint.Object, opt configOptions) (c Config, err error) {
	var kind string
	if _, err := o.Get("model_type", &kind); err != nil {
		return c, err
	}
	family := findFamily(func(f *family) bool { return slices.Contains(f.modelTypes, kind) })
	if family == nil {
		return c, errOther(kind)
	}
	f := newFields(o, opt)
	f.query = findQuery(family, opt.tensor)
	f.architectures(family.classes...)
	c.Arch = family.read(f)
	c.Arch.Family = family.name
	// the older name wins when a file has both
	for _, name := range []string{"dtype", "torch_dtype"} {
		f.optional(name, &c.DType)
	}
	f.optional("transformers_version", &c.version)
	tied := false
	c.tied = f.optional("tie_word_embeddings", &tied)
	f.ignore(endsField)
	if err := f.finish(); err != nil {
		return c, err
	}
	c.Ignored, c.notes = slices.Sorted(maps.Keys(f.ignored)), f.notes
	return c, c.Arch.check()
}

// modelTypes lists the accepted values of model_type.
func modelTypes() []string {
	var list []string
	for _, f := range families() {
		list = append(list, f.modelTypes...)
	}
	slices.Sort(list)
	return list
}

// fields reads the fields of a config.json, or of an object in it, and keeps the first error.
// finish refuses the fields that were not read.
type fields struct {
	object  checkpoint.Object
	path    string          // of the object in config.json, with a dot at the end
	ignored map[string]bool // fields that the user ignores, by path: true once there was one
	known   map[string]bool
	missing []string
	refused []string // "name = value", of fields that would change the computation
	strange []string // the same of fields that are not known
	notes   []string
	err     error
	// query is a name and the shape of a query projection, of any layer; nil if not known
	query *checkpoint.TensorInfo
}

// newFields reads a config.json.
func newFields(o checkpoint.Object, opt configOptions) *fields {
	f := &fields{object: maps.Clone(o), known: map[string]bool{}, ignored: map[string]bool{}}
	for _, name := range opt.ignored {
		f.ignored[name] = false
	}
	f.ignoreHarmless()
	return f
}

// inside reads the fields of an object in this one, to be ended with leave. Absent and null have
// none.
func (f *fields) inside(name string) (*fields, bool) {
	object := checkpoint.Object{}
	if !f.optional(name, &object) {
		return nil, false
	}
	return &fields{object: object, path: f.path + name + ".", ignored: f.ignored,
		known: map[string]bool{}}, true
}

// leave takes over what there is to say about an object in this one.
func (f *fields) leave(in *fields) {
	in.sortOut()
	f.missing = append(f.missing, in.missing...)
	f.refused = append(f.refused, in.refused...)
	f.strange = append(f.strange, in.strange...)
	f.notes = append(f.notes, in.notes...)
	if f.err == nil {
		f.err = in.err
	}
}

// fail keeps an error of kind ErrFormat, if it is the first.
func (f *fields) fail(format string, args ...any) {
	if f.err == nil {
		f.err = fmt.Errorf("%w: %s%s", checkpoint.ErrFormat, f.path, fmt.Sprintf(format, args...))
	}
}

// optional reads a field; absent and null leave dst alone.
func (f *fields) optional(name string, dst any) (given bool) {
	f.known[name] = true
	m, ok := f.object[name]
	if !ok || m.Null() {
		return false
	}
	if err := m.Decode(f.path+name, dst); err != nil && f.err == nil {
		f.err = err
	}
	return true
}

// there reports whether the file has a field, which may be null.
func (f *fields) there(name string) bool {
	_, there := f.object[name]
	return there
}

// want reads a required field.
func (f *fields) want(name string, dst any) {
	if !f.optional(name, dst) && f.err == nil {
		f.missing = append(f.missing, f.path+name)
	}
}

// only refuses a field with any other value. Absent and null mean the supported value, which is
// also the default of the reference implementation.
func (f *fields) only(name string, values ...string) {
	f.known[name] = true
	m, ok := f.object[name]
	if !ok {
		return
	}
	if text := compact(m.JSON); text != "null" && !slices.Contains(values, text) {
		f.refuse(name, text)
	}
}

// ignore accepts any value of fields that do not change the computation of a trained model.
func (f *fields) ignore(names ...string) {
	for _, name := range names {
		f.known[name] = true
	}
}

func (f *fields) refuse(name, value string) {
	value = clip(value)
	f.refused = append(f.refused, f.path+name+" = "+value)
}

// renamed lets the value of a field's older name count as the field's.
func (f *fields) renamed(old, name string) {
	value, ok := f.object[old]
	f.known[old] = true
	if !ok {
		return
	}
	if other, both := f.object[name]; both && compact(other.JSON) != compact(value.JSON) {
		f.fail("%s is %s and %s is %s; remove the one that is wrong", old, compact(value.JSON),
			name, compact(other.JSON))
	}
	f.object[name] = value
}

// unused ignores a field as the reference implementation does, with a note where it has a value
// other than those that mean nothing. of names the models.
func (f *fields) unused(name, of string, nothing ...string) {
	f.known[name] = true
	if m, ok := f.object[name]; ok {
		if text := compact(m.JSON); text != "null" && !slices.Contains(nothing, text) {
			f.notes = append(f.notes, fmt.Sprintf("config.json has %s%s = %s: ignored, because "+
				"transformers does not read it in models of %s", f.path, name, clip(text), of))
		}
	}
}

// clip shortens a value for a message.
func clip(value string) string {
	if len(value) > 40 {
		return value[:40] + "..."
	}
	return value
}

// unread reports whether there is a field that was not read, other than null.
func (f *fields) unread() bool {
	for name, m := range f.object {
		if !f.known[name] && !m.Null() {
			return true
		}
	}
	return false
}

// sortOut finds the fields that were not read. One that is null says nothing.
func (f *fields) sortOut() {
	for _, name := range f.object.Names() {
		value := compact(f.object[name].JSON)
		switch _, ignored := f.ignored[f.path+name]; {
		case f.known[name] || value == "null":
		case ignored:
			f.ignored[f.path+name] = true
		default:
			f.strange = append(f.strange, f.path+name+" = "+clip(value))
		}
	}
}

func compact(raw json.RawMessage) string {
	var text bytes.Buffer
	if err := json.Compact(&text, raw); err != nil {
		return string(raw)
	}
	return text.String()
}

// architectures refuses models that are not language models of the family.
func (f *fields) architectures(known ...string) {
	var list []string
	f.optional("architectures", &list)
	for _, a := range list {
		if !slices.Contains(known, a) {
			f.refuse("architectures", a)
		}
	}
}

// shape reads the dimensions that all families name alike, and the neurons per layer from the field
// ffn unless that is empty. rows is the number of rows per neuron, positions the default of
// max_position_embeddings; 0 = that field must be there. Keys and values get as many heads as
// queries.
func (f *fields) shape(a *Arch, rows int, ffn string, positions int) {
	s := &a.Shape
	s.Rows, s.DTypeSize, s.MaxPos = rows, 2, positions
	f.want("hidden_size", &s.DModel)
	f.want("num_hidden_layers", &s.Layers)
	f.want("num_attention_heads", &s.Heads)
	f.want("vocab_size", &s.Vocab)
	if ffn != "" {
		f.want(ffn, &s.DFFN)
	}
	if positions == 0 {
		f.want("max_position_embeddings", &s.MaxPos)
	} else {
		f.optional("max_position_embeddings", &s.MaxPos)
	}
	f.heads(s)
	s.KVHeads = s.Heads
	a.Embed = s.DModel
}

// gatedRMS reads what Llama and the families after it have in common: RMS norms, gated FFNs, keys
// with heads of their own. The defaults are those of a, and positions that of
// max_position_embeddings.
func (f *fields) gatedRMS(a *Arch, positions int) {
	a.RMSNorm, a.FinalNorm = true, true
	f.optional("head_dim", &a.Shape.HeadDim)
	f.shape(a, 3, "intermediate_size", positions)
	f.optional("num_key_value_heads", &a.Shape.KVHeads)
	f.optional("rms_norm_eps", &a.Epsilon)
	f.optional("tie_word_embeddings", &a.Tied)
}

// findQuery finds the query projection of the first layer of a family that has one.
func findQuery(of *family, find func(string) (checkpoint.TensorInfo, bool)) *checkpoint.TensorInfo {
	names := of.names(&Arch{})
	if find == nil || names.q == "" {
		return nil
	}
	for _, prefix := range names.prefixes {
		t, ok := find(prefix + fmt.Sprintf(names.layer, 0) + names.q + ".weight")
		if ok && len(t.Shape) == 2 {
			return &t
		}
	}
	return nil
}

// heads computes the size of a head if no field gives it: from the query projection in families
// that have the field head_dim, else from hidden_size.
func (f *fields) heads(s *Shape) {
	if s.HeadDim != 0 || f.err != nil || len(f.missing) > 0 {
		return
	}
	if q := f.query; q != nil && f.known["head_dim"] && s.Heads > 0 && q.Shape[0] <= maxDim &&
		int(q.Shape[0])%s.Heads == 0 && int(q.Shape[0]) != s.DModel {
		s.HeadDim = int(q.Shape[0]) / s.Heads
		f.notes = append(f.notes, fmt.Sprintf("config.json has no head_dim: %d was taken, "+
			"because %s has %d rows for %d heads", s.HeadDim, q.Name, q.Shape[0], s.Heads))
		return
	}
	if s.Heads < 1 || s.DModel%s.Heads != 0 {
		f.err = fmt.Errorf("%w: hidden_size %d is not a multiple of num_attention_heads %d",
			checkpoint.ErrFormat, s.DModel, s.Heads)
		return
	}
	s.HeadDim = s.DModel / s.Heads
}

// finish returns the first error: a field that cannot be read, missing fields, or fields that are
// not honoured.
func (f *fields) finish() error {
	switch {
	case f.err != nil:
		return f.err
	case len(f.missing) > 0:
		slices.Sort(f.missing)
		return fmt.Errorf("%w: missing: %s", checkpoint.ErrFormat, strings.Join(f.missing, ", "))
	}
	f.sortOut()
	if len(f.refused) > 0 {
		return fmt.Errorf("%w: these fields would change the computation: %s",
			checkpoint.ErrUnsupported, strings.Join(f.refused, ", "))
	}
	if len(f.strange) > 0 {
		return fmt.Errorf("%w: %w", checkpoint.ErrUnsupported, refusal.Input("these fields are "+
			"not known, and may change the computation: %s; {IgnoreKey} NAME takes the model "+
			"without one that does not", strings.Join(f.strange, ", ")))
	}
	return f.checkIgnored()
}

// checkIgnored refuses to ignore a field that is not there, or that counts.
func (f *fields) checkIgnored() error {
	for _, name := range slices.Sorted(maps.Keys(f.ignored)) {
		if f.ignored[name] {
			continue
		}
		return refusal.Config("{IgnoreKey} %s: config.json has no such field that is not known; "+
			"only those can be ignored", name)
	}
	return nil
}

// activation maps the reference implementation's names.
func (f *fields) activation(field, absent string) Activation {
	name := absent
	f.optional(field, &name)
	kind, ok := map[string]Kind{
		"relu": ReLU, "relu2": ReLU2, "silu": SiLU, "swish": SiLU, "gelu": GELU,
		"gelu_new": GELUNew, "gelu_pytorch_tanh": GELUNew, "gelu_fast": GELUNew, "fatrelu": FATReLU,
	}[name]
	if !ok && f.err == nil {
		f.refuse(field, compact(f.object[field].JSON))
	}
	a := Activation{Kind: kind}
	if kind == FATReLU {
		f.want("hidden_act_param", &a.Threshold)
	}
	return a
}

package cli

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// ggufWriter writes a GGUF file of version 3 in the order in which its parts are given.
type ggufWriter struct {
	keys, tensors, data []byte
	keyCount, count     uint64
}

func ggufText(b []byte, s string) []byte {
	return append(binary.LittleEndian.AppendUint64(b, uint64(len(s))), s...)
}

// key adds a value, or a list of them.
func (w *ggufWriter) key(name string, v any) {
	w.keyCount++
	w.keys = ggufText(w.keys, name)
	kind := func(n ...uint32) {
		for _, k := range n {
			w.keys = binary.LittleEndian.AppendUint32(w.keys, k)
		}
	}
	switch v := v.(type) {
	case int:
		kind(4, uint32(v))
	case float32:
		kind(6, math.Float32bits(v))
	case string:
		kind(8)
		w.keys = ggufText(w.keys, v)
	case []string:
		kind(9, 8)
		w.keys = binary.LittleEndian.AppendUint64(w.keys, uint64(len(v)))
		for _, s := range v {
			w.keys = ggufText(w.keys, s)
		}
	case []int32:
		kind(9, 5)
		w.keys = binary.LittleEndian.AppendUint64(w.keys, uint64(len(v)))
		for _, n := range v {
			kind(uint32(n))
		}
	default:
		panic("no such value")
	}
}

// tensor adds random float32, the dimensions innermost first.
func (w *ggufWriter) tensor(rng *rand.Rand, name string, dims ...int) {
	w.count++
	w.tensors = binary.LittleEndian.AppendUint32(ggufText(w.tensors, name), uint32(len(dims)))
	n := 1
	for _, d := range dims {
		w.tensors = binary.LittleEndian.AppendUint64(w.tensors, uint64(d))
		n *= d
	}
	w.tensors = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint32(w.tensors, 0),
		uint64(len(w.data)))
	for range n {
		w.data = binary.LittleEndian.AppendUint32(w.data,
			math.Float32bits(float32(rng.NormFloat64()/4)))
	}
	for len(w.data)%32 != 0 {
		w.data = append(w.data, 0)
	}
}

func (w *ggufWriter) write(t *testing.T, path string) {
	t.Helper()
	b := binary.LittleEndian.AppendUint32([]byte("GGUF"), 3)
	b = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(b, w.count), w.keyCount)
	b = append(append(b, w.keys...), w.tensors...)
	for len(b)%32 != 0 {
		b = append(b, 0)
	}
	if err := os.WriteFile(path, append(b, w.data...), 0o600); err != nil {
		t.Fatal(err)
	}
}

// tinyGGUF is a random model of Llama's architecture with the tokens, merges and types of a
// tokenizer.
func tinyGGUF(t *testing.T, path, pre string, tokens, merges []string, types []int32) {
	t.Helper()
	rng := rand.New(rand.NewPCG(7, 7))
	const hidden, ffn = 16, 32
	var w ggufWriter
	w.key("general.architecture", "llama")
	for name, n := range map[string]int{
		"block_count": 2, "embedding_length": hidden, "feed_forward_length": ffn,
		"attention.head_count": 2, "context_length": 256, "vocab_size": len(tokens),
	} {
		w.key("llama."+name, n)
	}
	w.key("llama.attention.layer_norm_rms_epsilon", float32(1e-5))
	w.key("tokenizer.ggml.model", "gpt2")
	w.key("tokenizer.ggml.pre", pre)
	w.key("tokenizer.ggml.tokens", tokens)
	w.key("tokenizer.ggml.merges", merges)
	w.key("tokenizer.ggml.token_type", types)
	w.key("tokenizer.ggml.bos_token_id", len(tokens)-1)
	w.key("tokenizer.ggml.eos_token_id", len(tokens)-1)
	w.tensor(rng, "token_embd.weight", hidden, len(tokens))
	w.tensor(rng, "output_norm.weight", hidden)
	for _, layer := range []string{"blk.0.", "blk.1."} {
		for name, dims := range map[string][]int{
			"attn_norm": {hidden}, "ffn_norm": {hidden}, "attn_q": {hidden, hidden},
			"attn_k": {hidden, hidden}, "attn_v": {hidden, hidden},
			"attn_output": {hidden, hidden}, "ffn_gate": {hidden, ffn}, "ffn_up": {hidden, ffn},
			"ffn_down": {ffn, hidden},
		} {
			w.tensor(rng, layer+name+".weight", dims...)
		}
	}
	w.write(t, path)
}

// TestGGUFInParts: any file of a model in several is the model, which has the name without the
// number. Without a tokenizer inside, the image is made without.
func TestGGUFInParts(t *testing.T) {
	root, err := repository()
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	const part = "qwen2-tied-bf16-00003-of-00004.gguf"
	dir := filepath.Join(root, "engine/testdata/gguf")
	o := command("pack", filepath.Join(dir, part), "-o", "parts.flash.safetensors")
	if o.code != exitOK || !strings.Contains(o.stdout, "qwen2-tied-bf16.gguf") ||
		strings.Contains(o.stdout, part) || !strings.Contains(o.stderr, "--tokenizer") {
		t.Errorf("exit %d\n%s%s", o.code, o.stdout, o.stderr)
	}
	data, err := os.ReadFile(filepath.Join(dir, part))
	if err == nil {
		err = os.WriteFile(part, data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	o = command("pack", part, "-o", "alone.flash.safetensors")
	if o.code != exitInput || !strings.Contains(o.stderr, "qwen2-tied-bf16-00001-of-00004.gguf") {
		t.Errorf("exit %d\n%s", o.code, o.stderr)
	}
	// The mixture's weights are quantised: what the image holds is said.
	o = command("pack", filepath.Join(dir, "mixture.gguf"), "-o", "mixture.flash.safetensors")
	if o.code != exitOK || !strings.Contains(strings.Join(strings.Fields(o.stdout+o.stderr), " "),
		"the weights are quantised (IQ4_NL, IQ4_XS, MXFP4, Q2_K") {
		t.Errorf("exit %d\n%s%s", o.code, o.stdout, o.stderr)
	}
}

// TestGGUFAlone: a GGUF file by itself gives text, a quality figure and a trace.
func TestGGUFAlone(t *testing.T) {
	root, err := repository()
	if err != nil {
		t.Fatal(err)
	}
	var vocab map[string]int
	data, err := os.ReadFile(filepath.Join(root, "engine/tokenizer/testdata/opt/vocab.json"))
	if err == nil {
		err = json.Unmarshal(data, &vocab)
	}
	merges, errMerges := os.ReadFile(filepath.Join(root,
		"engine/tokenizer/testdata/opt/merges.txt"))
	if err != nil || errMerges != nil {
		t.Fatal(err, errMerges)
	}
	tokens, types := make([]string, len(vocab)+1), make([]int32, len(vocab)+1)
	for text, id := range vocab {
		tokens[id], types[id] = text, 1
	}
	tokens[len(vocab)], types[len(vocab)] = "<|end|>", 3
	t.Chdir(t.TempDir())
	list := strings.Split(strings.TrimSpace(string(merges)), "\n")[1:]
	tinyGGUF(t, "tiny.gguf", "llama-bpe", tokens, list, types)
	if o := command("pack", "tiny.gguf", "-o", "tiny.flash.safetensors"); o.code != exitOK ||
		strings.Contains(o.stderr, "--tokenizer") {
		t.Fatalf("pack: exit %d\n%s", o.code, o.stderr)
	}
	if err := os.WriteFile("prompts.txt", []byte("Once upon a time\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"generate", "-m", "tiny.flash.safetensors", "-n", "4", "Once upon a time"},
		{"record", "-m", "tiny.flash.safetensors", "--prompts", "prompts.txt", "-n", "4", "-o",
			"tiny.trace.arrow"},
		{"trace", "info", "tiny.trace.arrow"},
	} {
		if out := must(t, args...); out == "" && args[0] != "record" {
			t.Errorf("%v says nothing", args)
		}
	}
	tinyGGUF(t, "other.gguf", "of another kind", tokens, list, types)
	if o := command("pack", "other.gguf", "-o", "other.flash.safetensors"); o.code != exitOK ||
		!strings.Contains(o.stderr, "of another kind") || !strings.Contains(o.stderr,
		"--tokenizer") {
		t.Errorf("an unknown way of cutting: exit %d\n%s", o.code, o.stderr)
	}
	must(t, "pack", "other.gguf", "--tokenizer", "tiny.gguf", "-o", "again.flash.safetensors")
}

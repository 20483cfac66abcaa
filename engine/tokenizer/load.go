package tokenizer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/windrow-sim/windrow/internal/input"
)

// The files of a Hugging Face folder.
const (
	vocabFile   = "vocab.json"
	mergesFile  = "merges.txt"
	jsonForm    = "tokenizer.json"
	configFile  = "tokenizer_config.json"
	specialFile = "special_tokens_map.json"
	addedFile   = "added_tokens.json"
	modelFile   = "tokenizer.model"
)

// maxFile is the size beyond which a file is refused unread; the largest byte-level vocabularies
// take a few MiB.
const maxFile = 256 << 20

// Load reads the tokenizer of a Hugging Face folder: tokenizer.json, else vocab.json and
// merges.txt, else tokenizer.model; and tokenizer_config.json, special_tokens_map.json and
// added_tokens.json, if they exist. A folder with nothing but vocab.json and merges.txt has only
// the special token "<|endoftext|>", as GPT-2's; one with nothing but tokenizer.model is taken for
// Llama's.
//
// Errors are ErrFormat (a file contradicts itself or another) or ErrUnsupported (a setting or kind
// of tokenizer that this package lacks), with file and line; others come from reading the files.
func Load(ctx context.Context, dir string) (*Tokenizer, error) {
	set := newSettings()
	src := source{name: dir}
	data, err := set.choose(ctx, dir)
	if err != nil {
		return nil, err
	}
	switch set.form {
	case jsonForm:
		err = readTokenizerJSON(&src, set, data)
	case vocabFile:
		err = readModelFiles(ctx, &src, dir, data)
	}
	if err != nil {
		return nil, err
	}
	if err := set.readFolder(ctx, dir); err != nil {
		return nil, err
	}
	switch set.form {
	case vocabFile:
		src.spec = set.vocabPipeline()
	case modelFile:
		if err := set.readModel(&src, data); err != nil {
			return nil, err
		}
	}
	if err := set.apply(&src); err != nil {
		return nil, err
	}
	return build(src)
}

// choose finds the file with the vocabulary, and reads it.
func (s *settings) choose(ctx context.Context, dir string) ([]byte, error) {
	var missing error
	for _, form := range []string{jsonForm, vocabFile, modelFile} {
		data, err := readFile(ctx, dir, form)
		if !errors.Is(err, fs.ErrNotExist) {
			s.form = form
			return data, err
		}
		if missing == nil {
			missing = err
		}
	}
	return nil, fmt.Errorf("tokenizer: %s: neither %s, %s nor %s: give the folder of a model "+
		"with its tokenizer: %w", dir, jsonForm, vocabFile, modelFile, missing)
}

// vocabPipeline returns the steps of a tokenizer whose files do not list them.
func (s *settings) vocabPipeline() pipeline {
	p := plainPipeline(s.prefixSpace != nil && *s.prefixSpace)
	if strings.HasPrefix(s.class, "Qwen2Tokenizer") {
		p.Normalizer = []normalStep{{Type: normalNFC}}
		p.PreTokenizer = []preStep{{Type: preSplit, Pattern: patternQwen2}, {Type: preBytes}}
	}
	return p
}

// readModel reads tokenizer.model, which depends on the settings.
func (s *settings) readModel(src *source, data []byte) error {
	file, err := readPieces(data)
	if err != nil {
		return err
	}
	scheme := prefixAlways
	blank := s.prefixSpace == nil || *s.prefixSpace
	switch legacy := s.legacy == nil || *s.legacy; {
	case legacy && !blank:
		return inFile(configFile).unsupported("add_prefix_space is false, but legacy is not, "+
			"for %s; supported: legacy false", modelFile)
	case !legacy && blank:
		scheme = prefixFirst
	case !legacy:
		scheme = prefixNever
	}
	return file.fill(src, scheme)
}

// readModelFiles reads vocab.json, already in memory, and merges.txt.
func readModelFiles(ctx context.Context, src *source, dir string, vocab []byte) error {
	v, err := jsonFile(vocabFile, vocab)
	if err != nil {
		return err
	}
	if src.vocab, err = readVocab(v); err != nil {
		return err
	}
	merges, err := readFile(ctx, dir, mergesFile)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("tokenizer: %s: %s is there, %s is not: without merges every text "+
			"would fall into single bytes; copy it from the model: %w", dir, vocabFile, mergesFile,
			err)
	}
	if err != nil {
		return err
	}
	src.merges, err = readMerges(merges)
	return err
}

// readVocab reads an object {"token": id, …}.
func readVocab(v value) (vocabulary, error) {
	count, length := 0, 0
	err := v.walk('{', func(name, _ []byte, _ position) error {
		count++
		length += len(name)
		return nil
	})
	if err != nil {
		return vocabulary{}, err
	}
	list, scratch := newTextsBuilder(count, length), []byte(nil)
	out := vocabulary{pos: v.memberPos}
	err = v.walk('{', func(name, raw []byte, at position) error {
		var err error
		if scratch, err = (value{name: "token", raw: name, pos: at}).appendText(
			scratch[:0]); err != nil {
			return err
		}
		id, err := value{name: "token", raw: raw, pos: at}.id()
		if err != nil {
			return at.malformed("%s is %.40s, not a token id", name, raw)
		}
		out.ids = extendIdentity(out.ids, len(list.ends), count, id)
		list.add(scratch)
		return nil
	})
	out.texts = list.texts()
	return out, err
}

// memberPos returns the position of the i-th member of an object, by walking it again: only errors
// need it.
func (v value) memberPos(i int) position {
	found := v.pos
	// an earlier walk had no error
	_ = v.walk('{', func(_, _ []byte, at position) error {
		if i--; i >= -1 {
			found = at
		}
		return nil
	})
	return found
}

// readMerges reads merges.txt: "left right" per line, in the order of rank, after an optional
// "#version" line.
func readMerges(data []byte) (ruleList, error) {
	at := inFile(mergesFile)
	if !utf8.Valid(data) {
		return ruleList{}, at.malformed("not UTF-8")
	}
	data = bytes.TrimRight(data, "\r\n")
	begin := 1 // line of the first merge
	if line, rest, _ := bytes.Cut(data, []byte("\n")); len(bytes.TrimSuffix(line,
		[]byte("\r"))) == 0 || bytes.HasPrefix(line, []byte("#version")) {
		data, begin = rest, 2
	}
	if len(data) == 0 {
		return ruleList{}, at.malformed("no merges: every text would fall into single bytes; " +
			"get the whole file")
	}
	list := ruleList{count: fixed(1 + bytes.Count(data, []byte("\n"))), pos: func(i int) position {
		return at.line(begin + i)
	}}
	list.each = func(_ *lexicon, use func(left, right []byte, tied bool) error) error {
		i := 0
		for line := range bytes.SplitSeq(data, []byte("\n")) {
			// a checkout on Windows
			left, right, err := splitMerge(bytes.TrimSuffix(line, []byte("\r")), list.pos(i))
			if err != nil {
				return err
			}
			if err := use(left, right, false); err != nil {
				return err
			}
			i++
		}
		return nil
	}
	return list, nil
}

// splitMerge reads "left right".
func splitMerge(text []byte, pos position) (left, right []byte, err error) {
	left, right, ok := bytes.Cut(text, []byte(" "))
	if !ok || len(left) == 0 || len(right) == 0 || bytes.Contains(right, []byte(" ")) {
		return nil, nil, pos.malformed("%.60q is not two tokens with one space between them", text)
	}
	return left, right, nil
}

// readFile returns a text of the folder, if it is not absurdly large.
func readFile(ctx context.Context, dir, name string) ([]byte, error) {
	data, err := input.ReadDocument(ctx, filepath.Join(dir, name), input.Limit{Most: maxFile})
	if errors.Is(err, input.ErrTooLarge) {
		return nil, inFile(name).unsupported("larger than %d MiB, which no tokenizer is; check "+
			"what the file is", maxFile>>20)
	}
	if err != nil {
		return nil, fmt.Errorf("tokenizer: %w", err)
	}
	return data, nil
}

// readOptional reads a file of JSON that may be missing: an empty object then.
func readOptional(ctx context.Context, dir, name string) (value, error) {
	data, err := readFile(ctx, dir, name)
	if errors.Is(err, fs.ErrNotExist) {
		data, err = []byte("{}"), nil
	}
	if err != nil {
		return value{}, err
	}
	return jsonFile(name, data)
}

// find returns the member of that name, or false.
func find(members []value, name string) (value, bool) {
	i := slices.IndexFunc(members, func(m value) bool { return m.name == name })
	if i < 0 {
		return value{}, false
	}
	return members[i], true
}

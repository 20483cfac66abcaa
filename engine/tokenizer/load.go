package tokenizer

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
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

// maxFile is the size beyond which a file is refused unread; the largest byte-level vocabularies take a few MiB.
const maxFile = 256 << 20

// Load reads the tokenizer of a Hugging Face folder: tokenizer.json or, where there is none, vocab.json and merges.txt
// or, where there are neither, tokenizer.model; and tokenizer_config.json, special_tokens_map.json and added_tokens.json,
// as far as they are there. A folder with nothing but vocab.json and merges.txt has no special token but
// "<|endoftext|>", as for GPT-2; one with nothing but tokenizer.model is taken for Llama's.
//
// Errors are ErrFormat (a file contradicts itself or another) or ErrUnsupported (a setting or kind of tokenizer that this
// package does not have), with file and line; others come from reading the files.
func Load(dir string) (*Tokenizer, error) {
	set := newSettings()
	src := source{name: dir}
	data, err := set.choose(dir)
	if err != nil {
		return nil, err
	}
	switch set.form {
	case jsonForm:
		err = readTokenizerJSON(&src, set, data)
	case vocabFile:
		err = readModelFiles(&src, dir, data)
	}
	if err != nil {
		return nil, err
	}
	if err := set.readFolder(dir); err != nil {
		return nil, err
	}
	switch set.form {
	case vocabFile:
		src.spec = plainPipeline(set.prefixSpace != nil && *set.prefixSpace)
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

// choose finds the file that has the vocabulary, and reads it.
func (s *settings) choose(dir string) ([]byte, error) {
	var missing error
	for _, form := range []string{jsonForm, vocabFile, modelFile} {
		data, err := readFile(dir, form)
		if !errors.Is(err, fs.ErrNotExist) {
			s.form = form
			return data, err
		}
		if missing == nil {
			missing = err
		}
	}
	return nil, fmt.Errorf("tokenizer: %s: neither %s, %s nor %s: give the folder of a model with its tokenizer: %w", dir, jsonForm, vocabFile, modelFile, missing)
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
		return position{file: configFile}.unsupported("add_prefix_space is false, but legacy is not, for %s; supported: legacy false", modelFile)
	case !legacy && blank:
		scheme = prefixFirst
	case !legacy:
		scheme = prefixNever
	}
	return file.fill(src, scheme)
}

// readModelFiles reads vocab.json, already in memory, and merges.txt.
func readModelFiles(src *source, dir string, vocab []byte) error {
	v, err := jsonFile(vocabFile, vocab)
	if err != nil {
		return err
	}
	if src.vocab, err = readVocab(v); err != nil {
		return err
	}
	merges, err := readFile(dir, mergesFile)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("tokenizer: %s: %s is there, %s is not: without merges every text would fall into single bytes; copy it from the model: %w", dir, vocabFile, mergesFile, err)
	}
	if err != nil {
		return err
	}
	src.merges, err = readMerges(merges)
	return err
}

// readVocab reads an object {"token": id, …}.
func readVocab(v value) ([]entry, error) {
	var out []entry
	err := v.eachMember(func(m value) error {
		id, err := m.id()
		out = append(out, entry{text: m.name, id: id, pos: m.pos})
		return err
	})
	return out, err
}

// readMerges reads merges.txt: "left right" per line, in the order of rank, after an optional "#version" line.
func readMerges(data []byte) ([]rule, error) {
	if !utf8.Valid(data) {
		return nil, position{file: mergesFile}.malformed("not UTF-8")
	}
	var out []rule
	lines := bytes.Split(bytes.TrimRight(data, "\r\n"), []byte("\n"))
	for i, line := range lines {
		pos := position{file: mergesFile, entry: i + 1}
		text := strings.TrimSuffix(string(line), "\r") // a checkout on Windows
		if i == 0 && (text == "" || strings.HasPrefix(text, "#version")) {
			continue
		}
		r, err := splitMerge(text, pos)
		if err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	if len(out) == 0 {
		return nil, position{file: mergesFile}.malformed("no merges: every text would fall into single bytes; get the whole file")
	}
	return out, nil
}

// splitMerge reads "left right".
func splitMerge(text string, pos position) (rule, error) {
	left, right, ok := strings.Cut(text, " ")
	if !ok || left == "" || right == "" || strings.Contains(right, " ") {
		return rule{}, pos.malformed("%.60q is not two tokens with one space between them", text)
	}
	return rule{left: left, right: right, pos: pos}, nil
}

// readFile returns a file of the folder, if it is not absurdly large.
func readFile(dir, name string) ([]byte, error) {
	f, err := os.Open(filepath.Join(dir, name))
	if err != nil {
		return nil, fmt.Errorf("tokenizer: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("tokenizer: %w", err)
	}
	if len(data) > maxFile {
		return nil, position{file: name}.unsupported("larger than %d MiB, which no tokenizer is; check what the file is", maxFile>>20)
	}
	return data, nil
}

// readOptional returns the members of a JSON object in a file that may be missing.
func readOptional(dir, name string) ([]value, error) {
	data, err := readFile(dir, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	v, err := jsonFile(name, data)
	if err != nil {
		return nil, err
	}
	return v.object()
}

// find returns the member of that name, or false.
func find(members []value, name string) (value, bool) {
	i := slices.IndexFunc(members, func(m value) bool { return m.name == name })
	if i < 0 {
		return value{}, false
	}
	return members[i], true
}

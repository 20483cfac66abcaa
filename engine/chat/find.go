package chat

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/windrow-sim/windrow/internal/input"
)

// The files of a folder that may hold a template, in the order in which they are looked at.
const (
	templateFile = "chat_template.jinja"
	olderFile    = "chat_template.json"
	configFile   = "tokenizer_config.json"
)

// maxConfig is the size of the largest tokenizer_config.json that is read; Gemma 3's has 1.2 MB.
const maxConfig = 64 << 20

// Source is a template with the place that it came from. Text is "" where there is none; From then
// says what was found instead, if anything.
type Source struct{ Text, From string }

// Find returns the template of a folder: that of chat_template.jinja, else of chat_template.json,
// else of tokenizer_config.json, where the one named "default" counts of several.
func Find(ctx context.Context, dir string) (Source, error) {
	data, err := input.ReadText(ctx, filepath.Join(dir, templateFile),
		input.Limit{Most: maxTemplate})
	if err == nil {
		return FromText(string(data), templateFile)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return Source{}, fmt.Errorf("chat template: %w", err)
	}
	for _, name := range []string{olderFile, configFile} {
		found, err := inJSON(ctx, dir, name)
		if err != nil || found.From != "" {
			return found, err
		}
	}
	return Source{}, nil
}

// FromFile returns the template of a file.
func FromFile(ctx context.Context, path string) (Source, error) {
	data, err := input.ReadText(ctx, path, input.Limit{Most: maxTemplate})
	if err != nil {
		return Source{}, fmt.Errorf("chat template: %w", err)
	}
	return FromText(string(data), path)
}

// FromText returns a template that is known to be somewhere. One that is not UTF-8 or too long is
// an ErrTemplate.
func FromText(source, from string) (Source, error) {
	if !utf8.ValidString(source) {
		return Source{}, templateError("%s is not UTF-8", from)
	}
	if len(source) > maxTemplate {
		return Source{}, templateError("%s has %d bytes; at most %d are taken", from, len(source),
			maxTemplate)
	}
	return Source{source, from}, nil
}

// inJSON returns the member chat_template of a file of JSON.
func inJSON(ctx context.Context, dir, name string) (Source, error) {
	data, err := input.ReadDocument(ctx, filepath.Join(dir, name), input.Limit{Most: maxConfig})
	if errors.Is(err, fs.ErrNotExist) {
		return Source{}, nil
	}
	if err != nil {
		return Source{}, fmt.Errorf("chat template: %w", err)
	}
	var file struct {
		Template json.RawMessage `json:"chat_template"`
	}
	if err := json.Unmarshal(data, &file); err != nil {
		return Source{}, templateError("%s: %v", name, err)
	}
	raw := bytes.TrimSpace(file.Template)
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return Source{}, nil
	case raw[0] == '"':
		var one string
		if err := json.Unmarshal(raw, &one); err != nil {
			return Source{}, templateError("%s: %v", name, err)
		}
		return FromText(one, name)
	}
	var list []struct{ Name, Template string }
	if err := json.Unmarshal(raw, &list); err != nil {
		return Source{}, templateError("%s: chat_template is neither a text nor a list of named "+
			"ones: %v", name, err)
	}
	var names []string
	for _, t := range list {
		if t.Name == "default" {
			return FromText(t.Template, name+`, the one named "default"`)
		}
		names = append(names, t.Name)
	}
	slices.Sort(names)
	return Source{From: fmt.Sprintf("%s has templates named %s, but none named default", name,
		strings.Join(names, ", "))}, nil
}

package tokenizer

import (
	"slices"
	"strconv"
	"strings"
)

// endOfText is what GPT-2's tokenizer takes for BOS and EOS where no file names them.
const endOfText = "<|endoftext|>"

// settings is what the files beside the vocabulary say. Each can be said in two files, which must then agree.
type settings struct {
	fromJSON    bool              // the vocabulary came from tokenizer.json
	tokens      map[string]string // role ("bos_token") → text, "" for an explicit null
	said        map[string]value  // role → where
	additional  []entry           // further special tokens, without ids
	added       []entry           // tokens with ids
	addBOS      *bool
	prefixSpace *bool
}

func newSettings() *settings {
	return &settings{tokens: make(map[string]string), said: make(map[string]value)}
}

// tokenRoles are the names under which the files keep single special tokens.
func tokenRoles() []string {
	return []string{"bos_token", "eos_token", "unk_token", "pad_token", "sep_token", "cls_token", "mask_token"}
}

// harmless are the settings that cannot change ids: they concern batches, other programs, or how Python decodes.
func harmless() []string {
	return []string{
		"model_max_length", "max_len", "name_or_path", "special_tokens_map_file", "tokenizer_file", "vocab_file", "merges_file",
		"padding_side", "truncation_side", "model_input_names", "chat_template", "processor_class", "trim_offsets", "use_fast",
		"clean_up_tokenization_spaces", "transformers_version", "backend", "is_local", "init_inputs",
	}
}

// readFolder reads tokenizer_config.json, special_tokens_map.json and added_tokens.json, as far as they are there.
func (s *settings) readFolder(dir string) error {
	config, err := readOptional(dir, configFile)
	if err != nil {
		return err
	}
	if err := s.readMembers(config, s.readConfig); err != nil {
		return err
	}
	specials, err := readOptional(dir, specialFile)
	if err != nil {
		return err
	}
	if err := s.readMembers(specials, s.readSpecial); err != nil {
		return err
	}
	list, err := readOptional(dir, addedFile)
	if err != nil {
		return err
	}
	for _, m := range list {
		id, err := m.id()
		if err != nil {
			return err
		}
		s.added = append(s.added, entry{m.name, id, added, m.pos})
	}
	return nil
}

// readMembers reads each setting, and collects the names of those that read does not know.
func (s *settings) readMembers(members []value, read func(value) (known bool, err error)) error {
	var unknown []string
	for _, m := range members {
		known, err := read(m)
		if err != nil {
			return err
		}
		if !known {
			unknown = append(unknown, m.name)
		}
	}
	if len(unknown) > 0 {
		return position{file: members[0].pos.file}.unsupported("unknown settings, which may change the ids: %s; if they do not, take them out of the file", strings.Join(unknown, ", "))
	}
	return nil
}

// readConfig reads one member of tokenizer_config.json.
func (s *settings) readConfig(m value) (known bool, err error) {
	switch {
	case slices.Contains(harmless(), m.name):
		return true, nil
	case m.name == "add_bos_token":
		return true, m.setFlag(&s.addBOS)
	case m.name == "add_prefix_space":
		return true, m.setFlag(&s.prefixSpace)
	case slices.Contains([]string{"add_eos_token", "do_lower_case", "split_special_tokens"}, m.name):
		return true, m.expectRaw("null", "false")
	case m.name == "errors":
		return true, m.expectRaw(`"replace"`)
	case m.name == "extra_special_tokens":
		return true, m.expectRaw("null", "{}", "[]")
	case m.name == "tokenizer_class" && s.fromJSON:
		return true, m.expectRaw(`"GPT2Tokenizer"`, `"GPT2TokenizerFast"`, `"PreTrainedTokenizerFast"`)
	case m.name == "tokenizer_class":
		return true, m.expectRaw(`"GPT2Tokenizer"`, `"GPT2TokenizerFast"`)
	case m.name == "added_tokens_decoder":
		return true, s.readDecoder(m)
	}
	return s.readSpecial(m)
}

// setFlag stores a boolean; null leaves it unsaid. Another file may have said the same, but not the opposite.
func (m value) setFlag(into **bool) error {
	if m.null() {
		return nil
	}
	b, err := m.flag()
	if err == nil && *into != nil && **into != b {
		return m.pos.malformed("%s is %v, but %s says the opposite", m.name, b, jsonForm)
	}
	*into = &b
	return err
}

// expectRaw refuses every value that is not one of the given ones.
func (m value) expectRaw(allowed ...string) error {
	if slices.Contains(allowed, string(m.raw)) {
		return nil
	}
	return m.pos.unsupported("%s is %.60s; supported: %s", m.name, m.raw, strings.Join(allowed, ", "))
}

// readSpecial reads a member that names special tokens: all of special_tokens_map.json, and some of the configuration.
func (s *settings) readSpecial(m value) (known bool, err error) {
	if m.name == "additional_special_tokens" {
		if m.null() {
			return true, nil
		}
		list, err := m.array("")
		if err != nil {
			return true, err
		}
		for _, el := range list {
			tok, err := el.addedToken()
			if err != nil {
				return true, err
			}
			s.additional = append(s.additional, entry{text: tok.text, kind: control, pos: el.pos})
		}
		return true, nil
	}
	if !slices.Contains(tokenRoles(), m.name) {
		return false, nil
	}
	var tok entry
	if !m.null() {
		if tok, err = m.addedToken(); err != nil {
			return true, err
		}
	}
	if before, twice := s.said[m.name]; twice && s.tokens[m.name] != tok.text {
		return true, m.pos.malformed("%s is %q, but %q at %v", m.name, tok.text, s.tokens[m.name], before.pos)
	}
	s.tokens[m.name], s.said[m.name] = tok.text, m
	return true, nil
}

// readDecoder reads added_tokens_decoder: {"id": token, …}.
func (s *settings) readDecoder(m value) error {
	members, err := m.object()
	if err != nil {
		return err
	}
	for _, el := range members {
		id, err := strconv.ParseUint(el.name, 10, 32)
		if err != nil {
			return el.pos.malformed("added_tokens_decoder: %q is not a token id", el.name)
		}
		tok, err := el.addedToken()
		if err != nil {
			return err
		}
		tok.id = uint32(id)
		s.added = append(s.added, tok)
	}
	return nil
}

// addedToken reads a token that is a string or an object with flags. The flags that make it swallow blanks or look at
// the characters around it are refused; "normalized" has no meaning here, since nothing is normalized.
func (m value) addedToken() (entry, error) {
	tok := entry{kind: added, pos: m.pos}
	if len(m.raw) > 0 && m.raw[0] == '"' {
		var err error
		tok.text, err = m.text()
		return tok, err
	}
	members, err := m.object()
	if err != nil {
		return tok, err
	}
	for _, f := range members {
		switch f.name {
		case "content":
			tok.text, err = f.text()
		case "id":
			tok.id, err = f.id()
		case "special":
			var yes bool
			if yes, err = f.flag(); yes {
				tok.kind = control
			}
		case "normalized":
			_, err = f.flag()
		case "lstrip", "rstrip", "single_word":
			err = f.expectRaw("false")
		case "__type":
			err = f.expectRaw(`"AddedToken"`)
		default:
			err = f.pos.unsupported("special token with the unknown flag %q", f.name)
		}
		if err != nil {
			return tok, err
		}
	}
	return tok, nil
}

// apply puts the settings into a source whose vocabulary has been read.
func (s *settings) apply(src *source) error {
	ids := make(map[string]uint32, len(src.vocab))
	for _, e := range slices.Concat(src.vocab, s.added) {
		ids[e.text] = e.id
	}
	src.extra = append(src.extra, s.added...)
	src.roles.addBOS = s.addBOS != nil && *s.addBOS
	src.roles.prefixSpace = s.prefixSpace != nil && *s.prefixSpace
	for _, role := range tokenRoles() {
		text, said := s.tokens[role]
		if !said && (role == "bos_token" || role == "eos_token") {
			if _, ok := ids[endOfText]; ok {
				text = endOfText
			}
		}
		if text == "" {
			continue
		}
		s.additional = append(s.additional, entry{text: text, kind: control, pos: s.said[role].pos})
		id := ids[text]
		switch role {
		case "bos_token":
			src.roles.bos = &id
		case "eos_token":
			src.roles.eos = &id
		case "pad_token":
			src.roles.pad = &id
		}
	}
	for _, e := range s.additional {
		id, ok := ids[e.text]
		if !ok {
			return e.pos.malformed("special token %q has no id: it is neither in the vocabulary nor among the added tokens; add it to %s", e.text, addedFile)
		}
		e.id = id
		src.extra = append(src.extra, e)
	}
	return nil
}

package tokenizer

import (
	"context"
	"slices"
	"strconv"
	"strings"
)

// endOfText is GPT-2's BOS and EOS if no file names them.
const endOfText = "<|endoftext|>"

// settings are read from the files beside the vocabulary. A setting may be in two files, which must
// then agree.
type settings struct {
	form        string            // the file with the vocabulary
	class       string            // tokenizer_class; may be empty
	tokens      map[string]string // role ("bos_token") → text, "" for an explicit null
	said        map[string]value  // role → where
	flagged     map[string]entry  // role → the token as an object
	additional  []entry           // further special tokens, without ids
	added       []entry           // tokens with ids
	decoder     bool              // tokenizer_config.json lists the added tokens with their flags
	addBOS      *bool
	addEOS      value // where add_eos_token is true
	prefixSpace *bool
	legacy      *bool
	template    *template // of tokenizer.json
}

func newSettings() *settings {
	return &settings{tokens: make(map[string]string), said: make(map[string]value),
		flagged: make(map[string]entry)}
}

// tokenRoles are the names under which the files keep single special tokens.
func tokenRoles() []string {
	return []string{"bos_token", "eos_token", "unk_token", "pad_token", "sep_token", "cls_token",
		"mask_token"}
}

// harmless are the settings that cannot change ids: they concern batches, other programs, or
// Python's decoding. A chat_template stays in its file: it is a program in Jinja that makes a text
// of messages, and its output can be encoded like any text.
func harmless() []string {
	return []string{
		"model_max_length", "max_len", "name_or_path", "special_tokens_map_file", "tokenizer_file",
		"vocab_file", "merges_file",
		"padding_side", "truncation_side", "model_input_names", "chat_template", "processor_class",
		"trim_offsets", "use_fast",
		"clean_up_tokenization_spaces", "transformers_version", "backend", "is_local",
		"init_inputs",
		"use_default_system_prompt", "spaces_between_special_tokens", "return_token_type_ids",
		"local_files_only", "model_specific_special_tokens",
		"max_length", "stride", "truncation_strategy", "pad_to_multiple_of", "pad_token_type_id",
	}
}

// readFolder reads tokenizer_config.json, special_tokens_map.json and added_tokens.json, if they
// exist.
func (s *settings) readFolder(ctx context.Context, dir string) error {
	for _, file := range []struct {
		name string
		read func(value) (known bool, err error)
	}{{configFile, s.readConfig}, {specialFile, s.readSpecial}} {
		v, err := readOptional(ctx, dir, file.name)
		if err != nil {
			return err
		}
		members, err := v.object()
		if err != nil {
			return err
		}
		if err := s.readMembers(members, file.read); err != nil {
			return err
		}
	}
	list, err := readOptional(ctx, dir, addedFile)
	if err != nil {
		return err
	}
	return list.eachMember(func(m value) error {
		id, err := m.id()
		s.added = append(s.added, entry{text: m.name, id: id, kind: added, pos: m.pos})
		return err
	})
}

// readMembers reads each setting, and collects the names that read does not know.
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
		return inFile(members[0].pos.in.file).unsupported("unknown settings, which may change "+
			"the ids: %s; if they do not, take them out of the file", strings.Join(unknown, ", "))
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
	case m.name == "legacy":
		return true, m.setFlag(&s.legacy)
	case m.name == "add_eos_token":
		if string(m.raw) == "true" {
			s.addEOS = m
		}
		return true, m.expectRaw("null", "false", "true")
	case slices.Contains([]string{"do_lower_case", "split_special_tokens"}, m.name):
		return true, m.expectRaw("null", "false")
	case m.name == "errors":
		return true, m.expectRaw(`"replace"`)
	case m.name == "sp_model_kwargs":
		return true, m.expectRaw("null", "{}", "[]")
	case m.name == "extra_special_tokens":
		return true, s.readExtra(m)
	case m.name == "tokenizer_class":
		return true, s.readClass(m)
	case m.name == "added_tokens_decoder":
		return true, s.readDecoder(m)
	case strings.HasSuffix(m.name, "_token") && !slices.Contains(tokenRoles(), m.name) &&
		(m.null() || m.raw[0] == '"' || m.raw[0] == '{'):
		// the name of a token in a model's own code, as image_token
		return true, nil
	}
	return s.readSpecial(m)
}

// tokenizerClass is a class of transformers, with the ids that it makes whatever the files say.
type tokenizerClass struct {
	forms  []string // the files that a tokenizer of it may come from
	around bool     // it puts tokens around a text by its settings alone, not by tokenizer.json
	addBOS bool     // without add_bos_token
	// the tokens of roles that no file names, if the vocabulary has them
	bos, eos, unk string
}

// tokenizerClasses are the classes by name. Their effect on the ids is known; others might differ.
var tokenizerClasses = func() map[string]tokenizerClass {
	llama := tokenizerClass{[]string{jsonForm, modelFile}, true, true, "<s>", "</s>", "<unk>"}
	gpt2 := tokenizerClass{[]string{jsonForm, vocabFile}, false, false, endOfText, endOfText, ""}
	plain := tokenizerClass{[]string{jsonForm}, false, false, endOfText, endOfText, ""}
	list := map[string]tokenizerClass{
		"LlamaTokenizer": llama, "GPT2Tokenizer": gpt2, "CodeGenTokenizer": gpt2,
		"GPTNeoXTokenizer": {[]string{jsonForm}, true, false, endOfText, endOfText, ""},
		"Qwen2Tokenizer":   {[]string{jsonForm, vocabFile}, false, false, "", endOfText, ""},
		"GemmaTokenizer":   {[]string{jsonForm}, true, true, "<bos>", "<eos>", "<unk>"},
	}
	for name, f := range list {
		list[name+"Fast"] = f
	}
	// transformers 5 has the second name for the first
	list["PreTrainedTokenizerFast"], list["TokenizersBackend"] = plain, plain
	return list
}()

// family returns what is known of the tokenizer_class; of none, that of the form.
func (s *settings) family() tokenizerClass {
	switch {
	case s.form == modelFile && s.class == "":
		return tokenizerClasses["LlamaTokenizer"]
	case s.class == "":
		return tokenizerClasses["GPT2Tokenizer"]
	}
	return tokenizerClasses[s.class]
}

func (s *settings) readClass(m value) error {
	if m.null() {
		return nil
	}
	var known []string
	for name, f := range tokenizerClasses {
		if slices.Contains(f.forms, s.form) {
			known = append(known, `"`+name+`"`)
		}
	}
	slices.Sort(known)
	if err := m.expectRaw(known...); err != nil {
		return err
	}
	var err error
	s.class, err = m.text()
	return err
}

// setFlag stores a boolean; null leaves it unset. Another file may have the same value, but not the
// opposite.
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
	return m.pos.unsupported("%s is %.60s; supported: %s", m.name, m.raw, strings.Join(allowed,
		", "))
}

// readSpecial reads a member that names special tokens: all of special_tokens_map.json, and some of
// the configuration.
func (s *settings) readSpecial(m value) (known bool, err error) {
	if m.name == "additional_special_tokens" {
		return true, s.readExtra(m)
	}
	if !slices.Contains(tokenRoles(), m.name) {
		return false, nil
	}
	var tok listedToken
	if !m.null() {
		if tok, err = m.addedToken(); err != nil {
			return true, err
		}
	}
	if before, twice := s.said[m.name]; twice && s.tokens[m.name] != tok.text {
		return true, m.pos.malformed("%s is %q, but %q at %v", m.name, tok.text, s.tokens[m.name],
			before.pos)
	}
	s.tokens[m.name], s.said[m.name] = tok.text, m
	if tok.flagged && s.counts(m) {
		s.flagged[m.name] = tok.entry
	}
	return true, nil
}

// readExtra reads further special tokens: a list, or an object with a name for each.
func (s *settings) readExtra(m value) error {
	read := func(el value) error {
		tok, err := el.addedToken()
		tok.kind, tok.flagged = control, tok.flagged && s.counts(el)
		s.additional = append(s.additional, tok.entry)
		return err
	}
	switch {
	case m.null():
		return nil
	case m.raw[0] == '{':
		return m.eachMember(read)
	}
	return m.eachElement("", read)
}

// counts reports whether the flags of a token at m are used: special_tokens_map.json only names
// tokens if tokenizer_config.json lists them.
func (s *settings) counts(m value) bool { return m.pos.in.file == configFile || !s.decoder }

// readDecoder reads added_tokens_decoder: {"id": token, …}.
func (s *settings) readDecoder(m value) error {
	s.decoder = true
	return m.eachMember(func(el value) error {
		id, err := strconv.ParseUint(el.name, 10, 32)
		if err != nil {
			return el.pos.malformed("added_tokens_decoder: %q is not a token id", el.name)
		}
		tok, err := el.addedToken()
		tok.id = uint32(id)
		s.added = append(s.added, tok.entry)
		return err
	})
}

// listedToken is a special token in a list; its id is optional.
type listedToken struct {
	entry
	numbered bool
}

// addedToken reads a token that is a string or an object with flags.
func (m value) addedToken() (listedToken, error) {
	tok := listedToken{entry: entry{kind: added, pos: m.pos}}
	if m.raw[0] == '"' {
		var err error
		tok.text, err = m.text()
		return tok, err
	}
	said := false // whether it is normalized
	tok.flagged = true
	set := func(flag flags, f value) error {
		yes, err := f.flag()
		tok.flags = tok.flags.with(flag, yes)
		return err
	}
	err := m.eachMember(func(f value) (err error) {
		switch f.name {
		case "content":
			tok.text, err = f.text()
		case "id":
			tok.numbered = true
			tok.id, err = f.id()
		case "special":
			var yes bool
			if yes, err = f.flag(); yes {
				tok.kind = control
			}
		case "normalized":
			said = true
			err = set(normalized, f)
		case "lstrip":
			err = set(lstrip, f)
		case "rstrip":
			err = set(rstrip, f)
		case "single_word":
			err = set(singleWord, f)
		case "__type":
			err = f.expectRaw(`"AddedToken"`)
		default:
			err = f.pos.unsupported("special token with the unknown flag %q", f.name)
		}
		return err
	})
	if !said {
		tok.flags = tok.flags.with(normalized, tok.kind == added)
	}
	return tok, err
}

// apply puts the settings into a source whose vocabulary has been read.
func (s *settings) apply(src *source) error {
	if src.extra == nil {
		src.extra = s.added // the many tokens of tokenizer.json are not copied
	} else {
		src.extra = append(src.extra, s.added...)
	}
	lex, err := src.lexicon()
	if err != nil {
		return err
	}
	for _, role := range tokenRoles() {
		text, said := s.tokens[role]
		if !said {
			text = s.defaultToken(role, lex)
		}
		if text == "" {
			continue
		}
		e := entry{text: text, kind: control, pos: s.said[role].pos}
		if tok, ok := s.flagged[role]; ok {
			e.flags, e.flagged = tok.flags, true
		}
		s.additional = append(s.additional, e)
		id, _ := lex.find(text) // its existence is checked below
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
		id, ok := lex.find(e.text)
		if !ok {
			return e.pos.malformed("special token %q has no id: it is neither in the vocabulary "+
				"nor among the added tokens; add it to %s", e.text, addedFile)
		}
		e.id = id
		src.extra = append(src.extra, e)
	}
	if s.form == modelFile {
		if err := cutAsWritten(src.extra); err != nil {
			return err
		}
	}
	return s.putAround(src, lex)
}

// defaultToken returns transformers' default for a role that no file names, if the vocabulary has
// it.
func (s *settings) defaultToken(role string, lex *lexicon) string {
	f := s.family()
	text := map[string]string{"bos_token": f.bos, "eos_token": f.eos, "unk_token": f.unk}[role]
	if s.template != nil && role == "bos_token" && len(s.template.prefix) > 0 {
		text = s.template.prefix[0]
	}
	if _, ok := lex.find(text); !ok {
		return ""
	}
	return text
}

// cutAsWritten sets the flags of tokenizer.model's special tokens to those of transformers'
// LlamaTokenizer, which cuts all of them out of the text before the model sees it. Tokens that no
// file names keep their flags.
func cutAsWritten(list []entry) error {
	for i := range list {
		e := &list[i]
		if e.flags.has(uncut | frozen) {
			continue
		}
		if e.flags.has(singleWord) {
			return e.pos.unsupported("special token %q with single_word beside %s", e.text,
				modelFile)
		}
		e.flags, e.flagged = e.flags.with(normalized, false), true
	}
	return nil
}

// putAround decides which tokens Encode puts around a text: those of the class (Llama), or of
// tokenizer.json's template and add_bos_token.
func (s *settings) putAround(src *source, lex *lexicon) error {
	r := &src.roles
	if f := s.family(); f.around {
		if s.addEOS.raw != nil {
			if r.eos == nil {
				return s.addEOS.pos.malformed("add_eos_token is true, but there is no eos_token")
			}
			r.suffix = []uint32{*r.eos}
		}
		if s.addBOS != nil {
			return r.putBOSFirst(*s.addBOS, src.name)
		}
		return r.putBOSFirst(f.addBOS, src.name)
	}
	if s.template != nil {
		var err error
		if r.prefix, err = s.template.resolve(s.template.prefix, lex); err != nil {
			return err
		}
		if r.suffix, err = s.template.resolve(s.template.suffix, lex); err != nil {
			return err
		}
	}
	switch {
	case s.addEOS.raw != nil && len(r.suffix) == 0:
		return s.addEOS.pos.unsupported("add_eos_token is true for a %s; supported: for a "+
			"LlamaTokenizer, GemmaTokenizer or GPTNeoXTokenizer", s.class)
	case s.addBOS != nil && !*s.addBOS && len(r.prefix) > 0:
		return inFile(configFile).malformed("add_bos_token is false, but %s says the opposite",
			jsonForm)
	case len(r.prefix) > 0:
		return nil
	}
	return r.putBOSFirst(s.addBOS != nil && *s.addBOS, src.name)
}

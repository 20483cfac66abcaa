package tokenizer

import "encoding/json"

// readTokenizerJSON reads the one-file form, as far as it says the same as vocab.json, merges.txt and the flags of
// tokenizer_config.json could. Merges come as "a b" or, since tokenizers 0.20, as ["a", "b"].
func readTokenizerJSON(src *source, set *settings, data []byte) error {
	set.fromJSON = true
	file, err := jsonFile(jsonForm, data)
	if err != nil {
		return err
	}
	members, err := file.object()
	if err != nil {
		return err
	}
	for _, m := range members {
		switch m.name {
		case "version", "padding": // padding concerns batches
		case "truncation", "normalizer":
			err = m.expectRaw("null")
		case "pre_tokenizer":
			err = readPreTokenizer(m, set)
		case "post_processor":
			err = readPostProcessor(m, set)
		case "decoder":
			_, err = m.component("ByteLevel")
		case "added_tokens":
			err = readAddedTokens(m, set)
		case "model":
			err = readModel(m, src)
		default:
			err = m.pos.unsupported("unknown part %q, which may change the ids", m.name)
		}
		if err != nil {
			return err
		}
	}
	if len(src.vocab) == 0 {
		return position{file: jsonForm}.malformed("no vocabulary")
	}
	return nil
}

// component returns the members of {"type": kind, …}.
func (m value) component(kinds ...string) ([]value, error) {
	if m.null() {
		return nil, m.pos.unsupported("%s is null; supported: %v", m.name, kinds)
	}
	members, err := m.object()
	if err != nil {
		return nil, err
	}
	kind, _ := find(members, "type")
	for _, k := range kinds {
		if string(kind.raw) == `"`+k+`"` {
			return members, nil
		}
	}
	return nil, m.pos.unsupported("%s is of type %.40s; supported: %v", m.name, kind.raw, kinds)
}

func readPreTokenizer(m value, set *settings) error {
	members, err := m.component("ByteLevel")
	if err != nil {
		return err
	}
	if regex, ok := find(members, "use_regex"); ok {
		if err := regex.expectRaw("true"); err != nil {
			return err
		}
	}
	if prefix, ok := find(members, "add_prefix_space"); ok {
		return prefix.setFlag(&set.prefixSpace)
	}
	return nil
}

// readPostProcessor learns from a template whether a token is put first.
func readPostProcessor(m value, set *settings) error {
	if m.null() {
		return nil
	}
	members, err := m.component("ByteLevel", "TemplateProcessing")
	if err != nil {
		return err
	}
	single, ok := find(members, "single")
	if !ok {
		return nil
	}
	var parts []map[string]struct{ ID string }
	if err := json.Unmarshal(single.raw, &parts); err != nil {
		return single.pos.malformed("single is no template: %v", err)
	}
	for i, p := range parts {
		token, special := p["SpecialToken"]
		_, text := p["Sequence"]
		switch {
		case text && i == len(parts)-1:
			return nil
		case special && i == 0:
			yes := true
			set.addBOS = &yes
			set.tokens["bos_token"], set.said["bos_token"] = token.ID, single
		default:
			return single.pos.unsupported("a template other than [BOS, text]; give the model's vocab.json and merges.txt instead")
		}
	}
	return single.pos.malformed("the template has no place for the text")
}

func readAddedTokens(m value, set *settings) error {
	list, err := m.array("added_tokens")
	if err != nil {
		return err
	}
	for _, el := range list {
		tok, err := el.addedToken()
		if err != nil {
			return err
		}
		set.added = append(set.added, tok)
	}
	return nil
}

func readModel(m value, src *source) error {
	members, err := m.component("BPE")
	if err != nil {
		return err
	}
	for _, f := range members {
		switch f.name {
		case "type", "unk_token", "fuse_unk": // nothing is unknown to a byte-level vocabulary
		case "dropout":
			err = f.expectRaw("null", "0.0")
		case "continuing_subword_prefix", "end_of_word_suffix":
			err = f.expectRaw("null", `""`)
		case "byte_fallback", "ignore_merges":
			err = f.expectRaw("false")
		case "vocab":
			src.vocab, err = readVocab(f)
		case "merges":
			src.merges, err = readMergeList(f)
		default:
			err = f.pos.unsupported("unknown setting %q of the model", f.name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// readMergeList reads a list of merges in either spelling.
func readMergeList(m value) ([]rule, error) {
	list, err := m.array("merges")
	if err != nil {
		return nil, err
	}
	out := make([]rule, len(list))
	for i, el := range list {
		if el.raw[0] != '[' {
			text, err := el.text()
			if err != nil {
				return nil, err
			}
			if out[i], err = splitMerge(text, el.pos); err != nil {
				return nil, err
			}
			continue
		}
		var p []string
		if err := json.Unmarshal(el.raw, &p); err != nil || len(p) != 2 {
			return nil, el.pos.malformed("%.60s is not a pair of tokens", el.raw)
		}
		out[i] = rule{p[0], p[1], el.pos}
	}
	return out, nil
}

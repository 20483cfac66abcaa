package model

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/windrow-sim/windrow/engine/checkpoint"
)

// endsField is the field of config.json and of generation_config.json with the ids that end a text.
const endsField = "eos_token_id"

// mostEnds bounds the ids that end a text; published models have up to five.
const mostEnds = 1024

// endIDs reads an id, or a list of ids, that end a text. Ids that the model cannot produce are left
// out, with a note.
func endIDs(o checkpoint.Object, file string, vocab int) (ids []uint32, notes []string, err error) {
	m, ok := o[endsField]
	if !ok || m.Null() {
		return nil, nil, nil
	}
	list := make([]int, 1)
	if strings.HasPrefix(string(m.JSON), "[") {
		err = m.Decode(endsField, &list)
	} else {
		err = m.Decode(endsField, &list[0])
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", file, err)
	}
	if len(list) > mostEnds {
		return nil, nil, fmt.Errorf("%s: %w: %s lists %d ids; up to %d are read", file,
			checkpoint.ErrFormat, endsField, len(list), mostEnds)
	}
	for _, id := range list {
		if id < 0 || id >= vocab {
			notes = append(notes, fmt.Sprintf("%s: %s %d ends no text, because the vocabulary "+
				"has the ids 0 to %d", file, endsField, id, vocab-1))
			continue
		}
		ids = append(ids, uint32(id))
	}
	return ids, notes, nil
}

// union returns the ids of both lists, ascending, once each.
func union(a, b []uint32) []uint32 {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

// encodeEnds writes ids for the metadata of an image.
func encodeEnds(ids []uint32) string {
	var list []string
	for _, id := range ids {
		list = append(list, strconv.FormatUint(uint64(id), 10))
	}
	return strings.Join(list, " ")
}

// decodeEnds reads ids that encodeEnds wrote.
func decodeEnds(text string, vocab int) ([]uint32, error) {
	var ids []uint32
	for at, word := range strings.Fields(text) {
		id, err := strconv.ParseUint(word, 10, 32)
		if err != nil || id >= uint64(vocab) || at >= mostEnds ||
			at > 0 && uint32(id) <= ids[at-1] {
			return nil, fmt.Errorf("%w: metadata %s is %.100q; ascending ids below %d are wanted",
				checkpoint.ErrFormat, endsKey, text, vocab)
		}
		ids = append(ids, uint32(id))
	}
	return ids, nil
}

// endsKey names the ids in the metadata of an image.
const endsKey = "eos_token_ids"

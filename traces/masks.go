package traces

import "github.com/windrow-sim/windrow/internal/decisions/memory"

// MaskTrace returns the true or the predicted masks of the first tokens of a trace, for the account
// of memory.
func MaskTrace(src Source, tokens int, predicted bool) memory.Trace {
	head := src.Header()
	var t Token
	return memory.Trace{Tokens: min(tokens, src.Tokens()), Layers: head.Layers, Units: head.Units,
		Token: func(i int) (memory.Token, error) {
			err := src.Token(i, &t)
			return memory.Token{Seq: t.Seq, Pos: t.Pos, Masks: t.Masks(predicted)}, err
		}}
}

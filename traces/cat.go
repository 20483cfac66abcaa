package traces

import (
	"bufio"
	"fmt"
	"io"
	"strconv"

	"github.com/windrow-sim/windrow/internal/mask"
)

// CatOptions choose what WriteCSV and WriteJSONL print. The zero value prints all tokens, without
// lists of units.
type CatOptions struct {
	From  int // first token
	Count int // tokens; 0 means all from From on
	// also the indices of the active (and predicted) units and the codes of the magnitudes
	Units bool
}

// span returns the half-open range of tokens.
func (o CatOptions) span(src Source) (from, to int, err error) {
	n := src.Tokens()
	if o.From < 0 || o.Count < 0 || o.From > n {
		return 0, 0, fmt.Errorf("traces: cat: from token %d, %d tokens: the trace has %d tokens",
			o.From, o.Count, n)
	}
	if o.Count == 0 || o.Count > n-o.From {
		return o.From, n, nil
	}
	return o.From, o.From + o.Count, nil
}

// WriteCSV prints one line per token and layer: seq, pos, phase, token, layer, active_count, and
// predicted_count if the trace has predicted masks. With Units it also prints the active and the
// predicted units, with spaces between, and the MagnitudeCodes of the active units in the same
// order. It does not print features, which have thousands of numbers per line.
func WriteCSV(w io.Writer, src Source, opt CatOptions) error {
	predicted, magnitude := src.Header().HasPredicted, src.Header().HasMagnitude && opt.Units
	head := "seq,pos,phase,token,layer,active_count"
	if predicted {
		head += ",predicted_count"
	}
	if opt.Units {
		head += ",active"
		if predicted {
			head += ",predicted"
		}
	}
	if magnitude {
		head += ",magnitude"
	}
	return eachRow(w, head+"\n", src, opt, func(b []byte, t *Token, l int) []byte {
		b = strconv.AppendUint(b, uint64(t.Seq), 10)
		b = strconv.AppendUint(append(b, ','), uint64(t.Pos), 10)
		b = append(append(b, ','), t.Phase.String()...)
		b = strconv.AppendUint(append(b, ','), uint64(t.ID), 10)
		b = strconv.AppendInt(append(b, ','), int64(l), 10)
		b = strconv.AppendInt(append(b, ','), int64(t.Active[l].Count()), 10)
		if predicted {
			b = strconv.AppendInt(append(b, ','), int64(t.Predicted[l].Count()), 10)
		}
		if opt.Units {
			b = appendUnits(append(b, ','), t.Active[l], ' ')
			if predicted {
				b = appendUnits(append(b, ','), t.Predicted[l], ' ')
			}
		}
		if magnitude {
			b = appendCodes(append(b, ','), t.Magnitude[l], ' ')
		}
		return b
	})
}

// WriteJSONL prints the rows of WriteCSV as one JSON object per line. Lists of units are arrays of
// numbers.
func WriteJSONL(w io.Writer, src Source, opt CatOptions) error {
	predicted, magnitude := src.Header().HasPredicted, src.Header().HasMagnitude && opt.Units
	return eachRow(w, "", src, opt, func(b []byte, t *Token, l int) []byte {
		b = strconv.AppendUint(append(b, `{"seq":`...), uint64(t.Seq), 10)
		b = strconv.AppendUint(append(b, `,"pos":`...), uint64(t.Pos), 10)
		b = append(append(append(b, `,"phase":"`...), t.Phase.String()...), '"')
		b = strconv.AppendUint(append(b, `,"token":`...), uint64(t.ID), 10)
		b = strconv.AppendInt(append(b, `,"layer":`...), int64(l), 10)
		b = strconv.AppendInt(append(b, `,"active_count":`...), int64(t.Active[l].Count()), 10)
		if predicted {
			b = strconv.AppendInt(append(b, `,"predicted_count":`...),
				int64(t.Predicted[l].Count()),
				10)
		}
		if opt.Units {
			b = append(appendUnits(append(b, `,"active":[`...), t.Active[l], ','), ']')
			if predicted {
				b = append(appendUnits(append(b, `,"predicted":[`...), t.Predicted[l], ','), ']')
			}
		}
		if magnitude {
			b = append(appendCodes(append(b, `,"magnitude":[`...), t.Magnitude[l], ','), ']')
		}
		return append(b, '}')
	})
}

// eachRow prints the head and then one line per token and layer.
func eachRow(w io.Writer, head string, src Source, opt CatOptions, line func([]byte, *Token,
	int) []byte) error {
	from, to, err := opt.span(src)
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(w, 1<<16)
	if _, err := out.WriteString(head); err != nil {
		return fmt.Errorf("traces: cat: %w", err)
	}
	var t Token
	var b []byte
	for i := from; i < to; i++ {
		if err := src.Token(i, &t); err != nil {
			return err
		}
		for l := range t.Active {
			b = append(line(b[:0], &t, l), '\n')
			if _, err := out.Write(b); err != nil {
				return fmt.Errorf("traces: cat: %w", err)
			}
		}
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("traces: cat: %w", err)
	}
	return nil
}

// appendUnits appends the units of a mask with sep between them.
func appendUnits(b []byte, m mask.Mask, sep byte) []byte {
	first := true
	for u := range m.Each {
		if !first {
			b = append(b, sep)
		}
		first = false
		b = strconv.AppendUint(b, uint64(u), 10)
	}
	return b
}

// appendCodes appends codes with sep between them.
func appendCodes(b, codes []byte, sep byte) []byte {
	for i, c := range codes {
		if i > 0 {
			b = append(b, sep)
		}
		b = strconv.AppendUint(b, uint64(c), 10)
	}
	return b
}

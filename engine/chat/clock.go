package chat

import (
	"fmt"
	"strings"
	"time"

	"github.com/ardanlabs/jinja"
)

// now implements strftime_now with a given clock, in English, as Python's C locale.
func now(at time.Time, args []jinja.Value) (jinja.Value, error) {
	if len(args) != 1 || !args[0].IsString() {
		return jinja.Undefined(), fmt.Errorf("strftime_now wants one text")
	}
	const layouts = "Y2006 m01 d02 H15 M04 S05 y06 I03 BJanuary bJan hJan AMonday aMon pPM j002"
	format, out := args[0].AsString(), strings.Builder{}
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 == len(format) {
			out.WriteByte(format[i])
			continue
		}
		i++
		trim := format[i] == '-' && i+1 < len(format) // no zeros in front
		if trim {
			i++
		}
		text, known := "", false
		for layout := range strings.FieldsSeq(layouts) {
			if layout[0] == format[i] {
				text, known = at.Format(layout[1:]), true
			}
		}
		switch format[i] {
		case '%':
			text, known = "%", true
		case 'F':
			text, known = at.Format("2006-01-02"), true
		case 'T':
			text, known = at.Format("15:04:05"), true
		case 'e':
			text, known = at.Format("_2"), true
		}
		if !known {
			return jinja.Undefined(), fmt.Errorf("strftime_now with %%%c", format[i])
		}
		if trim && len(text) > 1 {
			text = strings.TrimLeft(text[:len(text)-1], "0") + text[len(text)-1:]
		}
		out.WriteString(text)
	}
	return jinja.NewString(out.String()), nil
}

package report

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"

	"github.com/windrow-sim/windrow/internal/document"
	"github.com/windrow-sim/windrow/internal/plain"
	"github.com/windrow-sim/windrow/traces"
	"github.com/windrow-sim/windrow/traces/compare"
)

// WriteGoBench writes a run as Go benchmark lines for benchstat: one for its prompt tokens, one for
// its decoded tokens, whichever it has. Keys become parts of the name after the model and the
// device, "/win=5", so that benchstat can filter and project by them. Append the lines of several
// runs to one file to give benchstat its samples. The numbers of a simulation have no noise; the
// unit lines tell benchstat so.
func WriteGoBench(w io.Writer, run *traces.Run, keys ...document.Fact) error {
	tokens, err := compare.Tokens(run)
	if err != nil {
		return fmt.Errorf("report: go bench: %w", err)
	}
	kind := strings.ReplaceAll(run.Meta.Kind(), ", ", "-")
	var b strings.Builder
	for _, c := range []document.Fact{{Key: "tool", Value: run.Meta.Tool},
		{Key: "run", Value: kind}, {Key: "trace", Value: run.Meta.Trace},
		{Key: "seed", Value: strconv.FormatUint(run.Meta.Seed, 10)}} {
		fmt.Fprintf(&b, "%s: %s\n", c.Key, plain.Line(c.Value))
	}
	assume := ""
	if run.Meta.Simulated {
		assume = " assume=exact"
	}
	fmt.Fprintf(&b, "Unit sec/token better=lower%[1]s\nUnit tokens/sec better=higher%[1]s\n"+
		"Unit B/token better=lower%[1]s\nUnit requests/token better=lower%[1]s\n", assume)
	// The kind is last: benchstat takes digits after the last hyphen of a name for GOMAXPROCS.
	name := "/model=" + benchWord(run.Meta.Model) + "/dev=" + benchWord(run.Meta.Device)
	for _, k := range keys {
		name += "/" + benchWord(k.Key) + "=" + benchWord(k.Value)
	}
	name += "/kind=" + benchWord(kind)
	for _, phase := range []struct {
		name  string
		phase traces.Phase
	}{{"Prefill", traces.Prefill}, {"Decode", traces.Decode}} {
		var part []compare.Token
		for _, t := range tokens {
			if t.Phase == phase.phase {
				part = append(part, t)
			}
		}
		if len(part) > 0 {
			b.WriteString(benchLine("Benchmark"+phase.name+name, part))
		}
	}
	_, err = io.WriteString(w, b.String())
	return err
}

func benchLine(name string, ts []compare.Token) string {
	t := sum(ts, 0)
	line := name + " 1"
	add := func(v float64, unit string) {
		line += " " + strconv.FormatFloat(v, 'g', -1, 64) + " " +
			unit
	}
	add(t.perToken(t.wall.Seconds()), "sec/token")
	if t.wall > 0 {
		add(t.rate(), "tokens/sec")
	}
	add(t.perToken(float64(t.bytes)), "B/token")
	add(t.perToken(float64(t.requests)), "requests/token")
	return line + "\n"
}

// benchWord makes s one word of a benchmark name.
func benchWord(s string) string {
	if s == "" {
		return "unknown"
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || unicode.IsControl(r) || r == '/' || r == '=' {
			return '_'
		}
		return r
	}, s)
}

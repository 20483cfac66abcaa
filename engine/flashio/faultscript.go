package flashio

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
)

type faultKind int

const (
	faultEIO faultKind = iota
	faultShort
	faultSpike
)

// fault is one statement of a fault script.
type fault struct {
	kind  faultKind
	text  string        // the statement, for error messages
	at    int64         // number of the failing read; 0 when every is set
	every int64         // each read with a number that is a multiple fails
	keep  int           // faultShort: bytes that are read
	delay time.Duration // faultSpike
	p     float64       // faultSpike: probability for each read
	dice  *rand.Rand    // faultSpike
}

// parseFaults reads a fault script: see WithFaults for the language.
func parseFaults(script string) ([]fault, error) {
	var faults []fault
	number := 0
	for text := range strings.FieldsFuncSeq(script, func(r rune) bool {
		return r == ';' ||
			r == '\n'
	}) {
		words := strings.Fields(text)
		if len(words) == 0 {
			continue
		}
		number++
		f, err := parseFault(words)
		if err != nil {
			return nil, fmt.Errorf("flashio: fault script: statement %d, %q: %w", number,
				strings.TrimSpace(text), err)
		}
		f.text = strings.Join(words, " ")
		faults = append(faults, f)
	}
	return faults, nil
}

func parseFault(words []string) (fault, error) {
	switch words[0] {
	case "eio":
		f := fault{kind: faultEIO}
		return f, f.parseWhen(words[1:])
	case "short":
		f := fault{kind: faultShort}
		if len(words) < 2 {
			return f, fmt.Errorf("the number of bytes is missing; write for example \"short 512 " +
				"every 100\"")
		}
		keep, err := strconv.ParseInt(words[1], 10, 32)
		if err != nil || keep < 0 {
			return f, fmt.Errorf("%q is not a number of bytes from 0 to %d", words[1],
				math.MaxInt32)
		}
		f.keep = int(keep)
		return f, f.parseWhen(words[2:])
	case "spike":
		return parseSpike(words[1:])
	}
	return fault{}, fmt.Errorf("unknown fault %q; known are eio, short, spike", words[0])
}

// parseWhen reads "at read N" or "every N".
func (f *fault) parseWhen(words []string) error {
	var number string
	var into *int64
	switch {
	case len(words) == 3 && words[0] == "at" && words[1] == "read":
		number, into = words[2], &f.at
	case len(words) == 2 && words[0] == "every":
		number, into = words[1], &f.every
	default:
		return fmt.Errorf("%q does not say when; write \"at read N\" or \"every N\"",
			strings.Join(words, " "))
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < 1 {
		return fmt.Errorf("%q is not a count of reads from 1", number)
	}
	*into = n
	return nil
}

// parseSpike reads "DURATION p=P" with an optional "seed=S".
func parseSpike(words []string) (fault, error) {
	f := fault{kind: faultSpike}
	if len(words) < 2 || len(words) > 3 {
		return f, fmt.Errorf("write for example \"spike 20ms p=0.001 seed=1\"")
	}
	delay, err := time.ParseDuration(words[0])
	if err != nil || delay <= 0 {
		return f, fmt.Errorf("%q is not a duration above 0, such as 20ms", words[0])
	}
	f.delay = delay
	text, ok := strings.CutPrefix(words[1], "p=")
	p, err := strconv.ParseFloat(text, 64)
	if !ok || err != nil || !(p >= 0 && p <= 1) {
		return f, fmt.Errorf("%q is not a probability; write p=0 to p=1", words[1])
	}
	f.p = p
	seed := uint64(1)
	if len(words) == 3 {
		text, ok := strings.CutPrefix(words[2], "seed=")
		if seed, err = strconv.ParseUint(text, 10, 64); !ok || err != nil {
			return f, fmt.Errorf("%q is not a seed; write for example seed=1", words[2])
		}
	}
	// "spike": so that the same seed elsewhere gives other numbers
	const stream = 0x7370696b65
	f.dice = rand.New(rand.NewPCG(seed, stream))
	return f, nil
}

// strikes reports whether an eio or short fault hits read number n.
func (f *fault) strikes(n int64) bool {
	return n == f.at || f.every > 0 && n%f.every == 0
}

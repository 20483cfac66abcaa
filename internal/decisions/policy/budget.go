package policy

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/windrow-sim/windrow/internal/units"
)

// ParseBudget reads the text form of a Spec whose capacities may be sizes: "lru:1GiB",
// "hot:256MiB+1GiB", "window:5,capacity:1GiB", "pages:1GiB,ahead:128KiB". A capacity in bytes is
// for all layers together; each layer gets the same number of whole records. A size after "ahead:"
// is that of one group of at least one record. The returned Spec is in units. Errors wrap ErrSpec.
func ParseBudget(text string, record units.Bytes, layers int) (Spec, error) {
	var out strings.Builder
	for rest := text; rest != ""; {
		part, mark := rest, ""
		if end := strings.IndexAny(rest, ":,+"); end >= 0 {
			part, mark = rest[:end], rest[end:end+1]
		}
		rest = rest[len(part)+len(mark):]
		number, err := budget(out.String(), part, record, layers)
		if err != nil {
			return Spec{}, fmt.Errorf("policy: %.64q: %w", text, err)
		}
		out.WriteString(number)
		out.WriteString(mark)
	}
	return Parse(out.String())
}

// budget replaces a size after some text by a number of units, and returns other text unchanged.
func budget(before, part string, record units.Bytes, layers int) (string, error) {
	if part == "" || part[0] < '0' || part[0] > '9' || !strings.HasSuffix(part, "B") {
		return part, nil
	}
	size, err := units.ParseBytes(part)
	switch {
	case err != nil:
		return "", fmt.Errorf("%w: %w", err, ErrSpec)
	case record <= 0 || layers <= 0:
		return "", fmt.Errorf("%s in %d layers with records of %v: %w", part, layers, record,
			ErrSpec)
	case before == KindTensors+":" || before == KindWindow+":":
		return "", fmt.Errorf("%s: behind %q stands a number of layers or tokens, not of bytes: %w",
			part, before, ErrSpec)
	case strings.HasSuffix(before, ",ahead:"):
		return strconv.Itoa(max(Units(size, record), 1)), nil
	}
	return strconv.Itoa(Units(size/units.Bytes(layers), record)), nil
}

package whatif

import (
	"errors"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/internal/input/inputtest"
)

// TestAbsurdNumbers gives each number of the options absurd values, in the text form and as a field
// of a scenario. It is refused by key and value, or it is a share, a seed or a threshold.
func TestAbsurdNumbers(t *testing.T) {
	refused := 0
	fields := reflect.TypeFor[Options]()
	for i := range fields.NumField() {
		field := fields.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		key := strings.ReplaceAll(name, "_", "-")
		if field.Type.Kind() == reflect.Bool {
			continue
		}
		for _, value := range append(inputtest.Absurd(), "1e308%", "-1%", "NaN%") {
			o, err := Parse(key + "=" + value)
			fits := err == nil
			if v, notNumber := strconv.ParseFloat(value,
				64); field.Type.Kind() == reflect.Float64 &&
				notNumber == nil {
				var direct Options
				reflect.ValueOf(&direct).Elem().Field(i).SetFloat(v)
				// 0 stands for a share that is not given.
				if direct.Check() == nil != fits && v != 0 {
					t.Errorf("%s = %s: the text %v, the field %v", key, value, err, direct.Check())
				}
			}
			if fits {
				within := o.Share <= 1 && o.LayerShare <= 1 && o.FalseNegatives <= 1 &&
					o.FalsePositives <= 1
				if !within || strings.Contains(value, "NaN") || strings.HasPrefix(value, "-") ||
					strings.Contains(value, "Inf") {
					t.Errorf("%s = %s is accepted: %+v", key, value, o)
				}
				continue
			}
			refused++
			if text := err.Error(); !errors.Is(err, ErrOptions) || !strings.Contains(text, key) ||
				!strings.Contains(text, value) &&
					!strings.Contains(text, inputtest.Printed(value)) {
				t.Errorf("%s = %s: %v", key, value, err)
			}
		}
	}
	if refused < 60 {
		t.Errorf("%d values are refused", refused)
	}
}

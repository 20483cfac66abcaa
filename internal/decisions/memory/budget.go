package memory

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/windrow-sim/windrow/internal/refusal"
	"github.com/windrow-sim/windrow/internal/units"
)

// ErrBudget marks a budget that is below the memory of the smallest configuration.
var ErrBudget = refusal.Kind(refusal.ErrConfig, "the budget is below the floor")

// BudgetError is an ErrBudget with the account that does not fit.
type BudgetError struct {
	Budget units.Bytes
	Floor  Memory
}

// Error names the floor and its parts.
func (e *BudgetError) Error() string {
	with := "with nothing kept between tokens"
	if e.Floor.Window > 0 {
		with = fmt.Sprintf("with a window of %d tokens", e.Floor.Window)
	}
	return fmt.Sprintf("memory: %v: %v, and %v are needed even %s (%v); give it more, or take "+
		"fewer positions or a smaller model", ErrBudget, e.Budget, e.Floor.Total, with, e.Floor)
}

// Unwrap makes the error an ErrBudget.
func (e *BudgetError) Unwrap() error { return ErrBudget }

// Check returns a *BudgetError when the account does not fit into a budget.
func (m Memory) Check(budget units.Bytes) error {
	if m.Total <= budget {
		return nil
	}
	return &BudgetError{Budget: budget, Floor: m}
}

// ParseBudget reads a budget: a size (2GiB), or a percentage of the model's weights (52%) without
// the padding of an image. The error has no prefix: the caller names the flag.
func ParseBudget(text string, weights units.Bytes) (units.Bytes, error) {
	number, percent := strings.CutSuffix(text, "%")
	if !percent {
		budget, err := units.ParseBytes(text)
		if err != nil {
			return 0, fmt.Errorf("%w; or a percentage of the model's weights (52%%)", err)
		}
		if budget < 1 {
			return 0, fmt.Errorf("a size above 0 is wanted")
		}
		return budget, nil
	}
	v, err := strconv.ParseFloat(number, 64)
	if err != nil || !(v > 0 && v <= 1000) {
		return 0, fmt.Errorf("a percentage above 0%%, up to 1000%%, is wanted")
	}
	return units.Bytes(math.Round(v / 100 * float64(weights))), nil
}

// RoomForRows returns the number of rows per layer that a budget has room for when the masks are
// unknown, and the account with so many rows. Every layer behind the dense ones has a cache of so
// many rows. The staging buffer has room for half of them, each rounded outwards to whole blocks of
// align bytes. The result is at most the units of a layer. The error for a budget below two rows,
// one to keep and one to load, is a *BudgetError.
func RoomForRows(m Model, c Config, align, budget units.Bytes) (int, Memory, error) {
	at := func(rows int) Memory {
		c.Rows = make([]int, m.Layers)
		for l := range c.Rows {
			c.Rows[l] = rows
		}
		c.Staging = units.Bytes(rows+1) / 2 * (max(m.Stride, m.Record) + 2*max(align, 1))
		return Account(m, c)
	}
	fewest := min(2, m.Units)
	if c.Dense >= m.Layers {
		none := at(0)
		return m.Units, none, none.Check(budget)
	}
	if floor := at(fewest); floor.Total > budget {
		return 0, floor, floor.Check(budget)
	}
	low, high := fewest, m.Units // bounds of the result
	for low < high {
		if rows := (low + high + 1) / 2; at(rows).Total <= budget {
			low = rows
		} else {
			high = rows - 1
		}
	}
	return low, at(low), nil
}

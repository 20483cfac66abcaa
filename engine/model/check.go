package model

import (
	"context"
	"errors"
	"fmt"

	"github.com/windrow-sim/windrow/engine/checkpoint"
	"github.com/windrow-sim/windrow/internal/units"
)

// maxDamage bounds the list of a Check.
const maxDamage = 100

// Check says which blocks of an image have other bytes than were written.
type Check struct {
	Bytes   units.Bytes // of the image
	Hashed  bool        // without hashes nothing was compared
	Blocks  int64       // compared
	Damaged int64       // blocks among them
	Damage  []*Damage   // the first of the damaged blocks
}

// CheckImage compares every byte of an image with its hashes, and then checks what OpenImage does.
// Damage is no error. An error ends the check: the file is no image, or it cannot be read. progress
// may be nil.
func CheckImage(ctx context.Context, path string, progress Progress) (*Check, error) {
	file, err := checkpoint.Open(ctx, path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	c := &Check{Bytes: units.Bytes(file.Size())}
	h, err := openHashes(file, file.Metadata())
	if err == nil && h != nil {
		c.Hashed = true
		err = c.compare(ctx, h, meter(progress, file.Size()))
	}
	if err == nil && c.Damaged == 0 {
		_, err = newImage(path, file)
	}
	if err != nil {
		return nil, fmt.Errorf("model: %s: %w", path, err)
	}
	return c, nil
}

func (c *Check) compare(ctx context.Context, h *hashes, moved func(int64)) error {
	found := func(err error) error {
		damage := (*Damage)(nil)
		if !errors.As(err, &damage) {
			return err
		}
		if c.Damaged++; len(c.Damage) < maxDamage {
			c.Damage = append(c.Damage, damage)
		}
		return nil
	}
	counted := func(n int64) {
		c.Blocks++
		moved(n)
	}
	// A table that is damaged itself would accuse the others.
	if err := h.all(ctx, h.parts[:1], counted, found); err != nil || c.Damaged > 0 {
		return err
	}
	return h.all(ctx, h.parts[1:], counted, found)
}

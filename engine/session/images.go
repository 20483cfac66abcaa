package session

import (
	"context"
	"fmt"

	"github.com/windrow-sim/windrow/engine/checkpoint"
	"github.com/windrow-sim/windrow/engine/model"
	"github.com/windrow-sim/windrow/internal/document"
	"github.com/windrow-sim/windrow/internal/tell"
	"github.com/windrow-sim/windrow/internal/units"
)

// The states of a checked image.
const (
	Whole    = "whole"
	Damaged  = "damaged"
	Unhashed = "without hashes" // its bytes cannot be compared with anything
)

// ImageCheck says whether the bytes of an image are those that were written.
type ImageCheck struct {
	Path    string          `json:"path"`
	State   string          `json:"state"`
	Bytes   units.Bytes     `json:"bytes"`
	Blocks  int64           `json:"blocks"` // compared with their hashes
	Damaged int64           `json:"damaged_blocks"`
	Damage  []*model.Damage `json:"damage"` // the first hundred of the damaged blocks
}

// ImagesCheck is the check of several images, in their order.
type ImagesCheck struct {
	Images []ImageCheck `json:"images"`
}

// CheckImages compares every byte of images with their hashes. Damage is no error: No tells. A file
// that cannot be read, or is no image, is an error; those that do not even begin as one are found
// before any is read whole.
func CheckImages(ctx context.Context, paths []string, to tell.Tell) (*ImagesCheck, error) {
	for _, path := range paths {
		file, err := checkpoint.Open(ctx, path)
		if err != nil {
			return nil, err
		}
		file.Close()
	}
	r := &ImagesCheck{}
	for _, path := range paths {
		c, err := model.CheckImage(ctx, path, to.MiB("check "+path+" (MiB)"))
		if err != nil {
			return nil, err
		}
		one := ImageCheck{Path: path, State: Whole, Bytes: c.Bytes, Blocks: c.Blocks,
			Damaged: c.Damaged, Damage: append([]*model.Damage{}, c.Damage...)}
		switch {
		case !c.Hashed:
			one.State = Unhashed
		case c.Damaged > 0:
			one.State = Damaged
		}
		r.Images = append(r.Images, one)
	}
	return r, nil
}

// whole is the number of whole images.
func (r *ImagesCheck) whole() int {
	n := 0
	for i := range r.Images {
		if r.Images[i].State == Whole {
			n++
		}
	}
	return n
}

// No says why not every image is known to be whole; "" if they are.
func (r *ImagesCheck) No() string {
	for i := range r.Images {
		text, one := "", &r.Images[i]
		switch one.State {
		case Whole:
			continue
		case Unhashed:
			text = "it has no hashes to be checked by; pack it again"
		default:
			text = one.Damage[0].Error()
		}
		text = fmt.Sprintf("%s: %s", one.Path, text)
		if n := len(r.Images); n > 1 {
			text = fmt.Sprintf("%d of %d images are not known to be whole: %s", n-r.whole(), n,
				text)
		}
		return text
	}
	return ""
}

// Document describes the check: the state of every image, and the damaged blocks.
func (r *ImagesCheck) Document() *document.Document {
	d := &document.Document{Name: "image-check", Title: "windrow image check", Result: r,
		Headline: fmt.Sprintf("%d of %d images are whole", r.whole(), len(r.Images))}
	if len(r.Images) == 1 {
		i := &r.Images[0]
		d.Headline = fmt.Sprintf("%s: %s", i.Path, i.State)
		switch i.State {
		case Damaged:
			d.Headline += fmt.Sprintf(" in %d of %d blocks", i.Damaged, i.Blocks)
		case Whole:
			d.Headline += fmt.Sprintf(", %d blocks", i.Blocks)
		}
	}
	list := document.NewTable(document.Text("image"), document.Text("state"),
		document.Number("size", ""), document.Number("blocks", ""),
		document.Number("damaged", ""))
	damage := document.NewTable(document.Text("image"), document.Text("part"),
		document.Number("first byte", ""), document.Number("last byte", ""))
	for k := range r.Images {
		i := &r.Images[k]
		list.Add(i.Path, i.State, document.IEC(i.Bytes), document.Count(i.Blocks),
			document.Count(i.Damaged))
		for _, b := range i.Damage {
			damage.Add(i.Path, b.Part, fmt.Sprint(b.Offset),
				fmt.Sprint(b.Offset+int64(b.Bytes)-1))
		}
		if i.Damaged > int64(len(i.Damage)) {
			d.Note("Of %s the first %d damaged blocks are listed.", i.Path, len(i.Damage))
		}
	}
	d.Add("Images", "", *list)
	d.Add("Damaged blocks", "Bytes are counted from the start of the file.", *damage)
	return d
}

package report

import (
	"encoding/xml"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
)

func TestFront(t *testing.T) {
	points := []Point{{4, 1, "a"}, {1, 4, "b"}, {2, 2, "c"}, {2, 3, "beaten"}, {5, 1, "beaten"},
		{2, 2, "twice"}}
	if got := Front(points); !slices.Equal(got, []int{1, 2, 0}) {
		t.Errorf("front %v", got)
	}
}

func TestParetoDrawingIsXML(t *testing.T) {
	var b strings.Builder
	if err := WriteParetoSVG(&b, "MB per token", "perplexity", []Point{{4, 10, "5 % <all>"},
		{1, 40, "1 %"}}); err != nil {
		t.Fatal(err)
	}
	dots := 0
	for dec := xml.NewDecoder(strings.NewReader(b.String())); ; {
		tok, err := dec.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if e, ok := tok.(xml.StartElement); ok && e.Name.Local == "circle" {
			dots++
		}
	}
	if dots != 2 {
		t.Errorf("%d points drawn", dots)
	}
	if WriteParetoSVG(&b, "", "", nil) == nil {
		t.Error("nothing was drawn without an error")
	}
}

//go:build published

package chat

import (
	"encoding/json"
	"flag"
	"maps"
	"os"
	"slices"
	"testing"
)

var publishedTexts = flag.String("chats", "", "output of tools/chat_templates/make.py published")

// TestPublishedTemplates compares the texts of published templates with those of transformers. The
// templates are not ours: `make published` fetches them.
func TestPublishedTemplates(t *testing.T) {
	data, err := os.ReadFile(*publishedTexts)
	if err != nil {
		t.Fatal(err)
	}
	var ref struct {
		Templates map[string]struct {
			Source   string
			Rendered map[string]expectedText
		}
	}
	if err := json.Unmarshal(data, &ref); err != nil || len(ref.Templates) < 60 {
		t.Fatalf("%d templates, error %v", len(ref.Templates), err)
	}
	all, equal, refused := 0, 0, 0
	for _, name := range slices.Sorted(maps.Keys(ref.Templates)) {
		tmpl := ref.Templates[name]
		n, same := 0, 0
		for conversation, want := range tmpl.Rendered {
			if want.Error != "" {
				refused++
				continue
			}
			got, err := renderTest(t, tmpl.Source, conversation)
			if n++; err == nil && got == want.Text {
				same++
			} else if testing.Verbose() {
				t.Logf("%s, %s: error %v\n got %q\nwant %q", name, conversation, err, got,
					want.Text)
			}
		}
		t.Logf("%s: %d of %d", name, same, n)
		all, equal = all+n, equal+same
	}
	t.Logf("%d of %d texts are equal; Python refuses %d more", equal, all, refused)
	if all-equal > all/100 {
		t.Errorf("more than 1 %% of the texts differ")
	}
}

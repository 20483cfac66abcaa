package arrivals

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/windrow-sim/windrow/internal/input/inputtest"
)

// unread are the names of numbers that are not read.
var unread = []string{"Total tokens", "hash_ids", "Session ID", "Elapsed time", "value", "id"}

// TestAbsurdNumbers replaces each number of the first lines of every format. It is refused by file,
// line, field and value, or is one that a request may have.
func TestAbsurdNumbers(t *testing.T) {
	refused := 0
	for _, name := range []string{"azure-2023.csv", "azure-2024.csv", "burstgpt.csv", "vidur.csv",
		"burstgpt-sessions.csv", "mooncake.jsonl"} {
		all, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		good := bytes.Join(bytes.SplitAfter(all, []byte("\n"))[:4], nil)
		list := inputtest.CSV
		if strings.HasSuffix(name, ".jsonl") {
			list = inputtest.JSON
		}
		numbers := list(t, good)
		if len(numbers) < 6 {
			t.Errorf("%s: %d numbers", name, len(numbers))
		}
		for _, n := range numbers {
			if inputtest.In(unread, n.Path) {
				continue
			}
			for _, other := range inputtest.Absurd() {
				err := readAll(name, n.Replaced(good, other))
				if err == nil {
					if slices.Contains(inputtest.Impossible(), other) {
						t.Errorf("%s:%d: %s = %s is accepted", name, n.Line, n.Path, other)
					}
					continue
				}
				// Times in the wrong order are refused where the order breaks.
				if refused++; strings.Contains(err.Error(), string(Unsorted)) {
					continue
				}
				missing := n.Missing(err, name, other)
				if strings.Contains(err.Error(), string(NotJSON)) && !strings.Contains(missing,
					"line") {
					missing = ""
				}
				if missing != "" || !errors.Is(err, ErrFormat) {
					t.Errorf("%s:%d: %s = %s: without %s: %v", name, n.Line, n.Path, other, missing,
						err)
				}
			}
		}
	}
	if refused < 300 {
		t.Errorf("%d numbers are refused", refused)
	}
	err := readAll("x.csv", []byte("arrived_at,num_prefill_tokens,num_decode_tokens\n"+
		"0,1,2147483648"))
	if err == nil || !strings.Contains(err.Error(), "at most 2147483647 tokens") {
		t.Errorf("%v does not name the limit", err)
	}
}

// readAll reads a file to its end.
func readAll(name string, data []byte) error {
	r, err := New(bytes.NewReader(data), name, Options{})
	var req Request
	for err == nil {
		err = r.Next(&req)
	}
	if err == io.EOF {
		return nil
	}
	return err
}

// TestLineOfBrokenConversation: JSON that is broken is refused by the line where its value begins.
func TestLineOfBrokenConversation(t *testing.T) {
	const good = `{"id": "a", "conversations": []},` + "\n"
	r, err := New(strings.NewReader("[\n"+good+good+"{\"id\": NaN}]"), "x.json", Options{
		Format: ShareGPT, Count: func(string) int { return 1 }})
	var req Request
	for err == nil {
		err = r.Next(&req)
	}
	if want := "x.json: line 4: conversation 3"; !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %q", err, want)
	}
}

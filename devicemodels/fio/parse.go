package fio

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/windrow-sim/windrow/internal/input"
	"github.com/windrow-sim/windrow/internal/units"
)

// MaxBytes is the size limit of a file.
const MaxBytes = 256 * units.MiB

// maxTries bounds the places that are tried as the start of fio's JSON and are not.
const maxTries = 64

// Read reads one output of fio of at most MaxBytes. Errors are those of the file system, or wrap
// ErrFormat.
func Read(ctx context.Context, path string) (*File, error) {
	data, err := input.ReadFile(ctx, path, input.Limit{Most: MaxBytes})
	if err != nil {
		return nil, fmt.Errorf("fio: %w", err)
	}
	return input.Await(ctx, path, func() (*File, error) { return Parse(path, data) }, nil)
}

// Parse reads one output of fio: JSON with any text around it. The text becomes warnings and errors
// of the File. It also reads bandwidth logs of fio and the results of a few other storage tests,
// and refuses others by their names. name is the File of the Entries, and is used in messages.
// Errors wrap ErrFormat.
func Parse(name string, data []byte) (*File, error) {
	fail := func(format string, args ...any) (*File, error) {
		return nil, fmt.Errorf("fio: %s: %s: %w", name, fmt.Sprintf(format, args...), ErrFormat)
	}
	if len(data) > int(MaxBytes) {
		return fail("is larger than %v", MaxBytes)
	}
	if bytes.HasPrefix(data, []byte{0xff, 0xfe}) || bytes.HasPrefix(data, []byte{0xfe, 0xff}) {
		return fail("is UTF-16, as PowerShell redirects; let fio write the file itself with " +
			"--output=FILE")
	}
	head := data[:min(len(data), input.HeadBytes)]
	if err := input.ForeignText(name, head, input.Other); err != nil {
		return fail("%v", err)
	}
	data = input.TrimMark(data)
	found, err := find(data)
	if len(found.documents) == 0 && err == nil && bytes.Contains(data, []byte("> {")) {
		found, err = find(withoutHosts(data))
	}
	if len(found.documents) == 0 && err != nil {
		return fail("%v", err)
	}
	f := &File{Name: name, Tool: toolFio}
	if len(found.documents) > 0 {
		f.addNoise(found.around)
		f.addDocuments(found.documents)
		f.addBroken(&found)
		f.Warnings = append(f.Warnings, oddNumbers(&found)...)
		return f, nil
	}
	for _, read := range []func(*File, []byte) (bool, error){readLog, readElbencho, readDiskMark} {
		if mine, err := read(f, data); err != nil {
			return fail("%v", err)
		} else if mine {
			return f, nil
		}
	}
	if why := foreign(data); why != "" {
		return fail("%s", why)
	}
	said := ""
	if lines := quotable(data); len(lines) > 0 {
		said = fmt.Sprintf(" (it says %s)", quote(lines[0].text))
	}
	return fail("holds no JSON object of fio%s; run fio with --output-format=json+ "+
		"--output=FILE", said)
}

// findings are the JSON objects of fio in a file, and what is around them.
type findings struct {
	data      []byte
	documents []document
	at        []place // of the documents
	around    []around
	broken    int  // objects of fio that cannot be read, beside those that can
	lastCut   bool // the last of them goes on to the end of the file
}

// around is the text before, between and after the JSON objects.
type around struct {
	where string
	text  []byte
}

// place is a part of a file: its first byte, and the one behind its last.
type place struct{ start, end int }

// versionKey is the first key of fio's JSON.
var versionKey = []byte(`"fio version"`)

// find returns the JSON objects of fio and the text around them. An object begins at the start of a
// line, also after a carriage return; one that begins with the version may begin anywhere, as after
// a progress bar or another object. The error is the reason why a candidate is not fio's JSON.
func find(data []byte) (f findings, firstErr error) {
	f.data = data
	where, from, broken := "before", 0, -1 // broken: start of an object that cannot be read
	textUpTo := func(at int) {
		if broken >= 0 {
			f.broken++
			at, broken = broken, -1
		}
		f.around = append(f.around, around{where, data[from:at]})
	}
	tries := 0
	for at := 0; tries < maxTries; at++ {
		next := bytes.IndexByte(data[at:], '{')
		if next < 0 {
			break
		}
		at += next
		start, whole := mayStart(data, at)
		if !start {
			continue
		}
		d, size, err := parseDocument(data[at:])
		if err == nil && d.isFio() {
			textUpTo(at)
			f.documents, f.at = append(f.documents, d), append(f.at, place{at, at + size})
			f.lastCut = false
			where, from = "after", at+size
			at = from - 1
			continue
		}
		tries++
		if err != nil && firstErr == nil {
			firstErr = fmt.Errorf("line %d: the JSON that begins on line %d cannot be read: %w",
				input.LineAt(data, int64(at)+offsetOf(err)), input.LineAt(data, int64(at)), err)
		}
		if err != nil && whole && broken < 0 {
			broken, f.lastCut = at, errors.Is(err, errCutOff)
		}
	}
	textUpTo(len(data))
	return f, firstErr
}

// mayStart reports whether the brace at a place may begin fio's JSON, and whether its first key
// says that it does.
func mayStart(data []byte, at int) (start, whole bool) {
	rest := data[at+1 : min(len(data), at+1+64)]
	whole = bytes.HasPrefix(bytes.TrimLeft(rest, " \t\r\n"), versionKey)
	return whole || at == 0 || data[at-1] == '\n' || data[at-1] == '\r', whole
}

// addBroken says which reports are left out because they cannot be read.
func (f *File) addBroken(found *findings) {
	switch n := found.broken; {
	case n > 0 && found.lastCut:
		f.warn("the last report is cut off and left out, as if fio was killed; the last " +
			"whole one counts")
	case n > 0:
		f.warn("%d reports of fio that cannot be read are left out", n)
	}
}

// offsetOf is the place of an error of JSON, in bytes since its start.
func offsetOf(err error) int64 {
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return syntax.Offset
	}
	return 0
}

// isFio reports whether d is fio's JSON rather than other JSON in the same file.
func (d *document) isFio() bool { return d.Version != "" || d.Jobs != nil || d.Clients != nil }

// errCutOff is the error about a JSON object without an end.
var errCutOff = errors.New("the file is cut off; run fio again")

// parseDocument reads the JSON object at the start of data and returns its length.
func parseDocument(data []byte) (document, int, error) {
	read := func(data []byte) (d document, size int, err error) {
		dec := json.NewDecoder(bytes.NewReader(data))
		err = decode(dec, &d)
		if errors.Is(err, io.ErrUnexpectedEOF) {
			err = errCutOff
		}
		return d, int(dec.InputOffset()), err
	}
	d, size, err := read(data)
	if syntax := new(json.SyntaxError); errors.As(err, &syntax) {
		if clean := withoutNaN(data); clean != nil {
			return read(clean)
		}
	}
	return d, size, err
}

// withoutNaN returns data with the nan and inf of C, which JSON does not know, replaced by empty
// strings of the same length; nil when there are none.
func withoutNaN(data []byte) []byte {
	var clean []byte
	quoted := false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case !quoted && (c == 'n' || c == 'i' || c == 'N' || c == 'I') && i+3 <= len(data):
			word := strings.ToLower(string(data[i : i+3]))
			if word != "nan" && word != "inf" {
				continue
			}
			if clean == nil {
				clean = bytes.Clone(data)
			}
			copy(clean[i:], `"" `)
			if i > 0 && data[i-1] == '-' {
				copy(clean[i-1:], ` ""`)
				clean[i+2] = ' '
			}
			i += 2
		}
	}
	return clean
}

// withoutHosts removes the "<host> " before every line of a server.
func withoutHosts(data []byte) []byte {
	lines := bytes.SplitAfter(data, []byte("\n"))
	for i, line := range lines {
		if end := bytes.Index(line, []byte("> ")); end > 0 && line[0] == '<' && end < 256 {
			lines[i] = line[end+2:]
		}
	}
	return bytes.Join(lines, nil)
}

// line is a distinct line of the text around the JSON.
type line struct {
	text  string
	error bool
}

// quotable returns the distinct lines of text that are not blank.
func quotable(text []byte) []line {
	const most = 10_000 // distinct lines
	var lines []line
	seen := map[string]bool{}
	for raw := range bytes.Lines(text) {
		raw = bytes.TrimSpace(raw)
		if len(raw) > 500 {
			raw = raw[:500]
		}
		if s := string(raw); s != "" && !seen[s] && len(seen) < most {
			seen[s] = true
			lines = append(lines, line{s, saysError(s)})
		}
	}
	return lines
}

// saysError reports whether a line reports an error. fio's normal text contains "err= 0" and
// "errors: total=0".
func saysError(s string) bool {
	s = strings.ToLower(s)
	for _, fine := range []string{"err= 0", "err=0", "error=0", "errors=0"} {
		s = strings.ReplaceAll(s, fine, "")
	}
	if strings.HasPrefix(s, "errors") && strings.Contains(s, "total=0") {
		return false
	}
	return strings.Contains(s, "error") || strings.Contains(s, "err=") ||
		strings.Contains(s, "fio:") && strings.Contains(s, "failed")
}

func quote(s string) string {
	if r := []rune(s); len(r) > 160 {
		s = string(r[:160]) + "…"
	}
	return fmt.Sprintf("%q", s)
}

// addNoise turns the text around the JSON into errors and warnings. It quotes every error, and the
// first line of the rest.
func (f *File) addNoise(texts []around) {
	const most = 20 // quoted errors
	for _, part := range texts {
		first, more := "", 0
		for _, l := range quotable(part.text) {
			switch {
			case l.error && len(f.Errors) < most:
				f.Errors = append(f.Errors, l.text)
				f.warn("text %s the JSON reports an error: %s", part.where, quote(l.text))
			case first == "" && !l.error:
				first = l.text
			default:
				more++
			}
		}
		switch {
		case first != "" && more > 0:
			f.warn("text %s the JSON: %s and %d more lines", part.where, quote(first), more)
		case first != "":
			f.warn("text %s the JSON: %s", part.where, quote(first))
		}
	}
}

func (f *File) warn(format string, args ...any) {
	f.Warnings = append(f.Warnings, fmt.Sprintf(format, args...))
}

// addDocuments adds the entries of all JSON objects, except those that a later object repeats with
// newer numbers.
func (f *File) addDocuments(found []document) {
	old := 0
	var traits traits
	for i := range found {
		d := &found[i]
		if i+1 < len(found) && found[i+1].continues(d) {
			old++
			continue
		}
		if f.Version == "" {
			f.Version = string(d.Version)
		}
		clients, repeated := lastReports(d.Clients)
		old += repeated
		for _, list := range []jobs{d.Jobs, clients} {
			for k := range list {
				if list[k].Name == allClients && len(list) > 1 {
					traits.sum = true
					continue
				}
				f.Entries = append(f.Entries, f.entries(&list[k], d.Global, i, &traits)...)
			}
		}
	}
	if old > 0 {
		f.warn("%d intermediate reports (--status-interval) are left out; the last one counts", old)
	}
	if len(f.Entries) == 0 {
		f.warn("the JSON holds no jobs")
	}
	traits.report(f)
}

// allClients is the name of a client's entry with the sum over its servers.
const allClients = "All clients"

// continues reports whether d is a later report of the run of before: the same jobs with the same
// start of fio.
func (d *document) continues(before *document) bool {
	same := func(a, b jobs) bool {
		if len(a) != len(b) {
			return false
		}
		for i := range a {
			if a[i].Name != b[i].Name || a[i].Host != b[i].Host || a[i].Group != b[i].Group {
				return false
			}
		}
		return true
	}
	// seconds: the timestamp and the time since the start are both truncated to seconds
	const rounding = 2
	started, known := d.start()
	startedBefore, knownBefore := before.start()
	return known && knownBefore && math.Abs(started-startedBefore) <= rounding &&
		same(d.Jobs, before.Jobs) && same(d.Clients, before.Clients)
}

// start is the start of fio, in seconds since 1970.
func (d *document) start() (float64, bool) {
	for _, list := range []jobs{d.Jobs, d.Clients} {
		if len(list) > 0 {
			return d.Timestamp.v - list[0].Elapsed.v, d.Timestamp.set && list[0].Elapsed.set
		}
	}
	return 0, false
}

// traits are the warnings that a file gets at most once.
type traits struct {
	microseconds, emptyPercentiles, oldBins, sum bool
}

func (t *traits) report(f *File) {
	if t.microseconds {
		f.warn("latencies are in microseconds, as fio 2 writes them; converted to nanoseconds")
	}
	if t.emptyPercentiles {
		f.warn("percentiles named 0 are left out: fio wrote slots that it had not filled")
	}
	if t.oldBins {
		f.warn("the histograms of fio 2 are left out: their keys are slots, not times")
	}
	if t.sum {
		f.warn("the entry %q is left out: it adds up the others", allClients)
	}
}

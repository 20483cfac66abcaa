package sweep

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/windrow-sim/windrow/internal/input"
	"github.com/windrow-sim/windrow/internal/output"
)

// FormatVersion of files of results: major.minor. Since 1.2 every result ends in the hash of its
// line.
const FormatVersion = "1.2"

// readable are the versions that Read takes.
var readable = []string{"1.1", FormatVersion}

// ErrResults marks a file of results that cannot be continued.
var ErrResults = errors.New("not results of this sweep")

// Header is the first line of a file of results: all inputs of the sweep. The other lines are
// Results in order.
type Header struct {
	Format         string   `json:"windrow_sweep"`
	Tool           string   `json:"tool"`
	Model          string   `json:"model"`
	TraceSHA256    string   `json:"trace_sha256"` // empty for a synthetic trace
	Tokens         int      `json:"tokens"`
	Configurations int      `json:"configurations"` // of the whole sweep
	Shard          Shard    `json:"shard"`
	Scenario       Scenario `json:"scenario"`
}

// Shard is part Index of Count, from 1; the zero value is the whole.
type Shard struct {
	Index int `json:"index"`
	Count int `json:"count"`
}

// ParseShard reads "i/n".
func ParseShard(text string) (Shard, error) {
	index, count, ok := strings.Cut(text, "/")
	i, err1 := strconv.Atoi(index)
	n, err2 := strconv.Atoi(count)
	if !ok || err1 != nil || err2 != nil || i < 1 || n < i ||
		n > mostConfigurations {
		return Shard{}, fmt.Errorf("sweep: shard %q: write it as 1/4, 2/4, …, of at "+
			"most %d", text, mostConfigurations)
	}
	return Shard{i, n}, nil
}

// Range returns the configurations of a shard: consecutive ones, which share decisions.
func (s Shard) Range(all int) (from, to int) {
	if s.Count == 0 {
		return 0, all
	}
	part := func(i int) int { return int(int64(all) * int64(i) / int64(s.Count)) }
	return part(s.Index - 1), part(s.Index)
}

// File is a file of results that is being written. Its name ends in ".partial" until it is
// complete. It always consists of whole lines.
type File struct {
	path string
	out  *output.Journal // nil once it is complete
	done int             // results in it
}

// Partial is the name of an unfinished file.
func Partial(path string) string { return path + ".partial" }

// Create begins a file. With resume, it continues the file of an interrupted sweep with the same
// header, and keeps a complete file. Without resume, an unfinished file is an error: a forgotten
// flag must not cost hours of work.
func Create(path string, h *Header, resume bool) (*File, error) {
	head, err := json.Marshal(h)
	if err != nil {
		return nil, fmt.Errorf("sweep: header: %w", err)
	}
	head = append(head, '\n')
	partial := Partial(path)
	if resume {
		if whole, err := whole(path, head, h); whole || err != nil {
			return &File{path: path, done: h.results()}, err
		}
	}
	out, err := output.OpenJournal(partial, !resume)
	if errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("sweep: %s is the file of an interrupted sweep; continue it with "+
			"--resume, or remove it: %w", partial, ErrResults)
	}
	if err != nil {
		return nil, fmt.Errorf("sweep: %w", err)
	}
	f := &File{path: path, out: out}
	if err := f.begin(head, h); err != nil {
		return nil, errors.Join(err, out.Close())
	}
	return f, nil
}

// results is the number of results of a complete file.
func (h *Header) results() int {
	from, to := h.Shard.Range(h.Configurations)
	return to - from
}

// whole reports whether path is a finished file with this header.
func whole(path string, head []byte, h *Header) (bool, error) {
	in, err := output.OpenRegular(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("sweep: %w", err)
	}
	defer in.Close()
	done, _, err := scan(path, in, head, h)
	return done == h.results(), err
}

// begin seeks to the end of the last whole result, or writes the header of a new file.
func (f *File) begin(head []byte, h *Header) error {
	done, end, err := scan(Partial(f.path), f.out, head, h)
	if err != nil {
		return err
	}
	if err := f.out.Truncate(end); err != nil {
		return fmt.Errorf("sweep: %w", err)
	}
	if _, err := f.out.Seek(end, io.SeekStart); err != nil {
		return fmt.Errorf("sweep: %w", err)
	}
	f.done = done
	if end == 0 {
		if _, err := f.out.Write(head); err != nil {
			return fmt.Errorf("sweep: %w", err)
		}
	}
	return nil
}

// scan returns the number of consecutive results at the start of a file with this header, and the
// end of the last. A file without a whole header counts as empty.
func scan(name string, r io.Reader, head []byte, h *Header) (done int, end int64, err error) {
	in := bufio.NewReader(r)
	line, err := in.ReadBytes('\n')
	if errors.Is(err, io.EOF) {
		return 0, 0, nil
	}
	if err != nil {
		return 0, 0, fmt.Errorf("sweep: %w", err)
	}
	if !bytes.Equal(line, head) {
		return 0, 0, fmt.Errorf("sweep: %s holds results of another scenario, trace, shard or "+
			"version; name another file: %w", name, ErrResults)
	}
	end = int64(len(line))
	from, to := h.Shard.Range(h.Configurations)
	for from+done < to {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return done, end, nil // a line without an end was cut while it was written
		}
		if err != nil {
			return 0, 0, fmt.Errorf("sweep: %w", err)
		}
		if why := damaged(line, from+done); why != "" {
			if _, err := in.Peek(1); errors.Is(err, io.EOF) && !json.Valid(line) {
				return done, end, nil // a power cut leaves noise behind the last line
			}
			return 0, 0, fmt.Errorf("sweep: %s, line %d: %s; put the file back as it was, cut it "+
				"off before that line (head -n %d), or remove it and start again: %w", name, done+2,
				why, done+1, ErrResults)
		}
		end += int64(len(line))
		done++
	}
	return done, end, nil
}

// sumKey is the last field of a line: 16 hexadecimal digits of the SHA-256 of the line without it.
const sumKey = `,"line_sha256":"`

// withSum adds its hash to the JSON of a result, and the end of the line.
func withSum(result []byte) []byte {
	sum := sha256.Sum256(result)
	line := append(result[:len(result)-1:len(result)-1], sumKey...)
	return append(hex.AppendEncode(line, sum[:8]), "\"}\n"...)
}

// damaged says what is wrong with the line of the result of an index; "" = nothing.
func damaged(line []byte, index int) string {
	const tail = len(sumKey) + 16 + len("\"}\n")
	if len(line) < tail {
		return "it is cut off"
	}
	result := append(slices.Clone(line[:len(line)-tail]), '}')
	if !bytes.Equal(withSum(result), line) {
		return "it was changed since it was written: its line_sha256 differs"
	}
	var r Result
	err := input.DecodeJSON(line, &r) // what Read reads
	if f := r.check(); err == nil && f.Path != "" {
		err = input.RefuseJSON(line, f.Path, f.Why)
	}
	if err != nil {
		return input.Below(err, -1).Error() // the caller names the line
	}
	if r.Index != index {
		return fmt.Sprintf("it is result %d where %d is next", r.Index, index)
	}
	return ""
}

// Done is the number of results in the file.
func (f *File) Done() int { return f.done }

// Write appends a result.
func (f *File) Write(r *Result) error {
	line, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("sweep: result %d: %w", r.Index, err)
	}
	if _, err := f.out.Write(withSum(line)); err != nil {
		return fmt.Errorf("sweep: %w", err)
	}
	f.done++
	return nil
}

// Finish renames a complete file to its final name.
func (f *File) Finish() error {
	if f.out == nil { // it was complete before
		return nil
	}
	out := f.out
	f.out = nil
	if err := out.Publish(f.path); err != nil {
		return fmt.Errorf("sweep: %w", err)
	}
	return nil
}

// Abort leaves what there is, to be resumed; a file without results is removed. After Finish it
// does nothing.
func (f *File) Abort() {
	if f.out == nil {
		return
	}
	if f.done == 0 {
		_ = f.out.Discard() // nothing is lost if it stays
	} else {
		_ = f.out.Close() // an error of the disk has been told by Write
	}
	f.out = nil
}

// Read calls each with the results of a file, in order.
func Read(r io.Reader, each func(*Result) error) (*Header, error) {
	in := bufio.NewReaderSize(r, 1<<16)
	var h Header
	for n := 0; ; n++ {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) && len(line) == 0 && n > 0 {
			return &h, nil
		}
		if err != nil {
			return nil, fmt.Errorf("sweep: results: line %d is not whole: %w", n+1, ErrResults)
		}
		if n == 0 {
			err := input.DecodeJSON(line, &h)
			if err == nil && !slices.Contains(readable, h.Format) {
				err = input.RefuseJSON(line, "windrow_sweep", "is not "+strings.Join(readable,
					" or "))
			}
			if f := h.check(); err == nil && f.Path != "" {
				err = input.RefuseJSON(line, f.Path, f.Why)
			}
			if err != nil {
				return nil, fmt.Errorf("sweep: results: not a header: %w: %w", err, ErrResults)
			}
			continue
		}
		var result Result
		if err := input.DecodeJSON(line, &result); err != nil {
			return nil, fmt.Errorf("sweep: results: %w: %w", input.Below(err, n), ErrResults)
		}
		if f := result.check(); f.Path != "" {
			return nil, fmt.Errorf("sweep: results: %w: %w",
				input.Below(input.RefuseJSON(line, f.Path, f.Why), n), ErrResults)
		}
		if why := damaged(line, result.Index); why != "" && h.Format == FormatVersion {
			return nil, fmt.Errorf("sweep: results: line %d: %s: %w", n+1, why, ErrResults)
		}
		if err := each(&result); err != nil {
			return nil, err
		}
	}
}

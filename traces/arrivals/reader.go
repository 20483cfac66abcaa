package arrivals

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"

	"github.com/windrow-sim/windrow/internal/input"
	"github.com/windrow-sim/windrow/internal/units"
)

// Reader yields the requests of a file in order of their arrival. It is not safe for concurrent
// use.
type Reader struct {
	name   string
	file   io.Closer // nil unless Open opened the file
	opts   Options
	src    source
	stats  Stats
	sorted *sorted // with Sort, from the first Next on
	err    error   // the error that ended the reading; every later Next returns it

	began      bool
	first      units.Nanos // time of the first request, on the file's clock
	last       units.Nanos // largest time so far, on the file's clock
	lastOfLine int64
}

// source reads one kind of file.
type source interface {
	// next reads the next request, with At on the file's clock. A *LineError is a bad line: the
	// next call continues after it. io.EOF and other errors are the end. next counts the lines that
	// it leaves out in stats.
	next(req *Request, stats *Stats) error
	// line returns the number of the line or conversation that next read last.
	line() int64
}

// Open opens a file, to be read until the context ends. The caller closes the Reader. Errors are
// those of package input or wrap ErrFormat or ErrUnsupported.
func Open(ctx context.Context, path string, o Options) (*Reader, error) {
	f, err := input.OpenStream(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("arrivals: %w", err)
	}
	r, err := New(f, path, o)
	if err != nil {
		f.Close()
		return nil, err
	}
	r.file = f
	return r, nil
}

// New returns a Reader of in. name is the name of in in messages. Errors are those of in, or wrap
// ErrFormat or ErrUnsupported.
func New(in io.Reader, name string, o Options) (*Reader, error) {
	r := &Reader{name: name, opts: o}
	r.stats.Skipped = map[Reason]int64{}
	buf := bufio.NewReaderSize(in, MaxLine)
	if err := r.begin(buf); err != nil {
		return nil, err
	}
	return r, nil
}

// begin detects the format and reads the header.
func (r *Reader) begin(buf *bufio.Reader) error {
	head, err := buf.Peek(headBytes)
	if err != nil && err != io.EOF { // a short file is no error
		return r.fail(err)
	}
	if err = foreign(r.name, head); err != nil {
		return r.fail(err)
	}
	skip := len(head) - len(input.TrimMark(head))
	head = head[skip:]
	if _, err = buf.Discard(skip); err != nil {
		return r.fail(err)
	}
	format := r.opts.Format
	if format == Detect {
		if format, err = detect(head); err != nil {
			return r.fail(err)
		}
	} else if _, err := ParseFormat(string(format)); err != nil {
		return err
	}
	r.stats.Format = format
	switch in := (&lines{r: buf}); format {
	case ShareGPT:
		r.src, err = newShareGPT(buf, r.opts.Count)
	case Mooncake, Bailian:
		r.src = &jsonLines{in: in, clock: clockOf(format)}
	default:
		r.src, r.stats.Ignored, err = newCSV(in, format)
	}
	return r.fail(err)
}

// fail adds the file's name to an error.
func (r *Reader) fail(err error) error {
	if err == nil {
		return nil
	}
	if bad, ok := errors.AsType[*LineError](err); ok {
		bad.File = r.name
		return bad
	}
	return fmt.Errorf("arrivals: %s: %w", r.name, err)
}

// Next reads the next request into req. It returns io.EOF after the last request. Other errors are
// those of the file system, or wrap ErrFormat (a *LineError for a bad line) or ErrUnsupported.
// After an error req is undefined, and every later call returns the same error.
func (r *Reader) Next(req *Request) error {
	if r.err == nil {
		r.err = r.step(req)
	}
	return r.err
}

func (r *Reader) step(req *Request) error {
	if !r.opts.Sort || !r.stats.Format.HasTimes() {
		return r.read(req)
	}
	if r.sorted == nil {
		var err error
		if r.sorted, err = r.sort(MaxSort); err != nil {
			return err
		}
	}
	return r.sorted.next(req)
}

// read reads the next request of the file.
func (r *Reader) read(req *Request) error {
	for {
		err := r.src.next(req, &r.stats)
		if err == io.EOF {
			return err
		}
		if err == nil {
			err = r.order(req)
		}
		if err != nil {
			if err := r.tolerate(err); err != nil {
				return err
			}
			continue
		}
		if req.Prompt == 0 {
			r.stats.Skipped[NoPrompt]++
			continue
		}
		if req.Output == 0 && !r.opts.KeepFailed {
			r.stats.Skipped[NoOutput]++
			continue
		}
		if !r.began {
			r.began, r.first = true, req.At
		}
		if !r.opts.Sort {
			req.At -= r.first
		}
		r.stats.Requests++
		switch req.Output {
		case 0:
			r.stats.Failed++
		case 1:
			r.stats.SingleToken++
		}
		return nil
	}
}

// order checks that the line is not earlier than the lines before it.
func (r *Reader) order(req *Request) error {
	if r.opts.Sort {
		return nil
	}
	if req.At < r.last {
		return &LineError{Unit: "line", Line: r.src.line(), Reason: Unsorted,
			Detail: fmt.Sprintf("%v before line %d", r.last-req.At, r.lastOfLine)}
	}
	r.last, r.lastOfLine = req.At, r.src.line()
	return nil
}

// tolerate counts a bad line, or returns its error if too many are bad.
func (r *Reader) tolerate(err error) error {
	bad, ok := errors.AsType[*LineError](err)
	if !ok {
		return r.fail(err)
	}
	if r.stats.Bad >= int64(r.opts.SkipBad) {
		bad.Before = r.stats.Bad
		return r.fail(bad)
	}
	r.stats.Bad++
	r.stats.Skipped[bad.Reason]++
	return nil
}

// Stats returns the counts of the lines so far.
func (r *Reader) Stats() Stats {
	s := r.stats
	s.Skipped = maps.Clone(s.Skipped)
	s.Ignored = append([]string{}, s.Ignored...) // [] and not null in JSON
	return s
}

// Close closes the file that Open opened.
func (r *Reader) Close() error {
	if r.file == nil {
		return nil
	}
	if err := r.file.Close(); err != nil {
		return fmt.Errorf("arrivals: %w", err)
	}
	return nil
}

// lines reads line by line. Blank lines at the end of a file are no lines.
type lines struct {
	r *bufio.Reader
	n int64 // number of the last line that next returned, from 1

	blank int64 // blank lines behind that, which are read already
	held  struct {
		is   bool
		line []byte
		err  error
	} // what is behind them
}

// errLong is the error of a line that is longer than MaxLine.
var errLong = errors.New("a long line")

// next returns the next line without its line end, valid until the next call. It returns io.EOF
// after the last line. A line that is too long, and a blank one before others, is a *LineError; the
// next call continues after it.
func (l *lines) next() ([]byte, error) {
	if l.blank == 0 && !l.held.is {
		l.held.line, l.held.err = l.read()
		for l.held.err == nil && len(bytes.TrimSpace(l.held.line)) == 0 {
			l.blank++
			l.held.line, l.held.err = l.read()
		}
		if l.held.err == io.EOF {
			l.blank = 0
		}
		l.held.is = true
	}
	if l.blank > 0 {
		l.blank--
		l.n++
		return nil, l.bad(Blank)
	}
	l.held.is = false
	switch l.held.err {
	case nil:
		l.n++
	case errLong:
		l.n++
		return nil, l.bad(LongLine)
	}
	return l.held.line, l.held.err
}

// read reads a line without its line end, valid until the next call.
func (l *lines) read() ([]byte, error) {
	b, err := l.r.ReadSlice('\n')
	switch {
	case err == nil:
		return bytes.TrimSuffix(b[:len(b)-1], []byte("\r")), nil
	case err == io.EOF && len(b) > 0: // the last line has no end
		return b, nil
	case err == bufio.ErrBufferFull:
		for err == bufio.ErrBufferFull {
			_, err = l.r.ReadSlice('\n')
		}
		if err == nil || err == io.EOF {
			err = errLong
		}
	}
	return nil, err
}

// bad returns a LineError about the whole line.
func (l *lines) bad(reason Reason) *LineError {
	return &LineError{Unit: "line", Line: l.n, Reason: reason}
}

// badField returns a LineError about one value of the line.
func (l *lines) badField(field string, value []byte, reason Reason) *LineError {
	return &LineError{Unit: "line", Line: l.n, Field: field, Value: shorten(value), Reason: reason}
}

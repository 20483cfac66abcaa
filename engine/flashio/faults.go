package flashio

import (
	"fmt"
	"syscall"
	"time"
)

// faultyReader injects faults into the reads of another Reader, by a script.
type faultyReader struct {
	inner  Reader
	faults []fault
	asked  int64 // reads so far
	sleep  func(time.Duration)
}

// WithFaults returns a Reader around r, which it owns from then on. It fails or delays reads by the
// script. Statements are separated by ";" or a new line:
//
//	eio at read 7              the 7th read fails with an I/O error (EIO)
//	eio every 100              every 100th read fails so
//	short 512 every 100        every 100th read ends after 512 bytes ("at read N" works as well)
//	spike 20ms p=0.001 seed=1  a read is 20 ms late with probability 0.001 (seed 1 if absent)
//
// Reads are counted from 1 over the life of the Reader, in request order. Requests behind a failed
// one count too, so a repeated batch has new numbers and can succeed. As with a real failure, the
// requests before the failed one are read and their own errors win.
//
// By its contract a Reader completes short reads itself. So a short read at this level is one that
// the engine's retries could not complete: after its first bytes the batch fails with ErrShort. It
// has no effect on a read of at most that many bytes. Delays of one batch overlap, as reads in
// flight do: the batch is late by the longest.
func WithFaults(r Reader, script string) (Reader, error) {
	faults, err := parseFaults(script)
	if err != nil {
		return nil, err
	}
	return &faultyReader{inner: r, faults: faults, sleep: time.Sleep}, nil
}

// ReadBatch implements Reader.
func (f *faultyReader) ReadBatch(reqs []Request) error {
	first := f.asked + 1
	f.asked += int64(len(reqs))
	if delay := f.lateness(len(reqs)); delay > 0 {
		f.sleep(delay)
	}
	for i := range reqs {
		if hit := f.find(first+int64(i), len(reqs[i].Buf)); hit != nil {
			return f.fail(hit, first+int64(i), reqs[:i+1])
		}
	}
	return f.inner.ReadBatch(reqs)
}

// lateness throws the dice for n reads and returns the longest delay.
func (f *faultyReader) lateness(n int) time.Duration {
	var late time.Duration
	for i := range f.faults {
		spike := &f.faults[i]
		if spike.kind != faultSpike {
			continue
		}
		for range n { // always n times: the numbers that a read gets do not depend on earlier hits
			if spike.dice.Float64() < spike.p {
				late = max(late, spike.delay)
			}
		}
	}
	return late
}

// find returns the first statement that makes read number n, of the given length, fail.
func (f *faultyReader) find(n int64, length int) *fault {
	for i := range f.faults {
		hit := &f.faults[i]
		if hit.kind == faultSpike || !hit.strikes(n) || hit.kind == faultShort &&
			length <= hit.keep {
			continue
		}
		return hit
	}
	return nil
}

// fail reads the requests before the last of reqs, then fails that one.
func (f *faultyReader) fail(hit *fault, n int64, reqs []Request) error {
	last := len(reqs) - 1
	victim := reqs[last]
	if hit.kind == faultEIO {
		if err := f.inner.ReadBatch(reqs[:last]); err != nil {
			return err
		}
		return f.injected(hit, n, victim, syscall.EIO)
	}
	// The failing request is read whole, since a direct reader takes no odd lengths, and loses its
	// end afterwards.
	if err := f.inner.ReadBatch(reqs); err != nil {
		return err
	}
	clear(victim.Buf[hit.keep:])
	return f.injected(hit, n, victim, fmt.Errorf("%w: %d of %d bytes", ErrShort, hit.keep,
		len(victim.Buf)))
}

func (f *faultyReader) injected(hit *fault, n int64, r Request, err error) error {
	return fmt.Errorf("flashio: faults: read of %d bytes at offset %d: %w (read %d, injected "+
		"by %q)", len(r.Buf), r.Offset, err, n, hit.text)
}

// Mode implements Reader. Its notes mention the injected faults: a result of such a reader is no
// measurement.
func (f *faultyReader) Mode() Mode {
	m := f.inner.Mode()
	notes := make([]string, 0, len(m.Notes)+len(f.faults))
	notes = append(notes, m.Notes...)
	for i := range f.faults {
		notes = append(notes, fmt.Sprintf("Fault injected on purpose: %q.", f.faults[i].text))
	}
	m.Notes = notes
	return m
}

// Close implements Reader.
func (f *faultyReader) Close() error { return f.inner.Close() }

// Unwrap returns the Reader inside.
func (f *faultyReader) Unwrap() Reader { return f.inner }

package arrivals

import (
	"cmp"
	"fmt"
	"io"
	"slices"
)

// numbered is a request with its line, so that requests of equal times keep their order.
type numbered struct {
	req  Request
	line int64
}

// sorted holds all requests of a file, ordered by time.
type sorted struct {
	list []numbered
	at   int
}

// sort reads the whole file and returns an error beyond most requests.
func (r *Reader) sort(most int) (*sorted, error) {
	s := &sorted{}
	var req Request
	for {
		err := r.read(&req)
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		if len(s.list) == most {
			return nil, r.fail(fmt.Errorf("has more than the %d requests that are sorted in "+
				"memory; sort the file itself by its time, the header left where it is: %w",
				most, ErrUnsupported))
		}
		s.list = append(s.list, numbered{req, r.src.line()})
	}
	slices.SortFunc(s.list, func(a, b numbered) int {
		return cmp.Or(cmp.Compare(a.req.At, b.req.At), cmp.Compare(a.line, b.line))
	})
	return s, nil
}

func (s *sorted) next(req *Request) error {
	if s.at == len(s.list) {
		return io.EOF
	}
	*req = s.list[s.at].req
	req.At -= s.list[0].req.At
	s.at++
	return nil
}

//go:build !linux

package throttle

import "errors"

func enter(string, Limit) (*group, error) {
	return nil, errors.New("block-I/O limits need Linux control groups")
}

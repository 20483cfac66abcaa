//go:build !unix && !windows

package output

import (
	"errors"
	"os"
)

func tryLock(*os.File) (bool, error) { return false, errors.ErrUnsupported }

func lockFolder(string) (unlock func()) { return func() {} }

func (f *File) beforeRename() {}

package cli

import (
	"errors"
	"io"
	"os"
	"path/filepath"
)

// writeFile makes a file that everybody may read and that appears whole or not at all.
func writeFile(path string, write func(w io.Writer) error) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), ".windrow-*.partial")
	if err != nil {
		return err
	}
	err = errors.Join(write(tmp), tmp.Chmod(0o644), tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(tmp.Name()))
	}
	return nil
}

package output

import (
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Scratch makes a file for the time of its process, under a name that Clean knows. Abort removes
// it.
func Scratch(dir, stem string) (*File, error) {
	path := filepath.Join(dir, stem)
	f, err := newPartial(path)
	if err != nil {
		return nil, explain("create", path, err)
	}
	return f, nil
}

// Leftover is an unfinished file in a folder.
type Leftover struct {
	Path    string
	Size    int64
	Changed time.Time
	State   State
}

// State says what an unfinished file is.
type State string

// The states of unfinished files.
const (
	Dead      State = "dead"      // its process is gone; Clean removes it
	Held      State = "held"      // a living process writes it
	Resumable State = "resumable" // a verb can go on with it; only its user may remove it
)

// Clean removes the unfinished files in a folder whose processes are dead, and lists all unfinished
// ones. With keep it only lists them. It does not look into folders below.
func Clean(dir string, keep bool) ([]Leftover, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, explain("clean", dir, err)
	}
	var found []Leftover
	for _, e := range entries {
		if !strings.Contains(e.Name(), suffix) || !e.Type().IsRegular() {
			continue
		}
		info, err := e.Info()
		if err != nil {
			continue // finished or removed since
		}
		l := Leftover{Path: filepath.Join(dir, e.Name()), Size: info.Size(),
			Changed: info.ModTime(), State: Resumable}
		if _, _, ok := parsePartial(e.Name()); ok {
			if l.State, err = clean(l.Path, keep); err != nil {
				return found, explain("remove", l.Path, err)
			}
		}
		found = append(found, l)
	}
	return found, nil
}

// clean removes an unfinished file, unless its process lives or keep is set.
func clean(path string, keep bool) (State, error) {
	if keep {
		f, err := OpenRegular(path)
		if err != nil {
			return Held, err
		}
		defer f.Close()
		if taken, _ := tryLock(f); !taken {
			return Held, nil
		}
		return Dead, nil
	}
	dead, err := removeDead(path)
	if !dead {
		return Held, err
	}
	return Dead, err
}

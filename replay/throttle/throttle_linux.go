package throttle

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// enter makes the group, sets the limit, and moves the process into it.
func enter(path string, l Limit) (*group, error) {
	device, err := wholeDevice(path)
	if err != nil {
		return nil, err
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	membership, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, err
	}
	place, err := find(string(mounts), string(membership))
	if err != nil {
		return nil, err
	}
	g := &group{dir: filepath.Join(place.parent, fmt.Sprintf("windrow-%d", os.Getpid())),
		home: filepath.Join(place.home, "cgroup.procs")}
	if _, err := os.Stat(g.home); err != nil {
		return nil, fmt.Errorf("the way back is missing: %w; control groups of this process are "+
			"not mounted where /proc/self/cgroup says", err)
	}
	if place.v2 {
		if err := os.WriteFile(filepath.Join(place.parent, "cgroup.subtree_control"), []byte("+io"),
			0); err != nil {
			return nil, fmt.Errorf("the io controller cannot be switched on in %s (%w); run as "+
				"root on a host whose cgroup v2 has it", place.parent, err)
		}
	}
	if err := os.Mkdir(g.dir, 0o755); err != nil {
		return nil, fmt.Errorf("cannot make a control group (%w); run as root", err)
	}
	for file, text := range settings(place.v2, device, l) {
		if err := os.WriteFile(filepath.Join(g.dir, file), []byte(text), 0); err != nil {
			return nil, errors.Join(fmt.Errorf("cannot set %s for device %s: %w", file, device,
				err), os.Remove(g.dir))
		}
	}
	if err := os.WriteFile(filepath.Join(g.dir, "cgroup.procs"), []byte(fmt.Sprint(os.Getpid())),
		0); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot enter %s: %w", g.dir, err), os.Remove(g.dir))
	}
	return g, nil
}

// settings are the files to write, by name.
func settings(v2 bool, device string, l Limit) map[string]string {
	if v2 {
		text := device
		if l.Rate > 0 {
			text += fmt.Sprintf(" rbps=%d", int64(l.Rate))
		}
		if l.IOPS > 0 {
			text += fmt.Sprintf(" riops=%d", l.IOPS)
		}
		return map[string]string{"io.max": text}
	}
	files := map[string]string{}
	if l.Rate > 0 {
		files["blkio.throttle.read_bps_device"] = fmt.Sprintf("%s %d", device, int64(l.Rate))
	}
	if l.IOPS > 0 {
		files["blkio.throttle.read_iops_device"] = fmt.Sprintf("%s %d", device, l.IOPS)
	}
	return files
}

// place is where groups are made.
type place struct {
	v2           bool
	parent, home string // folder for the new group; folder of the group that the process is in
}

// find reads mountinfo and the process's membership. A v1 blkio hierarchy is preferred: where it is
// mounted, v2 has no io controller.
func find(mounts, membership string) (place, error) {
	v1, v2 := "", ""
	for line := range strings.Lines(mounts) {
		// ID parent major:minor root mountpoint options… - type source superoptions
		head, tail, ok := strings.Cut(line, " - ")
		fields, kind := strings.Fields(head), strings.Fields(tail)
		if !ok || len(fields) < 5 || len(kind) < 3 {
			continue
		}
		switch {
		case kind[0] == "cgroup" && has(kind[2], "blkio"):
			v1 = fields[4]
		case kind[0] == "cgroup2":
			v2 = fields[4]
		}
	}
	for line := range strings.Lines(membership) {
		// hierarchy:controllers:path
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		if v1 != "" && has(parts[1], "blkio") {
			return place{parent: v1, home: filepath.Join(v1, parts[2])}, nil
		}
		if v1 == "" && v2 != "" && parts[0] == "0" {
			return place{v2: true, parent: v2, home: filepath.Join(v2, parts[2])}, nil
		}
	}
	return place{}, errors.New("no blkio (v1) or io (v2) control group is mounted; mount one, " +
		"or check against an emulated device")
}

func has(list, name string) bool {
	for item := range strings.SplitSeq(list, ",") {
		if item == name {
			return true
		}
	}
	return false
}

// wholeDevice returns "major:minor" of the disk that holds path: limits are set on whole disks, not
// on partitions.
func wholeDevice(path string) (string, error) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	device := fmt.Sprintf("%d:%d", unix.Major(st.Dev), unix.Minor(st.Dev))
	node := "/sys/dev/block/" + device
	if _, err := os.Stat(node); err != nil {
		return "", fmt.Errorf("%s is on device %s, which is not a block device; put it on a disk",
			path, device)
	}
	if _, err := os.Stat(node + "/partition"); err == nil {
		parent, err := os.ReadFile(node + "/../dev")
		if err != nil {
			return "", err
		}
		device = strings.TrimSpace(string(parent))
	}
	return device, nil
}

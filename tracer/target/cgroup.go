package target

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// cgroupMount is a mount of a cgroup hierarchy: the part that it shows, and the folder.
type cgroupMount struct{ root, folder string }

// cgroupPath returns a path in the form of /proc/PID/cgroup.
func (fs procfs) cgroupPath(path string) (string, error) {
	if path == "" {
		return "", errors.New("empty cgroup: give its path as in /proc/PID/cgroup, or its folder below /sys/fs/cgroup")
	}
	mounts, err := fs.cgroupMounts()
	if err != nil {
		return "", fmt.Errorf("find cgroups: %w", err)
	}
	if len(mounts) == 0 {
		return "", errors.New("no cgroups are mounted: select processes with -p or --comm")
	}
	clean := filepath.Clean("/" + path)
	for _, m := range mounts {
		if rest, below := pathWithin(clean, m.folder); below && isFolder(clean) {
			return filepath.Join(m.root, rest), nil
		}
	}
	if rest, below := pathWithin(clean, "/sys/fs/cgroup"); below {
		clean = rest
	}
	for _, m := range mounts {
		if rest, below := pathWithin(clean, m.root); below && isFolder(filepath.Join(m.folder, rest)) {
			return clean, nil
		}
	}
	return "", fmt.Errorf("no cgroup %s: give its path as in /proc/PID/cgroup, or its folder below %s (systemd-cgls lists them)", path, mounts[len(mounts)-1].folder)
}

// pathWithin returns the rest of a path below a folder.
func pathWithin(path, folder string) (string, bool) {
	if folder == "/" {
		return path, true
	}
	rest, found := strings.CutPrefix(path, folder)
	if !found || rest != "" && rest[0] != '/' {
		return "", false
	}
	return cmp.Or(rest, "/"), true
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// cgroupMounts returns the mounts of cgroup hierarchies, version 1 or 2, longest path first.
func (fs procfs) cgroupMounts() ([]cgroupMount, error) {
	text, err := os.ReadFile(string(fs) + "/self/mountinfo")
	if err != nil {
		return nil, err
	}
	var list []cgroupMount
	for line := range strings.Lines(string(text)) {
		before, after, found := strings.Cut(line, " - ")
		fields := strings.Fields(before)
		kind, _, _ := strings.Cut(after, " ")
		if !found || len(fields) < 5 || kind != "cgroup" && kind != "cgroup2" {
			continue
		}
		list = append(list, cgroupMount{unescape.Replace(fields[3]), unescape.Replace(fields[4])})
	}
	slices.SortStableFunc(list, func(a, b cgroupMount) int { return cmp.Compare(len(b.folder), len(a.folder)) })
	return list, nil
}

// unescape undoes the kernel's escapes of bytes that would end a field (seq_path).
var unescape = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)

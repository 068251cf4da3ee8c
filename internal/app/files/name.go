package files

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// DefaultName is the template of recordings without a name.
const DefaultName = "./gpumemtop.%n.%s.gmt"

// Name is a template of file names in which everything but %p is filled in: the texts around each %p.
type Name []string

// ExpandFileName fills in a template: %n is the program, %s our process id, %h the host, %t the time, %% a percent sign.
func ExpandFileName(template, program string, now time.Time) (Name, error) {
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	values := map[byte]string{
		'n': filepath.Base(program), 's': strconv.Itoa(os.Getpid()), 'h': host,
		't': now.Format("20060102-150405"), '%': "%",
	}
	name := Name{""}
	for i := 0; i < len(template); i++ {
		last := &name[len(name)-1]
		if template[i] != '%' {
			*last += template[i : i+1]
			continue
		}
		i++
		value, known := "", false
		if i < len(template) {
			value, known = values[template[i]]
		}
		switch {
		case known:
			*last += value
		case i < len(template) && template[i] == 'p':
			name = append(name, "")
		default:
			return nil, fmt.Errorf("bad file name %q: after a %% want n, p, s, h, t or another %%", template)
		}
	}
	if !name.IsSingle() && filepath.Dir(name.ForProcess(1, 1)) != filepath.Dir(name.ForProcess(2, 1)) {
		return nil, fmt.Errorf("bad file name %q: %%p belongs in the file's name, not in a folder's", template)
	}
	return name, nil
}

// IsSingle reports whether there is one file for all processes.
func (n Name) IsSingle() bool { return len(n) == 1 }

// String returns the name, with %p where there is a file for each process.
func (n Name) String() string { return strings.Join(n, "%p") }

// ForProcess returns the name for the nth process, from 1, with a process id: exec and the kernel use ids again.
func (n Name) ForProcess(pid, nth int) string {
	name := strings.Join(n, strconv.Itoa(pid))
	if nth > 1 {
		extension := filepath.Ext(name)
		name = strings.TrimSuffix(name, extension) + "." + strconv.Itoa(nth) + extension
	}
	return name
}

// CheckFolder refuses a folder that cannot be written to, where files get their names only later.
func (n Name) CheckFolder() error {
	if n.IsSingle() {
		return nil
	}
	folder := filepath.Dir(n.ForProcess(1, 1))
	err := unix.Access(folder, unix.W_OK|unix.X_OK)
	if info, gone := os.Stat(folder); err == nil && gone == nil && !info.IsDir() {
		err = errors.New("it is not a folder")
	}
	if err != nil {
		return fmt.Errorf("create recordings in %s: %w: use -o to name files that can be written", folder, err)
	}
	return nil
}

package main

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

// defaultRecording is the name that record gives.
const defaultRecording = "./gpumemtop.%n.%s.gmt"

// fileName is the name of a recording whose template is filled in but for %p: what stands between those.
type fileName []string

// expand fills in a template.
func expand(template, program string, now time.Time) (fileName, error) {
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	values := map[byte]string{
		'n': filepath.Base(program), 's': strconv.Itoa(os.Getpid()), 'h': host,
		't': now.Format("20060102-150405"), '%': "%",
	}
	name := fileName{""}
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
	if !name.single() && filepath.Dir(name.of(1, 1)) != filepath.Dir(name.of(2, 1)) {
		return nil, fmt.Errorf("bad file name %q: %%p belongs in the file's name, not in a folder's", template)
	}
	return name, nil
}

// single reports whether there is one file for all processes.
func (n fileName) single() bool { return len(n) == 1 }

// String returns the name; where there is a file for each process, with the %p.
func (n fileName) String() string { return strings.Join(n, "%p") }

// of returns the name for the nth process with a process id, from 1: exec and the kernel use ids again.
func (n fileName) of(pid, nth int) string {
	name := strings.Join(n, strconv.Itoa(pid))
	if nth > 1 {
		extension := filepath.Ext(name)
		name = strings.TrimSuffix(name, extension) + "." + strconv.Itoa(nth) + extension
	}
	return name
}

// check refuses a folder that cannot be written to, where the files themselves get their names only later.
func (n fileName) check() error {
	if n.single() {
		return nil
	}
	folder := filepath.Dir(n.of(1, 1))
	err := unix.Access(folder, unix.W_OK|unix.X_OK)
	if info, gone := os.Stat(folder); err == nil && gone == nil && !info.IsDir() {
		err = errors.New("it is no folder")
	}
	if err != nil {
		return fmt.Errorf("create recordings in %s: %w: use -o to name files that can be written", folder, err)
	}
	return nil
}

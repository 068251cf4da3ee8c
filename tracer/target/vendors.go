package target

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Extension is where an extension function lies that a driver of this machine hands out.
type Extension struct {
	Name, Path string
	Open       string // as in Library
	Identity
	Offset uint64 // in the file
}

// AskVendors asks the drivers of this machine where they keep their extension functions: most export nothing but what
// a loader needs, and hand the rest out by clGetExtensionFunctionAddressForPlatform. The answer goes to [Catalog.Learn].
//
// They are asked in a process of its own, which run starts with the preload library (shim/probe.c) and these variables in
// its environment, and ends when ctx is done; it returns what that process wrote, also when it failed. So a driver that
// crashes or hangs takes no more with it than its own answers: what came before is returned with the error.
func AskVendors(ctx context.Context, run func(ctx context.Context, environment []string) ([]byte, error), names []string) ([]Extension, error) {
	out, err := run(ctx, []string{wire.ProbeEnv + "=extensions " + strings.Join(names, " ")})
	list, complaint := parseExtensions(out)
	switch {
	case err != nil:
		return list, fmt.Errorf("ask the drivers for their extension functions: %w", err)
	case complaint != "":
		return list, fmt.Errorf("ask the drivers for their extension functions: %s", complaint)
	case !bytes.HasSuffix(out, []byte("end\n")):
		return list, errors.New("ask the drivers for their extension functions: the process that asked ended in the middle")
	}
	return list, nil
}

// parseExtensions reads what the probe writes: lines of fields with tabs between them.
func parseExtensions(out []byte) (list []Extension, complaint string) {
	for line := range strings.Lines(string(out)) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		switch {
		case fields[0] == "error" && len(fields) == 2:
			complaint = fields[1]
		case fields[0] == "extension" && len(fields) == 4:
			e := Extension{Name: fields[1], Path: fields[2]}
			distance, err := strconv.ParseUint(fields[3], 10, 64)
			if err == nil && e.locate(distance) == nil && !slices.Contains(list, e) {
				list = append(list, e)
			}
		}
	}
	return list, complaint
}

// locate finds the place in the file that is so many bytes behind the lowest mapped address.
func (e *Extension) locate(distance uint64) (err error) {
	defer func() {
		if recover() != nil { // see readSymbols
			err = errors.New("not a file of a library")
		}
	}()
	if !filepath.IsAbs(e.Path) {
		return fmt.Errorf("%s is no absolute path", e.Path)
	}
	file, err := open(e.Path)
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // only read
	var info unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &info); err != nil {
		return err
	}
	parsed := parse(file)
	if parsed == nil {
		return fmt.Errorf("%s is not a file of a library", e.Path)
	}
	offset, ok := fileOffset(parsed, base(parsed)+distance)
	if !ok {
		return fmt.Errorf("%s has no code there", e.Path)
	}
	e.Open, e.Identity, e.Offset = e.Path, identify(e.Path, &info), offset
	return nil
}

// Locate says where in a file a function lies that the process has at an address.
func (p *Process) Locate(name string, address uint64) (Extension, error) {
	list, err := p.Maps()
	if err != nil {
		return Extension{}, err
	}
	for i := range list {
		m := &list[i]
		if address < m.Start || address >= m.End || !m.Exec {
			continue
		}
		path, info, err := p.file(m)
		if err != nil {
			return Extension{}, err
		}
		return Extension{
			Name: name, Path: m.Path, Open: path, Identity: identify(path, info), Offset: address - m.Start + m.Offset,
		}, nil
	}
	return Extension{}, fmt.Errorf("process %d has no code at %#x", p.PID, address)
}

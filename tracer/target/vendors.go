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

	"codeberg.org/gpumemtop/gpumemtop/internal/untrusted"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Extension is the place of an extension function that a driver of this machine returned.
type Extension struct {
	Name, Path string
	Open       string // see Library
	Identity
	Offset uint64 // in the file
}

// QueryDrivers asks the drivers of this machine for the addresses of their extension functions. Most export only what a
// loader needs, and return the rest from clGetExtensionFunctionAddressForPlatform. Pass the result to [Catalog.LearnExtensions].
//
// The drivers run in a separate process. run starts it with the preload library (shim/entry/probe.c) and these variables
// in its environment, ends it when ctx is done, and returns its output, also after a failure. So a driver that crashes or
// hangs loses only its own answers: QueryDrivers returns those before with the error.
func QueryDrivers(ctx context.Context, run func(ctx context.Context, environment []string) ([]byte, error), names []string) ([]Extension, error) {
	out, err := run(ctx, []string{wire.ProbeEnv + "=extensions " + strings.Join(names, " ")})
	list, complaint := parseExtensions(out)
	switch {
	case err != nil:
		return list, fmt.Errorf("query the drivers' extension functions: %w", err)
	case complaint != "":
		return list, fmt.Errorf("query the drivers' extension functions: %s", complaint)
	case !bytes.HasSuffix(out, []byte("end\n")):
		return list, errors.New("query the drivers' extension functions: the process ended before it was done")
	}
	return list, nil
}

// parseExtensions parses the output of the query: lines of fields, separated by tabs.
func parseExtensions(out []byte) (list []Extension, complaint string) {
	for line := range strings.Lines(string(out)) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		switch {
		case fields[0] == "error" && len(fields) == 2:
			complaint = fields[1]
		case fields[0] == "extension" && len(fields) == 4:
			e := Extension{Name: fields[1], Path: fields[2]}
			distance, err := strconv.ParseUint(fields[3], 10, 64)
			if err == nil && e.findFileOffset(distance) == nil && !slices.Contains(list, e) {
				list = append(list, e)
			}
		}
	}
	return list, complaint
}

// findFileOffset finds the offset in the file that corresponds to a distance from the lowest mapped address.
func (e *Extension) findFileOffset(distance uint64) (err error) {
	defer func() {
		if recover() != nil { // see readSymbols
			err = errors.New("not a library")
		}
	}()
	if !filepath.IsAbs(e.Path) {
		return fmt.Errorf("%s is not an absolute path", e.Path)
	}
	file, err := untrusted.OpenRegular(e.Path, 0)
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // only read
	var info unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &info); err != nil {
		return err
	}
	parsed := parseELF(file)
	if parsed == nil {
		return fmt.Errorf("%s is not a library", e.Path)
	}
	offset, ok := fileOffset(parsed, lowestPage(parsed)+distance)
	if !ok {
		return fmt.Errorf("%s has no code there", e.Path)
	}
	e.Open, e.Identity, e.Offset = e.Path, identifyOpenFile(e.Path, &info), offset
	return nil
}

// LocateFunction returns the place in a file of a function, given by its address in the process.
func (p *Process) LocateFunction(name string, address uint64) (Extension, error) {
	list, err := p.ReadMappings()
	if err != nil {
		return Extension{}, err
	}
	for i := range list {
		m := &list[i]
		if address < m.Start || address >= m.End || !m.Exec {
			continue
		}
		path, info, err := p.openableFile(m)
		if err != nil {
			return Extension{}, err
		}
		return Extension{
			Name: name, Path: m.Path, Open: path, Identity: identifyOpenFile(path, info), Offset: address - m.Start + m.Offset,
		}, nil
	}
	return Extension{}, fmt.Errorf("process %d has no code at %#x", p.PID, address)
}

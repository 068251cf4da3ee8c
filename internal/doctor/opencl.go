package doctor

import (
	"bytes"
	"errors"
	"path/filepath"
	"strconv"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/internal/session"
	"codeberg.org/gpumemtop/gpumemtop/internal/session/payload"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
)

// harmless is a library that every program has: with it the probe tells only that it runs.
const harmless = "libc.so.6"

// checkPreloading looks whether the preload library gets into a program, and reports that.
func (r *Report) checkPreloading(s *System) bool {
	r.reportPreloaded(s)
	if system := s.readSmallFile("/etc/ld.so.preload"); system != "" {
		r.addLine(areaPreload, Warning, "", "/etc/ld.so.preload loads libraries into every program: %s", strings.Join(strings.Fields(system), " "))
	}
	out, err := s.Probe(harmless)
	switch {
	case errors.Is(err, payload.ErrNotBuilt):
		r.addLine(areaPreload, Problem, "build with make, not with go build or go install alone", "%v", err)
		return false
	case strings.HasPrefix(out, "preloaded"):
		r.addLine(areaPreload, OK, "", "the library gets into programs by LD_PRELOAD; not into those that are setuid or linked statically, nor through sudo")
		return true
	case err == nil:
		err = errors.New("the program ran without it")
	}
	r.addLine(areaPreload, Problem, "look for a security module or a libc other than glibc", "the library does not get into programs by LD_PRELOAD: %v", err)
	return false
}

// reportPreloaded says what becomes of the libraries that the user preloads.
func (r *Report) reportPreloaded(s *System) {
	places := [...]struct {
		kind session.PreloadKind
		text string
	}{
		{session.PreloadWrapper, "is set already, and is kept in front of gpumemtop's library, because it wraps OpenCL"},
		{session.PreloadLoader, "has what looks like an OpenCL loader, and may get none of the program's calls under gpumemtop"},
		{session.PreloadOther, "is set already, and is kept behind gpumemtop's library"},
	}
	libraries := strings.FieldsFunc(s.envVariable("LD_PRELOAD"), func(c rune) bool { return c == ' ' || c == ':' })
	for _, place := range places {
		var list []string
		for _, library := range libraries {
			if s.Preloaded(library) == place.kind {
				list = append(list, library)
			}
		}
		if len(list) > 0 {
			r.addLine(areaPreload, Warning, "unset LD_PRELOAD if programs behave oddly", "LD_PRELOAD %s: %s", place.text, strings.Join(list, ":"))
		}
	}
}

// checkVendorFiles looks at the files that tell ICD loaders of drivers.
func (r *Report) checkVendorFiles(s *System) {
	libraries, from := s.driversOfLoaders()
	if len(libraries) == 0 {
		r.addLine(areaOpenCL, Warning, "install a driver; one for any processor: Debian's pocl-opencl-icd", "no driver is registered in %s", from)
		return
	}
	for _, d := range libraries {
		if d.library == "" {
			r.addLine(areaOpenCL, Warning, "reinstall the driver that owns it", "%s names no library", d.file)
			continue
		}
		out, err := s.Probe(d.library)
		switch why := probeFailureText(out, err); {
		case why != "":
			r.addLine(areaOpenCL, Warning, "reinstall that driver, or remove "+d.file, "%s: %s does not load: %s", d.file, d.library, why)
		default:
			r.addLine(areaOpenCL, OK, "", "%s: %s loads", d.file, d.library)
		}
	}
}

// driver is a library that a file names.
type driver struct{ file, library string }

// driversOfLoaders returns what ICD loaders would load, and where they look: the vendors' folder, another one or one file in
// OCL_ICD_VENDORS (ocl-icd, Khronos), more libraries in OCL_ICD_FILENAMES (Khronos).
func (s *System) driversOfLoaders() (list []driver, from string) {
	from = "/etc/OpenCL/vendors"
	for _, name := range []string{"OPENCL_VENDOR_PATH", "OCL_ICD_VENDORS"} {
		if value := s.envVariable(name); value != "" {
			from = value
		}
	}
	paths := []string{from}
	if info, err := s.Stat(from); err == nil && info.IsDir() {
		paths, _ = s.Glob(filepath.Join(from, "*.icd"))
	} else if err != nil && filepath.Ext(from) == ".icd" || err != nil && from == "/etc/OpenCL/vendors" {
		paths = nil
	}
	for _, path := range paths {
		library := path
		if filepath.Ext(path) == ".icd" {
			library, _, _ = strings.Cut(s.readSmallFile(path), "\n")
		}
		list = append(list, driver{path, strings.TrimSpace(library)})
	}
	for _, library := range filepath.SplitList(s.envVariable("OCL_ICD_FILENAMES")) {
		list = append(list, driver{"OCL_ICD_FILENAMES", library})
	}
	return list, from
}

// probeFailureText says why a probe did not succeed, "" when it did.
func probeFailureText(out string, err error) string {
	for line := range strings.Lines(out) {
		if why, found := strings.CutPrefix(strings.TrimSpace(line), "error\t"); found {
			return why
		}
	}
	switch {
	case err != nil:
		return err.Error()
	case !strings.HasSuffix(out, "end\n"):
		return "the process that tried it ended in the middle"
	}
	return ""
}

// checkOpenCL checks loader, platforms and devices.
func (r *Report) checkOpenCL(s *System) {
	out, err := s.Probe("opencl")
	devices := 0
	platform := ""
	for line := range strings.Lines(out) {
		fields := strings.Split(strings.TrimRight(line, "\n"), "\t")
		switch {
		case fields[0] == "loader" && len(fields) == 4:
			r.checkLoader(s, fields)
		case fields[0] == "platform" && len(fields) == 3:
			platform = fields[1]
			r.addLine(areaOpenCL, OK, "", "platform %s, %s", fields[1], fields[2])
		case fields[0] == "device" && len(fields) == 7:
			devices++
			r.reportDevice(platform, fields)
		}
	}
	why := probeFailureText(out, err)
	switch {
	case strings.Contains(why, "libOpenCL.so.1") && devices == 0:
		r.addLine(areaOpenCL, Problem, "install an ICD loader; Debian: ocl-icd-libopencl1", "there is no OpenCL: %s", why)
	case why != "" && devices > 0:
		r.addLine(areaOpenCL, Warning, "programs that use that driver fail like that, too", "then: %s", why)
	case devices == 0:
		if why == "" || strings.Contains(why, "-1001") {
			why = "no platform, or none with a device"
		}
		advice := "install or repair a driver; one for any processor: Debian's pocl-opencl-icd"
		switch {
		case err != nil:
			advice = "look for the driver that does this: a loader loads them all, and one that crashes or hangs takes the program with it"
		case platform != "" && !s.Root:
			advice = "if root has a device: let this user open it (groups video and render), and give the driver a home folder that can be written"
		}
		r.addLine(areaOpenCL, Problem, advice, "no OpenCL device was found: %s", why)
	case why != "":
		r.addLine(areaOpenCL, Warning, "", "%s", why)
	}
}

// checkLoader checks which ICD loader programs get, and whether it supports layers.
func (r *Report) checkLoader(s *System, fields []string) {
	path := fields[1]
	text := "loader " + path
	if fields[2] != "" {
		text += ": " + fields[2] + " " + fields[3]
	}
	r.addLine(areaOpenCL, OK, "", "%s", text)
	library, err := s.ReadFile(path)
	switch {
	case err != nil:
	case bytes.Contains(library, []byte("OPENCL_LAYERS")):
		r.addLine(areaOpenCL, OK, "", "the loader knows layers: programs that open OpenCL in ways of their own are caught, too")
	default:
		r.addLine(areaOpenCL, Warning, "install a newer loader: ocl-icd 2.3 or Khronos' of 2022",
			"the loader knows no layers (OPENCL_LAYERS): plugins that are linked with RTLD_DEEPBIND, and the like, are not caught")
	}
}

// reportDevice reports one device.
func (r *Report) reportDevice(platform string, fields []string) {
	number := func(i int) uint64 {
		v, err := strconv.ParseUint(fields[i], 10, 64)
		if err != nil {
			return 0
		}
		return v
	}
	global, largest, alignment := number(4), number(5), number(6)
	r.addLine(areaOpenCL, OK, "", "device %s (%s): driver %s, %s", fields[1], platform, fields[2], fields[3])
	r.addLine(areaOpenCL, Fact, "", "its memory: %s, at most %s in one buffer; sub-buffers are aligned to %d bytes",
		units.FormatLong(global), units.FormatLong(largest), alignment/8)
	if global == 0 {
		r.addLine(areaOpenCL, Warning, "set --max-cached to a size: a share of nothing caches nothing", "the device does not tell its memory")
	}
}

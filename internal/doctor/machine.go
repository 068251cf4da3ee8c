package doctor

import (
	"strconv"
	"strings"
)

// Bits of the capabilities in /proc/self/status (capabilities(7)).
const (
	capSysAdmin = 21
	capPerfmon  = 38
	capBPF      = 39
)

// kernel tells facts that tracing in the kernel depends on.
func (r *Report) kernel(s *System) {
	r.say(areaKernel, Fact, "", "Linux %s", s.Release())
	if _, err := s.Stat("/sys/kernel/btf/vmlinux"); err == nil {
		r.say(areaKernel, Fact, "", "types of the kernel (BTF) are there")
	} else {
		r.say(areaKernel, Fact, "", "no types of the kernel (BTF): /sys/kernel/btf/vmlinux is not there")
	}
	switch held := s.capabilities(); {
	case held&(1<<capBPF) != 0 && held&(1<<capPerfmon) != 0, held&(1<<capSysAdmin) != 0:
		r.say(areaKernel, Fact, "", "this user may load eBPF programs%s", rootText(s.Root))
	default:
		r.say(areaKernel, Fact, "", "this user may not load eBPF programs: CAP_BPF and CAP_PERFMON are missing")
	}
	if v := s.text("/proc/sys/kernel/unprivileged_bpf_disabled"); v != "" {
		r.say(areaKernel, Fact, "", "eBPF without privileges: %s (unprivileged_bpf_disabled is %s)", allowed(v == "0"), v)
	}
	if _, err := s.Stat("/sys/bus/event_source/devices/uprobe/type"); err == nil {
		r.say(areaKernel, Fact, "", "probes in programs (uprobes) are there")
	} else {
		r.say(areaKernel, Fact, "", "no probes in programs (uprobes)")
	}
	if v := s.text("/sys/kernel/security/lockdown"); v != "" {
		r.say(areaKernel, Fact, "", "lockdown: %s", v)
	}
}

func rootText(root bool) string {
	if root {
		return ", as root"
	}
	return ""
}

func allowed(yes bool) string {
	if yes {
		return "allowed"
	}
	return "not allowed"
}

// capabilities returns the effective ones, 0 when they cannot be told.
func (s *System) capabilities() uint64 {
	for line := range strings.Lines(s.text("/proc/self/status")) {
		if value, found := strings.CutPrefix(line, "CapEff:"); found {
			v, err := strconv.ParseUint(strings.TrimSpace(value), 16, 64)
			if err == nil {
				return v
			}
		}
	}
	return 0
}

// The least size of a terminal that shows panes, and the one for all of them (ui).
const (
	panesW, panesH = 60, 12
	allW, allH     = 100, 30
)

// terminal tells what the dashboard would find.
func (r *Report) terminal(s *System) {
	cols, rows, ok := s.Terminal()
	term := s.variable("TERM")
	switch {
	case !ok:
		r.say(areaTerminal, Warning, "", "there is no terminal: programs run without a dashboard, and view cannot be used")
		return
	case term == "" || term == "dumb":
		r.say(areaTerminal, Warning, "set TERM to the terminal's kind", "TERM is %q: no dashboard", term)
	case cols < panesW || rows < panesH:
		r.say(areaTerminal, Warning, "make it larger: "+sizeText(panesW, panesH)+", better "+sizeText(allW, allH), "the terminal has %s cells: the dashboard shows numbers only", sizeText(cols, rows))
	default:
		r.say(areaTerminal, OK, "", "TERM is %s, %s cells, %s", term, sizeText(cols, rows), s.colours(term))
	}
	if ci := s.variable("CI"); ci != "" && ci != "false" && ci != "0" {
		r.say(areaTerminal, Warning, "unset CI", "CI is set: no dashboard")
	}
	if locale := s.locale(); !strings.Contains(strings.ReplaceAll(strings.ToLower(locale), "-", ""), "utf8") {
		r.say(areaTerminal, Warning, "use --ascii, or a locale such as C.UTF-8", "the locale %q is not UTF-8: lines and charts may be garbled", locale)
	} else {
		r.say(areaTerminal, OK, "", "the locale %s is UTF-8", locale)
	}
}

func sizeText(cols, rows int) string { return strconv.Itoa(cols) + "x" + strconv.Itoa(rows) }

// locale is the one that decides how text is written (locale(7)).
func (s *System) locale() string {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := s.variable(name); v != "" {
			return v
		}
	}
	return "C"
}

// colours says which colours are used, as the variables tell.
func (s *System) colours(term string) string {
	colorterm := s.variable("COLORTERM")
	switch {
	case s.variable("NO_COLOR") != "":
		return "no colours (NO_COLOR)"
	case colorterm == "truecolor" || colorterm == "24bit":
		return "16 million colours"
	case strings.Contains(term, "256color"):
		return "256 colours"
	}
	return "16 colours"
}

// Package rights says whether programs that run already can be watched by eBPF from here: what this kernel and these
// rights allow, what is lost where they do not allow all of it, and what to do. What it looks at comes through a
// [System], so that any machine can be imagined.
package rights

import (
	"errors"
	"slices"
	"strings"
)

// State says whether something is there.
type State string

// The states. What cannot be asked without rights that are missing is Unknown.
const (
	Yes     State = "yes"
	No      State = "no"
	Unknown State = "unknown"
)

// Feature is one thing that was looked at.
type Feature struct {
	Name  string
	State State
	// Detail is what was found, in a sentence that begins with the name where that is one; what is lost where it is not there.
	Detail string
	Advice string // what to do, "" where there is nothing to do
	// Needed says that nothing can be watched without it.
	Needed bool
}

// Report is what was found.
type Report struct {
	Kernel   string // release, such as 6.12.30-amd64
	Features []Feature
	// Missing are the capabilities without which nothing can be watched, by name.
	Missing []string
	// Lockdown is none, integrity or confidentiality, "" where that cannot be told.
	Lockdown string
	// Multi says that many functions are probed by one link.
	Multi bool
	// KillsFiltered says that this kernel ends processes behind a seccomp filter which are probed.
	KillsFiltered bool

	// Obstacle is the most basic of what keeps anything from being watched, "" where watching works; Advice is what to do.
	Obstacle, Advice string

	system *System
}

// Examine looks at this machine, within some tens of milliseconds. It loads programs of a few instructions and attaches
// none of them. Any goroutine may call it.
func Examine() *Report { return Here().Examine() }

// Examine looks at a machine.
func (s *System) Examine() *Report {
	r := &Report{Kernel: s.Release(), system: s}
	r.Lockdown, r.KillsFiltered = s.lockdown(), killsFiltered(r.Kernel)
	x := &examination{System: s, Report: r, held: s.held()}
	x.look()
	if o := x.refuse(); o != nil {
		r.Obstacle, r.Advice = "attach "+o.what, o.advice
	}
	return r
}

// Refusal is obstacle and advice in one sentence, nil where watching works.
func (r *Report) Refusal() error {
	if r.Obstacle == "" {
		return nil
	}
	return errors.New(r.Obstacle + ": " + r.Advice)
}

// Feature returns the feature of a name; its state is Unknown where it was not looked at.
func (r *Report) Feature(name string) Feature {
	if i := slices.IndexFunc(r.Features, func(f Feature) bool { return f.Name == name }); i >= 0 {
		return r.Features[i]
	}
	return Feature{Name: name, State: Unknown}
}

// list writes names for people: a, b and c.
func list(names []string) string {
	if n := len(names); n > 1 {
		return strings.Join(names[:n-1], ", ") + " and " + names[n-1]
	}
	return strings.Join(names, "")
}

// Package rights says whether this kernel and our rights permit attaching to running programs by eBPF, what is lost where
// they permit only a part, and what to do. It examines the machine through a [System], which tests replace.
package rights

import (
	"errors"
	"slices"
	"strings"
)

// State says whether a feature is available.
type State string

// The states. Unknown means that we lack the rights to check.
const (
	Yes     State = "yes"
	No      State = "no"
	Unknown State = "unknown"
)

// Feature is one examined property.
type Feature struct {
	Name  string
	State State
	// Detail is the finding, in a sentence that begins with the name if that is one, and what is lost if it is missing.
	Detail string
	Advice string // what to do, or ""
	// Needed says that attach does not work without it.
	Needed bool
}

// Report is the result of an examination.
type Report struct {
	Kernel   string // release, such as 6.12.30-amd64
	Features []Feature
	// Missing are the names of needed capabilities that are missing.
	Missing []string
	// Lockdown is none, integrity or confidentiality, "" if unknown.
	Lockdown string
	// Multi says that one link can probe many functions.
	Multi bool
	// KillsFiltered says that this kernel kills probed processes that have a seccomp filter.
	KillsFiltered bool

	// Obstacle is the most basic reason why attach does not work, "" if it does; Advice is what to do.
	Obstacle, Advice string

	system *System
}

// ExamineThisSystem examines this machine, which takes some tens of milliseconds. It loads tiny programs and attaches none. Any
// goroutine may call it.
func ExamineThisSystem() *Report { return ThisSystem().ExamineSystem() }

// ExamineSystem examines a machine.
func (s *System) ExamineSystem() *Report {
	r := &Report{Kernel: s.Release(), system: s}
	r.Lockdown, r.KillsFiltered = s.lockdownMode(), killsFilteredProcesses(r.Kernel)
	x := &examination{System: s, Report: r, held: s.heldCapabilities()}
	x.fillInReport()
	if o := x.findObstacle(); o != nil {
		r.Obstacle, r.Advice = "attach "+o.what, o.advice
	}
	return r
}

// RefusalError returns obstacle and advice in one sentence, nil if attach works.
func (r *Report) RefusalError() error {
	if r.Obstacle == "" {
		return nil
	}
	return errors.New(r.Obstacle + ": " + r.Advice)
}

// Feature returns a feature by name. Its state is Unknown if it was not examined.
func (r *Report) Feature(name string) Feature {
	if i := slices.IndexFunc(r.Features, func(f Feature) bool { return f.Name == name }); i >= 0 {
		return r.Features[i]
	}
	return Feature{Name: name, State: Unknown}
}

// joinNames joins names: a, b and c.
func joinNames(names []string) string {
	if n := len(names); n > 1 {
		return strings.Join(names[:n-1], ", ") + " and " + names[n-1]
	}
	return strings.Join(names, "")
}

package main

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"

	"codeberg.org/gpumemtop/gpumemtop/internal/lab"
	"codeberg.org/gpumemtop/gpumemtop/internal/session"
	"codeberg.org/gpumemtop/gpumemtop/internal/trace"
)

// measured is what running a program with another configuration changed, by one run before and one after.
type measured struct {
	before, after trial
	predicted     [2]float64 // ns of the simulated driver before and after
}

// trial is one run of a program.
type trial struct {
	driverNS uint64 // that the driver took for what a policy was asked
	peak     uint64 // bytes reserved, of any process
	wallNS   uint64
}

// program records a program, searches, and runs it again with what was found.
func (t *tuner) program(command []string) error {
	plan, err := newPlan(t.config)
	if err != nil {
		return err
	}
	r := &repeater{command: command}
	if r.path, err = session.Find(command[0]); err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "gpumemtop-tune-")
	if err != nil {
		return fmt.Errorf("make a folder for recordings: %w", err)
	}
	defer func() { _ = os.RemoveAll(folder) }()
	r.signals = session.Catch()
	defer signal.Stop(r.signals)
	t.what = command[0]
	t.options.Present = &lab.Configuration{Policy: plan.policy.Name(), Settings: plan.settings}
	if err := t.learnCosts(r, plan, folder); err != nil {
		return err
	}
	before, err := t.run(r, plan, filepath.Join(folder, "before.gmt"))
	if err != nil {
		return err
	}
	if err := t.read([]string{filepath.Join(folder, "before.gmt")}); err != nil {
		return err
	}
	if r.told() {
		return r.ended()
	}
	if d := t.tapes[0].Device(); t.learned && !d.PartAssumed { // a run without a pool has no parts
		t.options.Device.Part, t.options.Device.PartAssumed = d.Part, false
	}
	if err := t.search(); err != nil {
		return err
	}
	if t.stopped || r.told() {
		return nil
	}
	return t.again(r, before, folder)
}

// learnCosts runs the program without a pool first: then every create is the driver's, while with a pool there are few, and
// those the first ones, which take longest. It does nothing where the costs are given, or no pool is wanted anyway.
func (t *tuner) learnCosts(r *repeater, p *plan, folder string) error {
	if !t.options.Fit || p.policy.Name() == "none" {
		return nil
	}
	c := *t.config
	c.policy, c.limits, c.maxCached = "none", nil, ""
	bare, err := newPlan(&c)
	if err != nil {
		return err
	}
	path := filepath.Join(folder, "bare.gmt")
	if _, err := t.run(r, bare, path); err != nil {
		return err
	}
	reader, err := trace.Open(path)
	if err != nil {
		return err
	}
	tape, err := lab.Load(reader)
	if err := errors.Join(err, reader.Close()); err != nil {
		return err
	}
	t.options.Device, t.options.Fit, t.learned = tape.Device(), false, true
	return nil
}

// again runs the program with what is recommended, unless that is what it ran with.
func (t *tuner) again(r *repeater, before *trial, folder string) error {
	present, best := t.result.Present, t.result.Recommended
	if present == nil || present.Configuration.String() == best.Configuration.String() {
		return nil
	}
	c := *t.config
	c.policy, c.limits, c.maxCached = best.Configuration.Policy, nil, ""
	for _, s := range best.Configuration.Settings {
		c.limits = append(c.limits, s.Name+"="+s.Value)
	}
	plan, err := newPlan(&c)
	if err != nil {
		return err
	}
	after, err := t.run(r, plan, filepath.Join(folder, "after.gmt"))
	if err != nil {
		return err
	}
	t.measured = &measured{before: *before, after: *after, predicted: [2]float64{present.DriverNS, best.DriverNS}}
	return nil
}

// run records the program into a file.
func (t *tuner) run(r *repeater, p *plan, path string) (*trial, error) {
	j := &job{config: t.config, command: r.command, name: r.command[0], recording: fileName{path}}
	say(os.Stderr, fmt.Sprintf("run %d: with %s", r.runs+1, configurationText(&lab.Configuration{Policy: p.policy.Name(), Settings: p.settings})))
	o, err := r.run(p, 0, j)
	if err != nil {
		return nil, err
	}
	switch {
	case !o.survived():
		o.show()
		return nil, fmt.Errorf("the program fails (%s): tune needs one that works", o)
	case !o.called:
		return nil, errors.New("no OpenCL call was seen: there is nothing to tune")
	}
	reader, err := trace.Open(path)
	if err != nil {
		return nil, err
	}
	driver, err := lab.Measured(reader)
	if err := errors.Join(err, reader.Close()); err != nil {
		return nil, err
	}
	return &trial{driverNS: driver, peak: o.peak, wallNS: uint64(o.wall)}, nil
}

// differs reports whether what was measured is far from what was predicted: by more than twice, and by more than 1 ms.
func (m *measured) differs() bool {
	if m.predicted[0] <= 0 || m.before.driverNS == 0 {
		return false
	}
	want := float64(m.before.driverNS) * m.predicted[1] / m.predicted[0]
	got := float64(m.after.driverNS)
	return (got > 2*want || want > 2*got) && max(got, want)-min(got, want) > 1e6
}

package study

import (
	"errors"
	"fmt"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/app/console"
	"codeberg.org/gpumemtop/gpumemtop/internal/app/watch"
	"codeberg.org/gpumemtop/gpumemtop/internal/setting"
)

// CompareOptions say what to compare.
type CompareOptions struct {
	Setup   watch.SetupOptions // with the pool
	Against string             // another configuration, as watch.PolicyChoice.ParseOtherChoice reads it; empty: bare
	Runs    int                // pairs
	Budget  time.Duration      // no pair begins after this; 0: no limit
}

// DefaultRuns is how many pairs there usually are: the fewest that give an interval of 95 %.
const DefaultRuns = 6

// CompareWithBare compares a program with and without a pool. The error carries a status if a signal ended it.
func CompareWithBare(o *CompareOptions, command []string) (*Comparison, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	setup, program, err := o.prepareSetup(command)
	if err != nil {
		return nil, err
	}
	defer program.StopOnSignals()()
	if _, err := runOnce(program, nil, "bare, to warm up"); err != nil {
		return nil, err
	}
	return comparePairs(program, setup, o.Runs, o.Budget)
}

func (o *CompareOptions) check() error {
	if o.Runs < 1 || o.Runs > 1000 {
		return fmt.Errorf("bad value %d for --runs: want 1 to 1000", o.Runs)
	}
	if o.Budget < 0 {
		return fmt.Errorf("bad value %v for --budget: want a time, or 0s for no limit", o.Budget)
	}
	return nil
}

func (o *CompareOptions) prepareSetup(command []string) (*watch.Setup, *Program, error) {
	if o.Setup.Policy == "none" {
		return nil, nil, errors.New("compare needs a pool: name a policy that has one with --policy")
	}
	setup, err := watch.NewSetup(&o.Setup)
	if err != nil {
		return nil, nil, err
	}
	program, err := FindProgram(command)
	return setup, program, err
}

// comparePairs compares runs bare and with the pool.
func comparePairs(program *Program, setup *watch.Setup, runs int, budget time.Duration) (*Comparison, error) {
	pooled := newComparedSide(setup)
	r := &Comparison{Command: program.Command, Configuration: pooled.name}
	err := runPairs(program, [2]side{{name: "bare"}, pooled}, runs, budget, func(pair [2]*Outcome) { r.addPair(pair[0], pair[1]) })
	if err != nil {
		return nil, err
	}
	r.computeMedians()
	return r, nil
}

// side is how a program runs in one half of the runs.
type side struct {
	setup *watch.Setup // nil: bare
	name  string
}

func newComparedSide(setup *watch.Setup) side {
	configuration := setup.Configuration()
	return side{setup, setting.ConfigurationText(&configuration)}
}

// runPairs runs a program in pairs, on one side and on the other, in alternating order.
func runPairs(program *Program, sides [2]side, runs int, budget time.Duration, add func(pair [2]*Outcome)) error {
	begun := time.Now()
	for n := 0; n < runs && (n == 0 || budget == 0 || time.Since(begun) < budget); n++ {
		var pair [2]*Outcome
		for i := range pair {
			which := (i + n) % 2
			var err error
			if pair[which], err = runOnce(program, sides[which].setup, sides[which].name); err != nil {
				return err
			}
		}
		if nothing := pair[1].Nothing; nothing != "" {
			return errors.New(nothing + ": there is nothing to compare")
		}
		add(pair)
	}
	return nil
}

// runOnce runs the program once, with a pool unless setup is nil. A run that fails is an error.
func runOnce(program *Program, setup *watch.Setup, how string) (*Outcome, error) {
	o, err := program.RunTimed(setup)
	switch {
	case err != nil:
		return nil, err
	case !o.Survived():
		o.ShowLastOutput()
		return nil, fmt.Errorf("the program fails (%s; %s): compare needs a program that works", how, o)
	}
	console.SayLine("run %d: %s: %v", program.Runs, how, o.Wall.Round(100*time.Microsecond))
	return o, nil
}

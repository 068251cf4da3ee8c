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
	Setup  watch.SetupOptions // with the pool
	Runs   int                // pairs
	Budget time.Duration      // no pair begins after this; 0: no limit
}

// DefaultRuns is how many pairs there usually are: the fewest that give an interval of 95 %.
const DefaultRuns = 6

// Compare compares a program with and without a pool. The error carries a status if a signal ended it.
func Compare(o *CompareOptions, command []string) (*Comparison, error) {
	if o.Runs < 1 || o.Runs > 1000 {
		return nil, fmt.Errorf("bad value %d for --runs: want 1 to 1000", o.Runs)
	}
	if o.Budget < 0 {
		return nil, fmt.Errorf("bad value %v for --budget: want a time, or 0s for no limit", o.Budget)
	}
	setup, program, err := o.prepare(command)
	if err != nil {
		return nil, err
	}
	defer program.Catch()()
	if _, err := attempt(program, nil, "bare, to warm up"); err != nil {
		return nil, err
	}
	return comparePairs(program, setup, o.Runs, o.Budget)
}

func (o *CompareOptions) prepare(command []string) (*watch.Setup, *Program, error) {
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

// comparePairs runs a program in pairs: bare and with the pool, in alternating order.
func comparePairs(program *Program, setup *watch.Setup, runs int, budget time.Duration) (*Comparison, error) {
	configuration := setup.Configuration()
	r := &Comparison{Command: program.Command, Configuration: setting.Configuration(&configuration)}
	begun := time.Now()
	for r.Pairs < runs && (r.Pairs == 0 || budget == 0 || time.Since(begun) < budget) {
		var pair [2]*Outcome
		for i := range pair {
			pooled := (i + r.Pairs) % 2
			var err error
			if pair[pooled], err = attempt(program, []*watch.Setup{nil, setup}[pooled], []string{"bare", r.Configuration}[pooled]); err != nil {
				return nil, err
			}
		}
		if nothing := pair[1].Nothing; nothing != "" {
			return nil, errors.New(nothing + ": there is nothing to compare")
		}
		r.add(pair[0], pair[1])
	}
	r.finish()
	return r, nil
}

// attempt runs the program once, with a pool unless setup is nil. A run that fails is an error.
func attempt(program *Program, setup *watch.Setup, how string) (*Outcome, error) {
	o, err := program.Time(setup)
	switch {
	case err != nil:
		return nil, err
	case !o.Survived():
		o.ShowOutput()
		return nil, fmt.Errorf("the program fails (%s; %s): compare needs one that works", how, o)
	}
	console.Say("run %d: %s: %v", program.Runs, how, o.Wall.Round(100*time.Microsecond))
	return o, nil
}

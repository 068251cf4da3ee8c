package study

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/app/console"
	"codeberg.org/gpumemtop/gpumemtop/internal/app/watch"
	"codeberg.org/gpumemtop/gpumemtop/internal/measure"
	"codeberg.org/gpumemtop/gpumemtop/internal/replay"
	"codeberg.org/gpumemtop/gpumemtop/internal/session"
	"codeberg.org/gpumemtop/gpumemtop/internal/setting"
	"codeberg.org/gpumemtop/gpumemtop/internal/tune"
)

const (
	liveMost  = 5                      // candidates
	liveEvery = 100 * time.Millisecond // a trial is looked at
)

// liveTune tunes a program while it runs.
type liveTune struct {
	*tuneSearch
	begin   *watch.Beginning
	session *session.Session
	done    chan struct{} // closed when nothing more will be tried
	start   tune.Point    // what is in use at the start
	best    tune.Point    // what is in use
	trials  []liveTrial
	pending *liveTrial // that goes on
	err     error
}

// liveTrial is a candidate that was, or is, tried.
type liveTrial struct {
	candidate, against tune.Point
	proposal           *measure.Proposal
	adopted            bool
	result             *measure.Result // as seen from the candidate
}

// TuneLive tunes a program in one run of it. Replays of the program's beginning give candidates, which serve parts of the run in
// turn; what is better is in use from then on. The error carries console.StatusUnmet if nothing keeps to MaxMemory.
func TuneLive(o *TuneOptions, command []string) (*LiveResult, error) {
	s, setup, program, err := newProgramSearch(o, command)
	if err != nil {
		return nil, err
	}
	defer program.StopOnSignals()()
	s.tuning.Workers = 1 // the program needs the other processors
	l := &liveTune{tuneSearch: s, begin: watch.NewBeginning(), done: make(chan struct{})}
	setup.Measure.Now, setup.Measure.Budget = true, 1 // the library that pools is loaded, and time is what the user wants to give
	program.live = l
	ran, err := program.RunTimed(setup)
	if l.session != nil {
		<-l.done
		l.noteTrialIfOver()
	}
	switch {
	case err != nil && (!program.WasStopped() || len(l.trials) == 0):
		return nil, err
	case err == nil && !ran.Survived():
		ran.ShowLastOutput()
		return nil, fmt.Errorf("the program fails (%s): tune needs a program that works", ran)
	case err == nil && ran.Nothing != "":
		return nil, fmt.Errorf("%s: there is nothing to tune", ran.Nothing)
	case l.err != nil:
		return nil, l.err
	case len(l.trials) == 0:
		return nil, fmt.Errorf("too short: the program made %d requests that a pool can serve; tune --live goes by the first %d, in at least %v, and measures after them",
			l.begin.Requests, watch.BeginningRequests, time.Duration(watch.BeginningNS))
	}
	if program.WasStopped() {
		console.SayLine("interrupted: this is the best so far")
	}
	return l.writeBest()
}

// newTuningTap lets the tuning follow a run, which join begins.
func (l *liveTune) newTuningTap(setup *watch.Setup, options *session.Options) (join func(*session.Session)) {
	experiment := setup.Measure
	experiment.Now = false // each trial is asked for
	l.begin.Experimenter = watch.NewExperimenter(&experiment, options.Model, options.Tap)
	options.Tap = l.begin
	return func(s *session.Session) {
		l.session = s
		l.begin.SetSession(s)
		go l.tryCandidates()
	}
}

// tryCandidates tries the candidates in turn.
func (l *liveTune) tryCandidates() {
	defer close(l.done)
	select {
	case <-l.begin.Enough:
	case <-l.session.Ended():
		return
	}
	candidates, err := l.searchCandidates()
	select {
	case <-l.session.Ended():
		return
	default:
	}
	if l.err = err; err != nil {
		console.SayLine("%v; the program goes on", err)
		return
	}
	adopted := 0
	for i := range candidates {
		if !l.tryCandidate(&candidates[i]) {
			return
		}
		if l.trials[i].adopted {
			adopted++
		}
	}
	if adopted > 1 && !l.tryCandidate(&l.start) { // whether all steps together are one forward
		return
	}
	console.SayLine("all candidates were tried: the program goes on with %s to its end, or to Ctrl-C", setting.ConfigurationText(&l.best.Configuration))
}

// searchCandidates searches for configurations to try: no pool, the recommended one, and the best of other policies.
func (l *liveTune) searchCandidates() (list []tune.Point, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), l.options.Budget)
	defer cancel()
	go func() { // the search ends with the program
		<-l.session.Ended()
		cancel()
	}()
	l.result, err = tune.Search(ctx, []*replay.Loaded{l.begin.Tape}, l.tuning)
	if err := l.explainEndOfSearch(ctx, err); err != nil {
		return nil, err
	}
	return l.chooseCandidates(l.result)
}

// chooseCandidates picks candidates from what a search found. The program may have ended, or the budget run out, before it
// tried what is in use.
func (l *liveTune) chooseCandidates(r *tune.Result) (list []tune.Point, err error) {
	if r.Present == nil {
		return nil, errors.New("the search ended before it tried the configuration in use: give more with --budget")
	}
	l.start, l.best = *r.Present, *r.Present
	points := slices.Clone(r.Points)
	slices.SortStableFunc(points, func(a, b tune.Point) int {
		return cmp.Or(cmp.Compare(a.DriverNS, b.DriverNS), cmp.Compare(a.PeakReserved, b.PeakReserved))
	})
	for _, p := range slices.Concat([]tune.Point{r.None, *r.Recommended}, points) {
		known := slices.ContainsFunc(list, func(q tune.Point) bool { return q.Configuration.Policy == p.Configuration.Policy })
		tooLarge := l.tuning.MaxMemory > 0 && p.PeakReserved > l.tuning.MaxMemory
		if !known && !tooLarge && p.Configuration.String() != r.Present.Configuration.String() && len(list) < liveMost {
			list = append(list, p)
		}
	}
	return list, nil
}

// tryCandidate lets an experiment decide on a candidate. It returns false when the program has ended.
func (l *liveTune) tryCandidate(candidate *tune.Point) bool {
	c, best := &candidate.Configuration, &l.best.Configuration
	p := &measure.Proposal{Alternative: watch.ConfigurationText(c.Policy, c.Settings), Name: setting.ConfigurationText(c), Present: setting.ConfigurationText(best)}
	p.Memory = watch.LessMemoryText(candidate.PeakReserved, l.best.PeakReserved, candidate.Unpooled)
	l.pending = &liveTrial{candidate: *candidate, against: l.best, proposal: p}
	l.begin.ProposeExperiment(p)
	for ticker := time.NewTicker(liveEvery); ; {
		select {
		case <-ticker.C:
		case <-l.session.Ended():
			return false
		}
		if !l.noteTrialIfOver() {
			continue
		}
		ticker.Stop()
		last := &l.trials[len(l.trials)-1]
		console.SayLine("%s: %s", p.Name, last.changeText())
		if !last.adopted {
			return true
		}
		l.best = *candidate
		_, err := l.session.SetPolicy(c.Policy, c.Settings)
		l.err = cmp.Or(l.err, err)
		return err == nil
	}
}

// noteTrialIfOver takes what the trial that goes on has shown, if it is over.
func (l *liveTune) noteTrialIfOver() bool {
	if l.pending == nil {
		return false
	}
	r := l.begin.ResultOf(l.pending.proposal)
	if r == nil {
		return false
	}
	if l.pending.adopted, l.pending.result = r.Adopted, r; r.IsKnown() {
		l.pending.result = r.SeenFromAlternative()
	}
	l.trials, l.pending = append(l.trials, *l.pending), nil
	return true
}

// writeBest writes what is best into a file, if that is wanted and it is better than what was in use.
func (l *liveTune) writeBest() (*LiveResult, error) {
	out := newLiveResult(l)
	if path := l.options.Output.Path; path != "" && out.Better {
		if err := l.options.Output.Write(os.Stdout, func(w io.Writer) error { return console.WriteText(w, out.settingsFileText()) }); err != nil {
			return nil, err
		}
		out.Written = path
	}
	return out, nil
}

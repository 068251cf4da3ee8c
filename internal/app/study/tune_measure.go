package study

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"codeberg.org/gpumemtop/gpumemtop/internal/app/console"
	"codeberg.org/gpumemtop/gpumemtop/internal/app/watch"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/replay"
	"codeberg.org/gpumemtop/gpumemtop/internal/setting"
	"codeberg.org/gpumemtop/gpumemtop/internal/tempfile"
)

// TuneProgram records a program, tunes on that, and runs the program again with the recommendation, to measure what it
// changes. The error carries console.StatusUnmet if nothing keeps to MaxMemory.
func TuneProgram(o *TuneOptions, command []string) (*TuneResult, error) {
	s, setup, program, err := newProgramSearch(o, command)
	if err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp("", "gpumemtop-tune-")
	if err != nil {
		return nil, fmt.Errorf("make a folder for recordings: %w", err)
	}
	tempfile.NoteUnfinished(folder)
	defer func() { _ = tempfile.FinishWith(folder, func() error { return os.RemoveAll(folder) }) }()
	defer program.StopOnSignals()()
	if err := s.learnDriverCosts(program, setup, filepath.Join(folder, "bare.gmt")); err != nil {
		return nil, err
	}
	path := filepath.Join(folder, "before.gmt")
	before, err := s.runTrial(program, setup, path)
	if err == nil {
		err = s.loadRecordings([]string{path})
	}
	if err == nil && program.WasStopped() {
		err = program.StoppedBySignalError()
	}
	if err != nil {
		return nil, err
	}
	if d := s.recordings[0].DriverCosts(); s.learned && !d.PartAssumed { // a run without a pool has no sub-allocations
		s.tuning.Device.Part, s.tuning.Device.PartAssumed = d.Part, false
	}
	if err := s.runSearch(); err != nil {
		return nil, err
	}
	if !s.stopped && !program.WasStopped() {
		if err := s.runRecommended(program, before, filepath.Join(folder, "after.gmt")); err != nil {
			return nil, err
		}
		if err := s.compareWithBare(program); err != nil {
			return nil, err
		}
	}
	return s.finishResult()
}

// newProgramSearch checks the options and finds the program, which is not started yet.
func newProgramSearch(o *TuneOptions, command []string) (*tuneSearch, *watch.Setup, *Program, error) {
	s, err := newTuneSearch(o)
	if err != nil {
		return nil, nil, nil, err
	}
	setup, err := watch.NewSetup(&o.Setup)
	if err != nil {
		return nil, nil, nil, err
	}
	present := setup.Configuration()
	s.what, s.tuning.Present = command[0], &present
	program, err := FindProgram(command)
	return s, setup, program, err
}

// learnDriverCosts runs the program without a pool first, unless the costs are given or that is how it runs anyway. Then the
// driver serves every allocation. With a pool it serves few, and those are the first ones, which take longest.
func (s *tuneSearch) learnDriverCosts(program *Program, setup *watch.Setup, path string) error {
	if !s.tuning.Fit || setup.Policy.PolicyName() == "none" {
		return nil
	}
	o := s.options.Setup
	o.PolicyChoice = watch.PolicyChoice{Policy: "none"}
	bare, err := watch.NewSetup(&o)
	if err != nil {
		return err
	}
	trial, err := s.runTrial(program, bare, path)
	if err != nil {
		return err
	}
	tape, err := readRecording(path, func(r *recording.Reader) (*replay.Loaded, error) { return replay.Load(r) })
	if err != nil {
		return err
	}
	s.tuning.Device, s.tuning.Fit, s.learned, s.bareNS = tape.DriverCosts(), false, true, trial.DriverNS
	return nil
}

// runRecommended runs the program with the recommendation, unless that is in use now.
func (s *tuneSearch) runRecommended(program *Program, before *Trial, path string) error {
	present, best := s.result.Present, s.result.Recommended
	if present == nil || present.Configuration.String() == best.Configuration.String() {
		return nil
	}
	setup, err := s.recommendedSetup()
	if err != nil {
		return err
	}
	after, err := s.runTrial(program, setup, path)
	if err != nil {
		return err
	}
	s.measured = compareWithPrediction(*before, *after, present.DriverNS, best.DriverNS)
	return nil
}

// recommendedSetup returns how the program runs with the recommendation.
func (s *tuneSearch) recommendedSetup() (*watch.Setup, error) {
	best, o := s.result.Recommended, s.options.Setup
	o.PolicyChoice = watch.PolicyChoice{Policy: best.Configuration.Policy}
	for _, setting := range best.Configuration.Settings {
		o.Set = append(o.Set, setting.Name+"="+setting.Value)
	}
	return watch.NewSetup(&o)
}

// compareWithBare measures the program bare against the recommendation, unless that is no pool. A signal ends it without a
// result.
func (s *tuneSearch) compareWithBare(program *Program) error {
	if s.result.Recommended.Configuration.Policy == "none" || program.WasStopped() {
		return nil
	}
	setup, err := s.recommendedSetup()
	if err != nil {
		return err
	}
	s.compared, err = comparePairs(program, setup, DefaultRuns, s.options.Budget)
	if program.WasStopped() {
		return nil
	}
	return err
}

// runTrial runs the program once and records it.
func (s *tuneSearch) runTrial(program *Program, setup *watch.Setup, path string) (*Trial, error) {
	configuration := setup.Configuration()
	console.SayLine("run %d: with %s", program.Runs+1, setting.ConfigurationText(&configuration))
	o, err := program.RunRecorded(setup, path)
	if err != nil {
		return nil, err
	}
	switch {
	case !o.Survived():
		o.ShowLastOutput()
		return nil, fmt.Errorf("the program fails (%s): tune needs a program that works", o)
	case o.Nothing != "":
		return nil, errors.New(o.Nothing + ": there is nothing to tune")
	}
	driver, err := readRecording(path, func(r *recording.Reader) (uint64, error) { return replay.MeasuredDriverNS(r) })
	if err != nil {
		return nil, err
	}
	return &Trial{DriverNS: driver, Peak: o.Peak, WallNS: uint64(o.Wall)}, nil
}

// readRecording reads a recording that gpumemtop has just made.
func readRecording[T any](path string, read func(*recording.Reader) (T, error)) (T, error) {
	reader, err := recording.Open(path)
	if err != nil {
		var none T
		return none, err
	}
	result, err := read(reader)
	return result, errors.Join(err, reader.Close())
}

package trial

import (
	"reflect"
	"testing"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/analysis"
	"codeberg.org/gpumemtop/gpumemtop/internal/replay"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/labtest"
	"codeberg.org/gpumemtop/gpumemtop/internal/whatif/live"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

var (
	now    = replay.Configuration{Policy: "futhark"}
	others = []analysis.Trial{{Policy: "slab"}, {Policy: "futhark", Limit: "max_per_tag", Value: "1"}, {Policy: "futhark", Limit: "none", Value: "1"}}
)

// TestKeptBesideARunEqualsItsRecording: what is kept beside a run gives what the recording of it gives, at the end; before, it says that it is a part.
func TestKeptBesideARunEqualsItsRecording(t *testing.T) {
	for file, reader := range labtest.Recordings(t, "../../replay/testdata") {
		l := NewLive(8 << 20)
		tap := live.Start(l)
		n := 0
		labtest.EachRecord(t, reader, func(r *wire.Record) {
			if tap.TakeRecord(r); n%1000 == 0 {
				tap.Flush()
			}
			n++
		})
		for range 1000 {
			if l.Tape() != nil {
				break
			}
			time.Sleep(time.Millisecond)
			tap.Flush()
		}
		if r := l.Tape().ReplayTrials(now, others); r != nil && r.Part == "" {
			t.Errorf("%s: a part is all of the run: %+v", file, r)
		}
		tap.Close()
		recorded, err := ReadTape(labtest.RewindSource(t, reader), 8<<20)
		if err != nil {
			t.Fatal(err)
		}
		got, want := l.Tape().ReplayTrials(now, others), recorded.ReplayTrials(now, others)
		if want == nil || len(want.Outcomes) != 2 || want.Part != "" || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", file, got, want)
		}
	}
}

// TestRunWithoutAPool: its releases waited for no commands, as some would in a pool.
func TestRunWithoutAPool(t *testing.T) {
	p := labtest.NewTape()
	for n := range uint64(9) {
		p.AddCreate(n+1, 4096)
		p.AddRelease(n+1, wire.OutcomeDriver)
	}
	tape, err := ReadTape(p, 0)
	if err != nil {
		t.Fatal(err)
	}
	for policy, want := range map[string]string{"none": " as if no block was held back", "futhark": ""} {
		if r := tape.ReplayTrials(replay.Configuration{Policy: policy}, others); r.Part != want {
			t.Errorf("%s: %q, want %q", policy, r.Part, want)
		}
	}
}

// TestArenaWithoutALayout: what arena does where it has no layout is no reason to name it.
func TestArenaWithoutALayout(t *testing.T) {
	arena := analysis.Trial{Policy: "arena"}
	for name, repeats := range map[string]bool{"a loop": true, "no loop": false} {
		p := labtest.NewTape()
		for n := range uint64(2000) {
			size := 4096 * (1 + n%4)
			if !repeats {
				size = 4096 + 64*n
			}
			p.AddCreate(n+1, size)
			p.AddRelease(n+1, wire.OutcomeCached)
		}
		tape, err := ReadTape(p, 0)
		if err != nil {
			t.Fatal(err)
		}
		if o, known := tape.ReplayTrials(now, []analysis.Trial{arena}).Outcomes[arena]; known != repeats {
			t.Errorf("%s: %+v, %t", name, o, known)
		}
		run := tape.ReplayTrials(replay.Configuration{Policy: "arena"}, []analysis.Trial{arena, {Policy: "slab"}})
		if len(run.Outcomes) != 1 || run.Outcomes[arena].Requests > 0 { // its layout was none of the run's
			t.Errorf("%s: a run under arena: %+v", name, run)
		}
	}
}

// TestLiveEnds: it keeps no more steps than Most, and nothing after missing records.
func TestLiveEnds(t *testing.T) {
	p := labtest.NewTape()
	for n := range uint64(Most) {
		p.AddCreate(n+1, 4096)
		p.AddRelease(n+1, wire.OutcomeCached)
	}
	for name, missing := range map[string]bool{"long": false, "records are missing": true} {
		l, batch := NewLive(0), replay.NewBatch()
		l.Begin(batch, 0)
		labtest.EachRecord(t, labtest.RewindSource(t, p), func(r *wire.Record) {
			batch.ReadRecord(r)
			if batch.EventCount() == 1000 {
				l.Play(&live.Part{})
				batch.ForgetReadSteps()
				if missing {
					l.Begin(batch.Restart(), 7)
				}
			}
		})
		l.Publish(&live.Load{Final: true})
		want := map[bool]int{false: Most, true: 1000}[missing]
		if tape := l.Tape(); tape.loaded.EventCount() != want || tape.part == "" || !l.CanSkip() {
			t.Errorf("%s: %d steps, %q", name, tape.loaded.EventCount(), tape.part)
		}
	}
}

// TestReplayerDoesNotWait: it does not wait, has the figures a little later, and forgets those of another configuration.
func TestReplayerDoesNotWait(t *testing.T) {
	p := labtest.NewTape()
	p.AddCreate(1, 4096)
	tape, err := ReadTape(p, 0)
	if err != nil {
		t.Fatal(err)
	}
	r := Replayer{Tape: func() *Tape { return nil }}
	s := &stats.Snapshot{Policy: "futhark"}
	if got := r.Replay(s, others); got != nil || r.busy {
		t.Errorf("without a tape: %+v", got)
	}
	r.Tape = func() *Tape { return tape }
	eventually := func(list []analysis.Trial) (got *analysis.Replays) {
		for range 1000 {
			if got = r.Replay(s, list); got != nil && len(got.Outcomes) == len(list) {
				break
			}
			time.Sleep(time.Millisecond)
		}
		return got
	}
	if first, second := eventually(others[:1]), eventually(others[:2]); first == nil || second == nil || second.Present.Requests != 1 {
		t.Errorf("%+v, %+v", first, second)
	}
	s.Limits = []stats.Limit{{Name: "max_per_tag", Text: "1"}}
	if got := r.Replay(s, others[:2]); got != nil {
		t.Errorf("of another configuration: %+v", got)
	}
	if got := eventually(others[:2]); got == nil || len(got.Outcomes) != 2 {
		t.Errorf("of the present one: %+v", got)
	}
}

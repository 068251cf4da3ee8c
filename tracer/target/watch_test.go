package target

import (
	"errors"
	"slices"
	"testing"
)

func TestWatch(t *testing.T) {
	w := NewWatch()
	defer w.Close()
	if ended, err := w.Ended(); err != nil || len(ended) > 0 {
		t.Errorf("%v ended: %v", ended, err)
	}
	came(t, w)
	program := holder(t)
	a, b := start(t, program), start(t, program)
	pids := []int{a.Process.Pid, b.Process.Pid}
	if got := came(t, w); !slices.Contains(got, pids[0]) || !slices.Contains(got, pids[1]) {
		t.Errorf("%v came, not %v", got, pids)
	}
	if got := came(t, w); slices.Contains(got, pids[0]) {
		t.Errorf("%v came again", got)
	}
	for _, pid := range pids {
		p, _ := opened(t, pid)
		for range 2 {
			if err := w.Add(p); err != nil {
				t.Fatal(err)
			}
		}
	}
	if ended, err := w.Ended(); err != nil || len(ended) > 0 {
		t.Errorf("%v ended: %v", ended, err)
	}
	p, _ := opened(t, pids[0])
	// Killed and not yet waited for: it has ended, though its id is still there.
	if err := a.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	var ended []int
	eventually(t, "the end of a process", func() bool {
		got, err := w.Ended()
		ended = append(ended, got...)
		return err != nil || len(got) > 0
	})
	if !slices.Equal(ended, pids[:1]) {
		t.Errorf("%v ended, not %d", ended, pids[0])
	}
	a.stop()
	if err := w.Add(p); !errors.Is(err, ErrGone) {
		t.Error(err)
	}
	w.Remove(pids[1])
	b.stop()
	if got, err := w.Ended(); err != nil || len(got) > 0 {
		t.Errorf("%v ended after they were removed: %v", got, err)
	}
	if got := came(t, w); slices.Contains(got, pids[0]) {
		t.Error("one came back")
	}
}

// A later process with the id of the one that was meant is not watched in its place.
func TestWatchAReusedID(t *testing.T) {
	s := start(t, holder(t))
	p, _ := opened(t, s.Process.Pid)
	p.Started--
	w := NewWatch()
	defer w.Close()
	if err := w.Add(p); !errors.Is(err, ErrGone) || len(w.ends) != 0 {
		t.Errorf("%v, with %d descriptors", err, len(w.ends))
	}
}

func came(t *testing.T, w *Watch) []int {
	t.Helper()
	pids, err := w.Came()
	if err != nil {
		t.Fatal(err)
	}
	return pids
}

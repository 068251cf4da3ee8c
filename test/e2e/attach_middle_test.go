package e2e

import (
	"syscall"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// A program that is attached to in the middle has buffers whose creation was not seen. The recording says so, with the
// sizes that their uses and the releases tell, and they are no mistakes.
func TestAttachedInTheMiddle(t *testing.T) {
	t.Parallel()
	program := called(t, example("train"), "midtrain")
	bare := runBare(t, program, "60")
	for range 2 { // each time at another moment
		target := start(t, command{args: []string{program, "60"}})
		awaitWork(t, target.cmd.Process.Pid, 25)
		signalTo(t, target.cmd.Process.Pid, syscall.SIGSTOP) // on a busy machine it could end before the probes are there
		w := attach(t, "-p", itoa(target.cmd.Process.Pid))
		signalTo(t, target.cmd.Process.Pid, syscall.SIGCONT)
		result := ends(t, target)
		w.end() // by itself, with the program
		if difference := differs(bare, result); difference != "" {
			t.Errorf("watched: %s", difference)
		}
		checkMiddle(t, w)
	}
}

// weights are the sizes of the network's weights, which train.c creates in create_filled before the first step.
var weights = []uint64{38024, 3920, 128428, 279364, 8440}

func checkMiddle(t *testing.T, w *watcher) {
	t.Helper()
	f := figuresIn(t, w.file, false)
	if len(f.Findings) != 0 || f.Lost != 0 || f.InUse != 0 || f.Exit != (endFigures{}) {
		t.Errorf("findings %+v, %d lost, %d in use at the end, exit %+v", f.Findings, f.Lost, f.InUse, f.Exit)
	}
	var before tagFigures
	for _, tag := range f.Tags {
		if tag.Tag == wire.BeforeAttach {
			before = tag
		} else if tag.Creates == 0 {
			t.Errorf("%s was there before, and has a name", tag.Tag)
		}
	}
	if before.Creates != 0 || before.Peak == 0 {
		t.Errorf("what was there before: %+v", before)
	}
	carried := map[uint64]int{}
	for _, e := range eventsOf(t, w.file) {
		if e.Kind == "create" && e.Flags&uint64(wire.FlagCarried) != 0 {
			carried[e.Size]++
		}
	}
	for _, size := range weights {
		if carried[size] == 0 && carried[0] == 0 {
			t.Errorf("no buffer of %d bytes from before: %v", size, carried)
		}
	}
	for size := range carried {
		if size > weights[3] {
			t.Errorf("a buffer from before has %d bytes", size)
		}
	}
}

package session

import (
	"fmt"
	"os"
	"runtime"
	"syscall"

	"codeberg.org/gpumemtop/gpumemtop/internal/session/inherited"
)

// GiveWay puts the program of path in the place of gpumemtop, unwatched, if it could not have its threads beside those of gpumemtop: one,
// and one for each processor and one more, as drivers of processors make them. It returns if there is room, or if that fails.
func GiveWay(path string, command []string) error {
	needs := 2 + min(runtime.NumCPU(), 64)
	if inherited.ThreadsLeft(needs) == needs {
		return nil
	}
	fmt.Fprintf(os.Stderr, "gpumemtop: not watched: %s would have fewer than %d threads beside those of gpumemtop: raise ulimit -u or pids.max of the control group\n",
		command[0], needs)
	err := inherited.Masked(func() error { return syscall.Exec(path, command, os.Environ()) })
	return startError(path, err)
}

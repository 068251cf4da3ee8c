package session

import (
	"fmt"
	"os"
	"runtime"
	"syscall"

	"codeberg.org/gpumemtop/gpumemtop/internal/session/inherited"
)

// ExecInPlace executes the program at path in place of gpumemtop, unwatched, if the limit on threads has no room for both. The program
// needs its first thread and, as CPU drivers make them, one for each processor and one more. ExecInPlace returns if there is room, or if
// it could not execute the program.
func ExecInPlace(path string, command []string) error {
	needs := 2 + min(runtime.NumCPU(), 64)
	if inherited.CountPossibleThreads(needs) == needs {
		return nil
	}
	fmt.Fprintf(os.Stderr, "gpumemtop: not watched: %s would have fewer than %d threads beside those of gpumemtop: raise ulimit -u or pids.max of the control group\n",
		command[0], needs)
	err := inherited.StartWithBlockedSignals(func() error { return syscall.Exec(path, command, os.Environ()) })
	return startError(path, err)
}

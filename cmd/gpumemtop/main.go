// Command gpumemtop runs an unmodified OpenCL program, serves its buffers from a caching allocator, and shows, records
// and explains where its device memory goes.
package main

import (
	_ "codeberg.org/gpumemtop/gpumemtop/ui/early" // before Bubble Tea asks the terminal questions

	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/internal/measure"
	"codeberg.org/gpumemtop/gpumemtop/internal/session"
)

// Exit statuses for failures of our own, as env(1), timeout(1) and nohup(1) have them, so that they cannot be taken
// for most programs' statuses.
const (
	statusBroken        = 1 // check: the run does not keep to the rules; plan: no placement was found
	statusFailed        = 125
	statusNotExecutable = 126
	statusNotFound      = 127
)

// errTold is what has failed where that was said already.
var errTold = errors.New("it was said what failed")

func main() {
	if request := os.Getenv(measure.ChildEnv); request != "" {
		os.Exit(measure.Child(request))
	}
	os.Exit(execute(os.Args[1:], os.Stderr))
}

// ended carries the target's status to main: it becomes ours.
type ended struct{ session.Status }

// Error implements error.
func (e ended) Error() string { return "the program ended with " + e.String() }

// execute runs the command line and returns the exit status. It does not return when the target died by a signal.
func execute(args []string, stderr io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	return conclude(root.Execute(), stderr)
}

// conclude says what went wrong and returns the exit status.
func conclude(err error, stderr io.Writer) int {
	var program ended
	switch {
	case err == nil:
		return 0
	case errors.As(err, &program):
		program.Exit()
	}
	if errors.Is(err, errBroken) {
		return statusBroken
	}
	if errors.Is(err, errTold) {
		return statusFailed
	}
	say(stderr, err.Error())
	var none unplaced
	if errors.As(err, &none) {
		return statusBroken
	}
	switch {
	case errors.Is(err, session.ErrNotFound):
		return statusNotFound
	case errors.Is(err, session.ErrNotExecutable):
		return statusNotExecutable
	}
	return statusFailed
}

// say writes one line to the user.
func say(w io.Writer, text string) {
	meter().Clear()
	lines := strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' })
	_, _ = fmt.Fprintf(w, "gpumemtop: %s\n", strings.Join(lines, "; "))
}

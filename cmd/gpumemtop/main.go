// Command gpumemtop runs an unmodified OpenCL program, serves its buffers from a caching allocator, and shows, records
// and explains where its device memory goes.
package main

import (
	"io"
	"os"

	"codeberg.org/gpumemtop/gpumemtop/internal/app/console"
	"codeberg.org/gpumemtop/gpumemtop/internal/app/study"
	"codeberg.org/gpumemtop/gpumemtop/internal/session"
	"codeberg.org/gpumemtop/gpumemtop/internal/session/inherited"
)

func main() {
	inherited.IgnoreSignalsAgain()
	study.RunDriverChild()
	root := newRootCommand(os.Args[1:]...)
	root.SetArgs(os.Args[1:])
	reportError(root.Execute(), os.Stderr).EndLikeTarget()
}

// reportError reports an error and returns the status to end with.
func reportError(err error, stderr io.Writer) session.Status {
	if err != nil && !console.IsSilent(err) {
		console.SayLineTo(stderr, err.Error())
	}
	return console.ExitStatus(err)
}

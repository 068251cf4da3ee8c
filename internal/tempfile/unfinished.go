// Package tempfile keeps track of unfinished files and folders, to remove them if a signal ends the process.
// Any goroutine may call it.
package tempfile

import (
	"os"
	"sync"
)

// The holder of the lock may begin or finish one.
var (
	mu    sync.Mutex
	paths = map[string]bool{} // true: only if it is empty
)

// NoteUnfinished notes a file or folder that is about to be made.
func NoteUnfinished(path string) {
	mu.Lock()
	defer mu.Unlock()
	paths[path] = false
}

// NoteUnfinishedShared notes a folder that was made for what is about to be made in it, and that others may put something into:
// it goes only if nothing is in it then.
func NoteUnfinishedShared(path string) {
	mu.Lock()
	defer mu.Unlock()
	paths[path] = true
}

// FinishWith does with fn what makes the file or folder whole, such as giving it its name, and forgets it. Abandon does not
// come between.
func FinishWith(path string, fn func() error) error {
	mu.Lock()
	defer mu.Unlock()
	delete(paths, path)
	return fn()
}

// RemoveUnfinished removes everything that was begun and not finished. It is for a process that is about to end: nothing can be
// begun or finished after it.
func RemoveUnfinished() {
	mu.Lock() // for good
	for path, shared := range paths {
		if !shared {
			_ = os.RemoveAll(path) // nothing more can be done
		}
	}
	for path, shared := range paths {
		if shared {
			_ = os.Remove(path) // fails when it is not empty
		}
	}
}

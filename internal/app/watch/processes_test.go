package watch

import (
	"math"
	"os"
	"strings"
	"testing"
)

// A hidden process gets another message than one that does not exist.
func TestHiddenProcessHasItsOwnMessage(t *testing.T) {
	for pid, want := range map[int]string{
		os.Getpid():         "exists, but /proc does not show it: mount /proc",
		math.MaxInt32:       "no process has the id 2147483647",
		1<<32 + os.Getpid(): "no process has the id ", // the kernel would look at the lower half alone
	} {
		if err := hiddenProcessError(pid); !strings.Contains(err.Error(), want) {
			t.Errorf("%d: %v", pid, err)
		}
	}
}

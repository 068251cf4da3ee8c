package heaplimit

import (
	"cmp"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"testing"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/racetest"
)

// FuzzHold holds as many MiB as HOLDS says, or 480, in pieces, again for each input. test/fuzz.sh tries it with 520, too.
func FuzzHold(f *testing.F) {
	mib, err := strconv.Atoi(cmp.Or(os.Getenv("HOLDS"), "480"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(byte(1))
	f.Add(byte(2))
	f.Fuzz(func(_ *testing.T, _ byte) {
		var held [][]byte
		for range mib << 6 {
			held = append(held, make([]byte, 1<<14))
		}
		time.Sleep(100 * interval) // the machine may be busy
		runtime.KeepAlive(held)
	})
}

func TestMost(t *testing.T) {
	racetest.Slow(t)
	for mib, want := range map[string]int{"480": 0, "505": 0, "520": status} {
		child := exec.Command(os.Args[0], "-test.run=^FuzzHold$")
		child.Env = append(os.Environ(), "HOLDS="+mib, "GODEBUG=gcstoptheworld=1")
		said, err := child.CombinedOutput()
		got := 0
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
			got = exit.ExitCode()
		} else if err != nil {
			t.Fatal(err)
		}
		if got != want {
			t.Errorf("%s MiB: status %d, want %d\n%s", mib, got, want, said)
		}
	}
}

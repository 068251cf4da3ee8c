package archtest

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestSerial(t *testing.T) {
	files := []File{
		parsed(t, "internal/units/a.go", ""),
		parsed(t, "internal/heap/a.go", ""),
		parsed(t, "internal/heap/a_test.go", "func f() { go f() }"),
		parsed(t, "internal/stats/a.go", "func f() { g.Go(f) }"),
		parsed(t, "internal/stats/b.go", ""),
		parsed(t, "internal/wire/a_test.go", "func f(t *testing.T) { t.Parallel() }"),
		parsed(t, "internal/session/a.go", ""), // it reads the clock, and others' goroutines run beside it
	}
	if got := RaceFreeFolders(files); !slices.Equal(got, []string{"internal/units"}) {
		t.Errorf("serial are %q, want internal/units alone", got)
	}
}

func TestSlow(t *testing.T) {
	good := []File{
		parsed(t, "internal/arena/a_test.go", "func TestB(t *testing.T) { racetest.Slow(t); f() }\nfunc FuzzA(f *testing.F) { racetest.Slow(f) }"),
		parsed(t, "internal/arena/b_test.go", "func TestC(t *testing.T) { f() }"),
	}
	if tests, folders, err := SlowTests(good); !slices.Equal(tests, []string{"FuzzA", "TestB"}) || !slices.Equal(folders, []string{"internal/arena"}) || err != nil {
		t.Errorf("slow are %q in %q (%v), want FuzzA and TestB in internal/arena", tests, folders, err)
	}
	for _, bad := range []string{
		"func helper(t *testing.T) { racetest.Slow(t) }",
		"func TestA(t *testing.T) { f(); racetest.Slow(t) }",
		"func TestA(t *testing.T) { t.Run(x, func(t *testing.T) { racetest.Slow(t) }) }",
	} {
		if _, _, err := SlowTests([]File{parsed(t, "a_test.go", bad)}); err == nil || !strings.Contains(err.Error(), "a_test.go: racetest.Slow belongs") {
			t.Errorf("%s: error %v", bad, err)
		}
	}
}

// TestRaceLists: make test would run nothing, or all, if the lists were empty.
func TestRaceLists(t *testing.T) {
	files, err := LoadGoFiles(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	serial := RaceFreeFolders(files)
	tests, folders, err := SlowTests(files)
	if err != nil || len(serial) == 0 || len(tests) == 0 {
		t.Fatalf("serial %q, slow %q (%v)", serial, tests, err)
	}
	for _, folder := range folders {
		if slices.Contains(serial, folder) {
			t.Errorf("%s is serial, so its tests are never under the race detector: racetest.Slow is not needed there", folder)
		}
	}
}

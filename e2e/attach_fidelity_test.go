package e2e

import (
	"os/exec"
	"path/filepath"
	"testing"
)

func attachedPrograms(t *testing.T) []program { return append(examplePrograms(), debianPrograms(t)...) }

// A program that is watched through the kernel gives the recording that it gives with the library in it.
func TestAttachedRecordingIsThatOfTheLibrary(t *testing.T) {
	for _, program := range attachedPrograms(t) {
		t.Run(program.name, func(t *testing.T) {
			if _, err := exec.LookPath(program.args[0]); err != nil {
				t.Fatalf("%v: make deps installs it", err)
			}
			want := recordedInside(t, &program)
			w := attach(t, "--comm", programOf(program.args))
			ends(t, start(t, command{args: program.args, env: program.env}))
			w.leave()
			compareStories(t, storyOf(t, want, false), storyOf(t, w.file, false), false)
		})
	}
}

// recordedInside records a program with the library in it, and no pool.
func recordedInside(t *testing.T, p *program) (file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "inside.gmt")
	args := append([]string{gpumemtop(), "record", "--policy", "none", "-o", file, "--"}, p.args...)
	if result := run(t, command{args: args, env: p.env}); result.code != 0 {
		t.Fatalf("record: %s\n%s", result, result.stderr)
	}
	return file
}

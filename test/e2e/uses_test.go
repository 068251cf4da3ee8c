package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// usage is what a recording has of commands.
type usage struct {
	Kind, Op, Text   string
	Process          uint64
	Flags, Tag, Time uint64
	Object, Size     uint64
	Offset, Granted  uint64
	Argument         *uint64
	Site             []struct {
		File string
		Line int
	}
}

type callSite struct{ process, tag uint64 }

// commandsOf returns the uses in a recording, the places of its call sites in the source, and the names of its kernels.
func commandsOf(t *testing.T, file string) (uses []usage, lines map[callSite]string, kernels map[uint64]string) {
	t.Helper()
	lines, kernels = map[callSite]string{}, map[uint64]string{}
	for text := range bytes.Lines(textOf(t, file)) {
		var u usage
		if err := json.Unmarshal(text, &u); err != nil {
			t.Fatalf("%v in %s", err, text)
		}
		switch u.Kind {
		case "use":
			uses = append(uses, u)
		case "site":
			lines[callSite{u.Process, u.Tag}] = sourceLine(t, u.Site[0].File, u.Site[0].Line)
		case "kernel":
			kernels[u.Object] = u.Text
		}
	}
	return uses, lines, kernels
}

// sourceLine returns a line of the source of an example or test program.
func sourceLine(t *testing.T, file string, number int) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "examples", filepath.Base(file)))
	if errors.Is(err, fs.ErrNotExist) {
		text, err = os.ReadFile(filepath.Join(root, "test/programs", filepath.Base(file)))
	}
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Split(string(text), "\n")
	if number < 1 || number > len(all) {
		t.Fatalf("%s has no line %d", file, number)
	}
	return all[number-1]
}

// A copy is recorded as two uses with its own call site, and with the bytes on both sides.
func TestCopiesTellWhereTheyWereCalled(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		args []string
		call string // what the lines that copy have
	}{
		{[]string{example("staging"), "40", "64K"}, "clEnqueueCopyBuffer("},
		{[]string{testProgram("neighbours"), "60", "40"}, "clEnqueueCopyBuffer"}, // and rectangles
	} {
		t.Run(filepath.Base(test.args[0]), func(t *testing.T) {
			file := record(t, test.args...)
			a, b := middle(t, file)
			until, since := fmt.Sprintf("%dns", a), fmt.Sprintf("%dns", b)
			for what, part := range map[string]string{
				"all":      file,
				"a part":   tool(t, "trim", file, "--until", until),
				"the rest": tool(t, "trim", file, "--since", since),
				"merged":   tool(t, "merge", file, record(t, example("stencil"), "3", "1M")),
				"as text":  tool(t, "import", tool(t, "export", "--format", "ndjson", file)),
			} {
				t.Run(what, func(t *testing.T) { checkCopies(t, part, test.call) })
			}
		})
	}
}

// checkCopies demands that there are copies, and that the call site of each is the line with its call.
func checkCopies(t *testing.T, file, call string) {
	t.Helper()
	uses, lines, _ := commandsOf(t, file)
	copies := 0
	for i, u := range uses {
		if u.Op != "copy" || u.Flags&wire.FlagReads == 0 {
			continue
		}
		copies++
		if line := lines[callSite{u.Process, u.Tag}]; !strings.Contains(line, call) {
			t.Fatalf("a copy was called in %q", line)
		}
		to := uses[i+1]
		if to.Op != "copy" || to.Flags != wire.FlagWrites || u.Flags != wire.FlagReads || to.Time != u.Time || to.Tag != u.Tag ||
			to.Size != u.Size || u.Size == 0 || to.Object == u.Object {
			t.Fatalf("%+v is followed by %+v, which is not the other side of the copy", u, to)
		}
	}
	if copies == 0 {
		t.Error("no copies")
	}
}

// Kernels record which argument each memory is, and which of these they cannot write.
func TestKernelsTellTheirArguments(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		args []string
		want []string // kernel, argument, access
	}{
		{[]string{example("pipeline"), "2", "1M"}, []string{"to_grey 0 reads", "to_grey 1", "thin 0 reads", "thin 1 reads", "thin 2"}},
		{[]string{example("stencil"), "3", "1M"}, []string{"heat 0", "spread 0 reads", "spread 1"}},
		{[]string{example("train"), "2"}, []string{"forward 0 reads", "forward 1 reads", "forward 2", "learn 0", "learn 1 reads"}},
	} {
		t.Run(filepath.Base(test.args[0]), func(t *testing.T) {
			uses, _, kernels := commandsOf(t, record(t, test.args...))
			seen := map[string]bool{}
			for _, u := range uses {
				if u.Op != "kernel" {
					continue
				}
				line := fmt.Sprintf("%s %d", kernels[u.Granted], *u.Argument)
				if u.Flags&wire.FlagReads != 0 {
					line += " reads"
				}
				seen[line] = true
			}
			for _, line := range test.want {
				if !seen[line] {
					t.Errorf("%q is missing in %v", line, seen)
				}
			}
		})
	}
}

// Commands record which bytes of their memory they touch.
func TestCommandsTellTheirBytes(t *testing.T) {
	t.Parallel()
	uses, _, _ := commandsOf(t, record(t, example("stencil"), "5", "1M"))
	offsets := map[uint64]bool{}
	for _, u := range uses {
		if u.Op != "read" {
			continue
		}
		if u.Flags != wire.FlagReads || u.Offset+u.Size > 1<<20 {
			t.Errorf("%+v: want a part of the grid", u)
		}
		if u.Size == 4 { // one cell
			offsets[u.Offset] = true
		}
	}
	if len(offsets) == 0 || offsets[0] {
		t.Errorf("cells are read at %v, want places within the grid", offsets)
	}
}

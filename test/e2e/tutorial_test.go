package e2e

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/rightstest"
)

var updateDocs = flag.Bool("update", false, "write into docs/TUTORIAL*.md and docs/ANSWERS.md what their commands print today, and take the pictures in docs")

// TestTutorials follows docs/TUTORIAL*.md and docs/ANSWERS.md. A block "console" has commands after "$ " and what they print, a line "…" stands
// for any lines, at the end of a line for the rest of it; "dashboard" has a command, what its screen shows, and lines "keys: KEYS"; any other block with two words is
// a file that the commands use. Figures may differ, words may not.
func TestTutorials(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root, "docs", "TUTORIAL*.md"))
	if err != nil || len(files) == 0 {
		t.Fatal("no tutorial", err)
	}
	files = append(files, filepath.Join(root, "docs", "ANSWERS.md"))
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			text := readFile(t, file)
			if strings.Contains(text, "gpumemtop attach") {
				rightstest.NeedAttach(t)
			}
			found := fenced.FindAllStringSubmatch(text, -1)
			if 2*len(found) != strings.Count(text, "```") {
				t.Fatal("a block without a word after its backticks")
			}
			var l lesson
			retry(t, func() string {
				l = lesson{dir: lessonFolder(t)}
				for _, block := range found {
					l.add(t, block[1], block[2])
				}
				return l.follow(t)
			})
			if *updateDocs {
				if err := os.WriteFile(file, []byte(strings.NewReplacer(l.changes...).Replace(text)), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

var fenced = regexp.MustCompile("(?s)```([^\\n`]+)\\n(.*?)```\\n")

// lesson is what a tutorial has its reader do.
type lesson struct {
	dir        string
	steps      []step
	dashboards []string
	changes    []string // pairs: what the tutorial has and what was printed
}

// step is a command and what it prints.
type step struct{ command, output string }

// lessonFolder is a folder with the repository's programs, as a reader sees them in the repository.
func lessonFolder(t *testing.T) string {
	dir := t.TempDir()
	for _, name := range []string{"bin", "examples"} {
		if err := os.Symlink(filepath.Join(root, name), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// add takes a block of the tutorial.
func (l *lesson) add(t *testing.T, head, body string) {
	_, file, named := strings.Cut(head, " ")
	switch {
	case head == "console":
		for line := range strings.Lines(body) {
			if command, found := strings.CutPrefix(line, "$ "); found {
				l.steps = append(l.steps, step{command: command})
			} else {
				l.steps[len(l.steps)-1].output += line
			}
		}
	case head == "dashboard":
		l.dashboards = append(l.dashboards, body)
	case named:
		if err := os.WriteFile(filepath.Join(l.dir, file), []byte(body), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("a block %q: want console, dashboard, or a kind and a file name", head)
	}
}

// mark ends what one command printed.
const mark = "\x01\n"

// follow runs all commands in one shell, looks at the dashboards meanwhile, and compares what the commands printed. It returns what
// differs: on a busy machine other findings may stand out, and a second may pass without a call.
func (l *lesson) follow(t *testing.T) (different string) {
	var script strings.Builder
	for _, s := range l.steps {
		fmt.Fprintf(&script, "%sprintf '\\001\\n'\n", s.command)
	}
	shell := exec.Command("bash", "-c", "exec 2>&1\n"+script.String())
	var out bytes.Buffer
	shell.Dir, shell.Env, shell.Stdout = l.dir, l.environment(), &out
	if err := shell.Start(); err != nil {
		t.Fatal(err)
	}
	for _, body := range l.dashboards {
		l.look(t, body)
	}
	err, printed := shell.Wait(), out.String()
	parts := strings.Split(printed, mark)
	if err != nil || len(parts) != len(l.steps)+1 {
		t.Fatalf("the shell ended with %v and printed\n%s", err, printed)
	}
	for i, s := range l.steps {
		want, have := slices.Collect(strings.Lines(s.output)), slices.Collect(strings.Lines(parts[i]))
		lines, same := alike(want, have)
		if same {
			l.changes = append(l.changes, "$ "+s.command+s.output, "$ "+s.command+strings.Join(lines, ""))
		} else {
			different += fmt.Sprintf("$ %sprinted\n%s\nnot\n%s\n", s.command, parts[i], s.output)
		}
	}
	return different
}

func (l *lesson) environment() []string {
	return environment("PATH="+filepath.Join(root, "bin")+":/usr/bin:"+os.Getenv("PATH"), "TMPDIR="+l.dir, "XDG_RUNTIME_DIR="+l.dir)
}

// look runs a command in a terminal, presses the keys, and waits for the lines.
func (l *lesson) look(t *testing.T, body string) {
	command, rest, _ := strings.Cut(strings.TrimPrefix(body, "$ "), "\n")
	term := openTerminal(t, 110, 40)
	term.line("cd " + l.dir + "; PATH=" + filepath.Join(root, "bin") + ":$PATH; clear; " + command)
	for want := range strings.Lines(rest) {
		if keys, found := strings.CutPrefix(want, "keys: "); found {
			term.keys(strings.Fields(keys)...)
			continue
		}
		var shown string
		waitFor(t, want, func() bool {
			shown = term.screen()
			lines := slices.Collect(strings.Lines(shown))
			begin, cut := strings.CutSuffix(want, "…\n")
			i := slices.IndexFunc(lines, func(line string) bool {
				return shape(line) == shape(want) || cut && strings.HasPrefix(shape(line), shape(begin))
			})
			if i >= 0 && !cut {
				l.changes = append(l.changes, want, strings.TrimRight(lines[i], " \n")+"\n")
			}
			return i >= 0
		})
	}
}

// alike finds the printed line for each line that a tutorial shows.
func alike(want, have []string) (lines []string, same bool) {
	if len(want) == 0 {
		return nil, len(have) == 0
	}
	if want[0] == "…\n" {
		for i := range len(have) + 1 {
			if lines, same = alike(want[1:], have[i:]); same {
				return append([]string{want[0]}, lines...), true
			}
		}
		return nil, false
	}
	if len(have) == 0 {
		return nil, false
	}
	line := have[0]
	if begin, cut := strings.CutSuffix(want[0], "…\n"); cut && strings.HasPrefix(shape(line), shape(begin)) {
		line = want[0]
	} else if shape(want[0]) != shape(line) {
		return nil, false
	}
	lines, same = alike(want[1:], have[1:])
	return append([]string{line}, lines...), same
}

var (
	figure = regexp.MustCompile(`[-+−≈~]?[0-9][0-9.,]*(e[-+][0-9]+)?( ?([kKMG]i?B?|[nµm]?s|B)\b)?`)
	graphs = regexp.MustCompile(`[\x{2581}-\x{2593}\x{2800}-\x{28ff}]+`)
)

// shape is a line without its figures, which differ from run to run, and the width that they take.
func shape(line string) string {
	line = graphs.ReplaceAllString(figure.ReplaceAllString(line, "N"), "▇")
	return strings.Join(strings.Fields(line), " ")
}

func TestShape(t *testing.T) {
	for _, pair := range [][2]string{
		{"time  1.17s, 385 events\n", "time 412ms, 1 events"}, {"peak 3.25 MiB", "peak 700 B"}, {"TO NOW −86 % 1.00M", "TO NOW +5 %  512K"},
	} {
		if shape(pair[0]) != shape(pair[1]) {
			t.Errorf("%q and %q have other shapes: %q, %q", pair[0], pair[1], shape(pair[0]), shape(pair[1]))
		}
	}
	if got := shape("peak 3.25 MiB in use"); got != "peak N in use" {
		t.Errorf("shape %q", got)
	}
}

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"codeberg.org/gpumemtop/gpumemtop/internal/app/watch"
)

// Help fits the width of a usual window, says all that it said before its lines were broken, and has two examples.
func TestHelpFits(t *testing.T) {
	for _, cmd := range append(newRootCommand().Commands(), newRootCommand()) {
		if strings.Count(cmd.Example, "\n") < 1 {
			t.Errorf("%s has fewer than two examples", cmd.Name())
		}
		help := helpOf(t, cmd)
		for line := range strings.Lines(help) {
			if n := len([]rune(strings.TrimRight(line, "\n"))); n > 80 || strings.HasSuffix(line, " \n") {
				t.Errorf("%s: %d columns in %q", cmd.Name(), n, line)
			}
		}
		words := " " + strings.Join(strings.Fields(help), " ") + " "
		if long := strings.Join(strings.Fields(cmd.Long), " "); !strings.Contains(words, long) {
			t.Errorf("%s: the text is not whole:\n%s", cmd.Name(), help)
		}
	}
}

// --help leaves out what only --help-all shows, says so, and --help-all shows every flag.
func TestHelpAll(t *testing.T) {
	for _, cmd := range newRootCommand().Commands() {
		short := helpOf(t, cmd)
		if err := cmd.Flags().Set(helpAllFlag, "true"); err != nil {
			continue // cobra's own
		}
		whole := helpOf(t, cmd)
		for _, s := range settingsOf(cmd.Flags()) {
			if in := strings.Contains(short, "  "+s.flagWithValue()); in == s.expert || !strings.Contains(whole, "  "+s.flagWithValue()) {
				t.Errorf("%s: --%s is in --help: %t", cmd.Name(), s.name, in)
			}
		}
		if hidden := strings.Contains(short, "--help-all shows"); hidden != (short != whole) || strings.Contains(whole, "--help-all shows") {
			t.Errorf("%s: a line on --help-all: %t", cmd.Name(), hidden)
		}
	}
}

// Where a line is too narrow for both, the explanation of an example stands below its command.
func TestExampleBreaks(t *testing.T) {
	for width, want := range map[int]string{80: "  gpumemtop fit ./blur   how little is enough?", 30: "  gpumemtop fit ./blur\n      how little is enough?"} {
		if got := breakExample("  gpumemtop fit ./blur   how little is enough?", width); got != want {
			t.Errorf("%d columns: %q", width, got)
		}
	}
}

// help COMMAND is COMMAND --help.
func TestHelpOfACommand(t *testing.T) {
	for word, want := range map[string]string{"view": "gpumemtop view [--at TIME] FILE", "": "gpumemtop COMMAND [flags]"} {
		var out bytes.Buffer
		root := newRootCommand()
		for _, cmd := range append(root.Commands(), root) {
			cmd.SetOut(&out)
		}
		root.SetArgs(strings.Fields("help " + word))
		if err := root.Execute(); err != nil || !strings.Contains(out.String(), want) {
			t.Errorf("help %s: %v\n%s", word, err, out.String())
		}
	}
}

func helpOf(t *testing.T, cmd *cobra.Command) string {
	t.Helper()
	var out bytes.Buffer
	cmd.SetOut(&out)
	if err := cmd.Help(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestHelpKeepsFlagsWhole: no line of the help ends within a flag.
func TestHelpKeepsFlagsWhole(t *testing.T) {
	for _, cmd := range append(newRootCommand().Commands(), newRootCommand()) {
		for line := range strings.Lines(helpOf(t, cmd)) {
			if strings.HasSuffix(line, "-\n") && !strings.HasSuffix(line, " -\n") { // which is standard output
				t.Errorf("%s: %q", cmd.Name(), line)
			}
		}
	}
}

// TestHelpHasEveryCommand once: those without a group would be in no list.
func TestHelpHasEveryCommand(t *testing.T) {
	root := newRootCommand()
	root.InitDefaultCompletionCmd()
	help := helpOf(t, root)
	for _, cmd := range root.Commands() {
		if n := strings.Count(help, "\n  "+cmd.Name()+" "); n != 1 && cmd.IsAvailableCommand() {
			t.Errorf("%s is there %d times in\n%s", cmd.Name(), n, help)
		}
	}
}

// TestOnlyNamedCommandsAreMade, and suggestions and help know all.
func TestOnlyNamedCommandsAreMade(t *testing.T) {
	all := newRootCommand()
	for _, group := range commandGroups() {
		for _, c := range group.commands {
			root := newRootCommand("--headless", c.name, "-o", "x")
			if names := root.Commands(); len(names) != 1 || names[0].Name() != c.name {
				t.Errorf("%s: %v", c.name, names)
			}
		}
	}
	root := newRootCommand("--headless", "./blur", "reprot")
	if n := len(root.Commands()); n != 0 || !slices.Equal(commandNames(root), commandNames(all)) || helpOf(t, root) != helpOf(t, all) {
		t.Errorf("%d commands, suggests %q", n, commandNames(root))
	}
	for _, word := range []string{"help", "completion", "__complete", "__completeNoDesc"} {
		if n := len(newRootCommand(word, "x").Commands()); n != len(all.Commands()) {
			t.Errorf("%s: %d commands", word, n)
		}
	}
}

func TestFlowing(t *testing.T) {
	long := strings.Repeat("word ", 30)
	text := "a\nb\n\n  key    " + long + "\n  x = 1\nc"
	want := "a b\n\n  key    " + strings.TrimSpace(strings.Repeat("word ", 20)) + "\n         " + strings.TrimSpace(strings.Repeat("word ", 10)) + "\n  x = 1\nc"
	if got := reflowParagraphs(text, 110); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestFishListsRecordings: the script for fish is cobra's except for how it lists files.
func TestFishListsRecordings(t *testing.T) {
	root := newRootCommand()
	var script bytes.Buffer
	root.SetOut(&script)
	root.SetArgs([]string{"completion", "fish"})
	if err := root.Execute(); err != nil || !strings.Contains(script.String(), fishSome) || strings.Contains(script.String(), fishAll) {
		t.Errorf("%v:\n%s", err, script.String())
	}
}

// TestThemesAreCompleted: by name, or as files where no name begins so.
func TestThemesAreCompleted(t *testing.T) {
	for _, words := range [][]string{{"--theme"}, {"view", "--theme"}, {"attach", "--theme"}} {
		for typed, want := range map[string]string{"": strings.Join(watch.Themes, "\n") + "\n:4\n", "./m": "toml\n:8\n"} {
			root := newRootCommand(append([]string{"__complete"}, append(words, typed)...)...)
			var offers bytes.Buffer
			root.SetOut(&offers)
			root.SetArgs(append([]string{"__complete"}, append(words, typed)...))
			if err := root.Execute(); err != nil || offers.String() != want {
				t.Errorf("%v %q: %v, %q", words, typed, err, offers.String())
			}
		}
	}
}

// TestCompletionWithoutItsPackage: the script for bash works where the package bash-completion is not loaded.
func TestCompletionWithoutItsPackage(t *testing.T) {
	folder := t.TempDir()
	for _, name := range []string{"a.gmt", "b.txt"} {
		if err := os.WriteFile(filepath.Join(folder, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var script bytes.Buffer
	script.WriteString(bashWords)
	if err := newRootCommand().GenBashCompletionV2(&script, true); err != nil {
		t.Fatal(err)
	}
	script.WriteString(`
gpumemtop() { [[ $1 == __complete && $2 == report ]] && printf 'gmt\n:8\n' || printf 'slab\n:4\n'; }
compopt() { :; }
try() { COMP_LINE="$1" COMP_POINT=${#1} COMPREPLY=(); __start_gpumemtop; echo "${COMPREPLY[@]}"; }
COMP_WORDS=(gpumemtop report '') COMP_CWORD=2; try 'gpumemtop report '
COMP_WORDS=(gpumemtop --policy = sl) COMP_CWORD=3; try 'gpumemtop --policy=sl'
`)
	bash := exec.Command("bash", "--norc")
	bash.Dir, bash.Stdin = folder, &script
	out, err := bash.CombinedOutput()
	if err != nil || string(out) != "a.gmt\nslab\n" {
		t.Errorf("%v: %s", err, out)
	}
}

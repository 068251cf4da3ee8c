package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A program that cannot be watched is reported in one line, and nothing is started or written.
func TestAttachUsedWrongly(t *testing.T) {
	exists := record(t, example("tiny"))
	for _, test := range []struct{ flags, want string }{
		{"", "-p PID"},
		{"-p", "-p"},
		{"-p 0", "0"},
		{"-p -3", "-3"},
		{"-p abc", "abc"},
		{"-p 4194304", "4194304"}, // the kernel gives out no such id
		{"-p 1,x", "x"},
		{"-p 2", "2"}, // the kernel's own
		{"--comm=", "--comm"},
		{"--comm /bin/train", "/bin/train"},
		{"--cgroup=", "--cgroup"},
		{"--cgroup /no/such/group", "/no/such/group"},
		{"--all --duration -1s", "-1s"},
		{"--all --duration soon", "soon"},
		{"--all --tags smell", "smell"},
		{"--all --stack-depth 0", "0"},
		{"--all --stack-depth 33", "33"},
		{"--all --refresh 1ms", "1ms"},
		{"--all --policy futhark", "--policy"},
		{"--all --no-such-flag", "--no-such-flag"},
		{"--all tiny", "tiny"},
		{"--all --follow=perhaps", "perhaps"},
		{"--all -o /no/such/folder/x.gmt", "/no/such/folder"},
		{"--all -o " + exists, exists},
		{"--all --summary /no/such/folder/x.json", "/no/such/folder"},
	} {
		t.Run(strings.ReplaceAll(test.flags, "/", "_"), func(t *testing.T) {
			dir := t.TempDir()
			args := append([]string{"timeout", "10", gpumemtop(), "attach", "--headless"}, strings.Fields(test.flags)...)
			if strings.HasPrefix(test.flags, "--all") && os.Geteuid() == 0 { // or it finds what else runs on this machine
				args = append([]string{"unshare", "--pid", "--fork", "--mount-proc"}, args...)
			}
			result := run(t, command{args: args, dir: dir})
			if result.code != 125 || len(result.stdout) != 0 {
				t.Errorf("ended with %s and %q", result, result.stdout)
			}
			checkOneLine(t, result.stderr, test.want)
			if files, _ := filepath.Glob(filepath.Join(dir, "*")); len(files) != 0 {
				t.Errorf("it left %q", files)
			}
		})
	}
}

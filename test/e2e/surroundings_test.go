package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/rightstest"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Of a process that may not open the session's files the user hears why it is not watched.
func TestLockedOut(t *testing.T) {
	const script = `chmod 0 "$GPUMEMTOP_SESSION/$1"; shift; exec "$@"`
	words := []string{"sh", "-c", script, "sh", wire.ConfigName}
	if os.Geteuid() == 0 {
		words = append(words, "setpriv", "--bounding-set=-all") // or root opens them all the same
	}
	bare := runBare(t, example("tiny"))
	here := run(t, command{args: slices.Concat([]string{gpumemtop(), "--headless", "--"}, words, []string{example("tiny")})})
	if difference := differs(bare, here); difference != "" || !contains(here.stderr, "not watched: a sandbox") {
		t.Errorf("%s\n%s", difference, here.stderr)
	}
}

// A program ignores and blocks the signals that gpumemtop ignored and blocked when it was started.
func TestSignalsAreInherited(t *testing.T) {
	args := []string{
		"env", "--ignore-signal=PIPE,TERM,USR1,HUP,INT", "--block-signal=USR2,WINCH", "grep", "-E", "Sig(Blk|Ign)", "/proc/self/status",
	}
	bare := runBare(t, args...)
	if !contains(bare.stdout, "SigIgn") {
		t.Fatalf("bare: %s %s", bare.stdout, bare.stderr)
	}
	for _, words := range [][]string{{"--headless"}, {"record", "-o", t.TempDir() + "/x.gmt"}} {
		here := run(t, command{args: slices.Concat(args[:3], []string{gpumemtop()}, words, []string{"--"}, args[3:])})
		if !bytes.Equal(here.stdout, bare.stdout) {
			t.Errorf("%s: %s%sbare:\n%s", words, here.stdout, here.stderr, bare.stdout)
		}
	}
}

// As the first process of a PID namespace, which the kernel spares its own signals, gpumemtop ends by them as elsewhere.
func TestFirstProcess(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "log")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, words := range [][]string{{"--headless", "--", "cat", pipe}, {"import", pipe, "-o", pipe + ".gmt"}} {
		p := start(t, command{args: slices.Concat([]string{"unshare", "--pid", "--fork", "--mount-proc", gpumemtop()}, words)})
		writer, err := os.OpenFile(pipe, os.O_WRONLY, 0) // when it is read
		if err != nil {
			t.Fatal(err)
		}
		signalTo(t, descendant(p.cmd.Process.Pid, "gpumemtop"), syscall.SIGTERM)
		time.Sleep(300 * time.Millisecond)
		_ = writer.Close()
		if result := p.wait(); result.code != 128+int(syscall.SIGTERM) {
			t.Errorf("%s: %s\n%s", words, result, result.stderr)
		}
	}
}

// The first process of a PID namespace ends by a signal before it has asked for any.
func TestFirstProcessIsInterruptedAtItsStart(t *testing.T) {
	for range 10 {
		p := start(t, command{args: []string{"unshare", "--pid", "--fork", gpumemtop(), "version"}})
		ended := make(chan struct{})
		go func() {
			for {
				for _, child := range children(p.cmd.Process.Pid) {
					_ = syscall.Kill(child, syscall.SIGINT) // it may be over
				}
				select {
				case <-ended:
					return
				case <-time.After(100 * time.Microsecond):
				}
			}
		}()
		result := p.wait()
		close(ended)
		if result.signal != syscall.SIGINT && result.code != 128+int(syscall.SIGINT) {
			t.Fatalf("%s\n%s%s", result, result.stdout, result.stderr)
		}
	}
}

// inNamespace runs a script in a mount namespace of its own, as root there.
func inNamespace(t *testing.T, script string, args ...string) outcome {
	t.Helper()
	words := []string{"unshare", "--mount"}
	if os.Geteuid() != 0 {
		words = append(words, "--map-root-user")
	}
	return run(t, command{args: slices.Concat(words, []string{"sh", "-c", script, "sh"}, args)})
}

// Without room in /dev/shm the runtime folder is made in /tmp.
func TestSharedMemoryIsFull(t *testing.T) {
	const script = `mount -t tmpfs -o size=64k none /dev/shm && unset XDG_RUNTIME_DIR && exec "$@"`
	bare := runBare(t, example("tiny"))
	here := inNamespace(t, script, gpumemtop(), "--headless", "--", example("tiny"))
	if difference := differs(bare, here); difference != "" || !contains(here.stderr, "hit rate") {
		t.Errorf("%s\n%s", difference, here.stderr)
	}
}

// A runtime folder where another user could swap the library is not used.
func TestRuntimeFolderOfAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can use another user's folder at all") // for others the kernel refuses it
	}
	theirs := t.TempDir()
	if err := errors.Join(os.Chown(theirs, 4711, 4711), os.Chmod(theirs, 0o777|os.ModeSticky)); err != nil {
		t.Fatal(err)
	}
	words := []string{gpumemtop(), "--headless", "--", "sh", "-c", "echo $GPUMEMTOP_SESSION"}
	// In a user namespace that knows only this user, the other one looks like the owner of the system's folders.
	for _, args := range [][]string{words, append([]string{"unshare", "--user", "--map-root-user"}, words...)} {
		here := run(t, command{args: args, env: []string{"XDG_RUNTIME_DIR=" + theirs}})
		if here.code != 0 || contains(here.stdout, theirs) || !contains(here.stdout, "/gpumemtop-") {
			t.Errorf("%s: %s: the folder is %s%s", args[0], here, here.stdout, here.stderr)
		}
	}
}

// What a program leaves running starts programs of its own, after the session as well, without a complaint of the linker; so
// does what it runs as another user. A line says that they are not watched.
func TestWhatTheSessionCannotFollow(t *testing.T) {
	dir := t.TempDir()
	ready, out := filepath.Join(dir, "ready"), filepath.Join(dir, "out")
	if err := errors.Join(unix.Mkfifo(ready, 0o600), unix.Mkfifo(out, 0o600)); err != nil {
		t.Fatal(err)
	}
	const daemon = `(read line <"$1"; echo "$GPUMEMTOP_SESSION
$(env true 2>&1)end" >"$2") >/dev/null 2>&1 & :`
	here := run(t, command{args: []string{gpumemtop(), "--headless", "--", "sh", "-c", daemon, "sh", ready, out}})
	if here.code != 0 || !contains(here.stderr, "processes that outlive the program are no longer watched: 'gpumemtop attach --comm NAME' watches them") {
		t.Errorf("%s\n%s", here, here.stderr)
	}
	reader, err := os.OpenFile(out, os.O_RDWR, 0) // which does not wait
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close() //nolint:errcheck // only read
	if err := os.WriteFile(ready, []byte("go\n"), 0); err != nil {
		t.Fatal(err)
	}
	text := make([]byte, 4096)
	n, err := reader.Read(text)
	if err != nil {
		t.Fatal(err)
	}
	folder, rest, _ := strings.Cut(string(text[:n]), "\n")
	if _, err := os.Stat(filepath.Join(folder, wire.ShimName)); err != nil || rest != "end\n" {
		t.Errorf("the daemon says %q: %v", text[:n], err)
	}
	if os.Geteuid() != 0 {
		return
	}
	there, words := unknownUser(t, example("tiny")) // the checkout may be in a folder that is ours alone
	other := run(t, command{args: slices.Concat([]string{gpumemtop(), "--headless", "--"}, words, []string{there + "/tiny"})})
	if other.code != 0 || contains(other.stderr, "ld.so") || !contains(other.stderr, "it belongs to user 61234") {
		t.Errorf("%s\n%s", other, other.stderr)
	}
}

// A process that can no longer open the library starts programs without it, and without a complaint of the linker. A line says so.
func TestLibraryOutOfReach(t *testing.T) {
	const mounts = `mount -t tmpfs none "${GPUMEMTOP_SESSION%/*}" && true && env true && sh -c "exec env true"`
	here := inNamespace(t, `exec "$@"`, gpumemtop(), "--headless", "--", "sh", "-c", mounts)
	if here.code != 0 || contains(here.stderr, "ld.so") || !contains(here.stderr, "not watched: it started") {
		t.Errorf("under a mount: %s\n%s", here, here.stderr)
	}
	program, file := built(t, "confined", confined), filepath.Join(t.TempDir(), "x.json")
	for _, words := range [][]string{{program, "sh", "-c", "true; env true"}, {program, "!", "true; env true"}} {
		bare := runBare(t, words...)
		if contains(bare.stderr, "confined: ") {
			t.Skipf("this kernel has no landlock: %s", bare.stderr)
		}
		here = run(t, command{args: append([]string{gpumemtop(), "--headless", "--summary", file, "--force", "--"}, words...)})
		text, err := os.ReadFile(file)
		if difference := differs(bare, here); difference != "" || contains(here.stderr, "ld.so") || !contains(text, "where the library was out of reach") {
			t.Errorf("%s under landlock: %s, %v\n%s\n%s", words[1:], difference, err, here.stderr, text)
		}
	}
}

// confined gives up all files but the system's, by landlock, and executes its arguments, or behind "!" lets the C library do so.
const confined = `
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/landlock.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	struct landlock_ruleset_attr files = {LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_EXECUTE};
	int rules = (int)syscall(SYS_landlock_create_ruleset, &files, sizeof files, 0);
	struct landlock_path_beneath_attr usr = {files.handled_access_fs, open("/usr", O_PATH)}, etc = {files.handled_access_fs, open("/etc", O_PATH)};
	if (rules < 0 || syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &usr, 0) ||
	    syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &etc, 0) || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    syscall(SYS_landlock_restrict_self, rules, 0)) {
		perror("confined: landlock");
		return 0;
	}
	if (strcmp(argv[1], "!") == 0)
		return system(argv[2]) || pclose(popen(argv[2], "r"));
	execvp(argv[1], argv + 1);
	return argc > 0;
}`

// A program that is refused threads, or has little address space or small files, ends as it does alone. The core opens no descriptor for
// the timers that threads wait with where one of them creates a slab.
func TestLittleRoom(t *testing.T) {
	for _, c := range []struct {
		args   []string
		policy string
		says   string
	}{
		{[]string{fault("barred"), "200", "500"}, "futhark", "hit rate  "},
		{[]string{fault("barred"), "200", "500"}, "slab", "hit rate  "},
		{[]string{"prlimit", "--as=1000000000", example("leak"), "5", "1M"}, "futhark", "no pool in 1 process: the allocator needs 4 GiB"},
		{[]string{"prlimit", "--fsize=200000000", example("leak"), "5", "1M"}, "slab", "a process is not watched: it may not share the "},
	} {
		bare := runBare(t, c.args...)
		here := run(t, command{args: slices.Concat([]string{gpumemtop(), "--headless", "--policy", c.policy, "--"}, c.args)})
		if difference := differs(bare, here); difference != "" || !contains(here.stderr, c.says) {
			t.Errorf("%s: %s\n%s", c.args, difference, here.stderr)
		}
	}
}

// limitedGroups is the start of a script that pretends that the control groups of all processes have a limit: $1 of the files
// $2 = $3 and $4 = $5, in version $6.
const limitedGroups = `mount -t tmpfs none /sys/fs/cgroup
[ $6 = 1 ] && cd /sys/fs/cgroup && mkdir $1 && cd $1 || cd /sys/fs/cgroup
echo $3 >$2; echo $5 >$4; cd "$OLDPWD"; shift 6; exec "$@"`

// groupVersions lists those that a controller may have on this machine: version 1 only where it is mounted.
func groupVersions(t *testing.T, controller string) []string {
	t.Helper()
	groups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	if contains(groups, ":"+controller+":") {
		return []string{"1", "2"}
	}
	return []string{"2"}
}

// Where the control group leaves few threads, or little memory, the core stays away.
func TestGroupLeavesTooLittle(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		group []string
		says  string
	}{
		{[]string{"pids", "pids.max", "100", "pids.current", "40", "1"}, "takes 24 threads"},
		{[]string{"pids", "pids.max", "100", "pids.current", "40", "2"}, "takes 24 threads"},
		{[]string{"memory", "memory.limit_in_bytes", "64000000", "memory.usage_in_bytes", "50000000", "1"}, "takes 4 MiB"},
		{[]string{"memory", "memory.max", "64000000", "memory.current", "50000000", "2"}, "takes 4 MiB"},
	} {
		if !slices.Contains(groupVersions(t, c.group[0]), c.group[5]) {
			continue
		}
		here := inNamespace(t, limitedGroups, append(c.group, gpumemtop(), "--headless", "--", example("leak"), "5", "1M")...)
		if here.code != 0 || !contains(here.stderr, "no pool in 1 process: the allocator "+c.says) {
			t.Errorf("%s: %s\n%s", c.group, here, here.stderr)
		}
	}
}

// On a device that uses the memory of the host, the pool gives back what the control group has no room for: 148.75 MiB are
// left, an eighth spared; hungry needs 128 MiB at a time and other sizes later. These files do not show what it takes, so
// that a look that comes late, after its first buffer, finds 14 MiB more.
func TestGroupLeavesLittleMemory(t *testing.T) {
	files := map[string][]string{
		"1": {"memory.limit_in_bytes", "209715200", "memory.usage_in_bytes", "31457280", "1"},
		"2": {"memory.max", "209715200", "memory.current", "31457280", "2"},
	}
	bare := runBare(t, fault("hungry"), "8", "16M")
	for _, version := range groupVersions(t, "memory") {
		words := slices.Concat([]string{"memory"}, files[version], []string{gpumemtop(), "--headless", "--", fault("hungry"), "8", "16M"})
		here := inNamespace(t, limitedGroups, words...)
		if difference := differs(bare, here); difference != "" {
			t.Errorf("version %s: %s", version, difference)
		}
		if m := regexp.MustCompile(`in use, ([0-9]+)\.[0-9]+ MiB reserved`).FindSubmatch(here.stderr); m == nil || string(m[1]) > "163" {
			t.Errorf("version %s: too much is reserved\n%s", version, here.stderr)
		}
	}
}

// gpumemtop that may have too few threads says so before it starts anything.
func TestTooFewThreads(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can become a user who runs nothing else") // the limit counts all that a user runs
	}
	// Another user may not get to where gpumemtop lies, hence the descriptor.
	const script = `exec 3<"$0"; exec setpriv --reuid=61234 --clear-groups prlimit --nproc=8 /proc/self/fd/3 -- echo started`
	result := run(t, command{args: []string{"sh", "-c", script, gpumemtop()}})
	if result.code != 125 || len(result.stdout) != 0 {
		t.Errorf("ended with %s and %q", result, result.stdout)
	}
	checkOneLine(t, result.stderr, "ulimit -u")
}

// unknownUser copies programs to where a user who runs nothing else can start them; what that user starts begins with the words.
func unknownUser(t *testing.T, programs ...string) (dir string, words []string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can become a user who runs nothing else") // the limit counts all that a user runs
	}
	dir, err := os.MkdirTemp("", "gpumemtop-user-") //nolint:usetesting // t.TempDir() is in a folder that is ours alone
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	for _, program := range programs {
		if r := run(t, command{args: []string{"cp", program, dir}}); r.code != 0 {
			t.Fatalf("%s: %s\n%s", program, r, r.stderr)
		}
	}
	if err := errors.Join(os.Mkdir(dir+"/cache", 0o700), os.Chmod(dir, 0o755), os.Chown(dir+"/cache", 61234, 61234)); err != nil {
		t.Fatal(err)
	}
	return dir, []string{"env", "POCL_CACHE_DIR=" + dir + "/cache", "HOME=" + dir, "setpriv", "--reuid=61234", "--regid=61234", "--clear-groups"}
}

// No number of threads that the program may still have ends it: by the program's own limit, of different times, or by one that
// gpumemtop has, too.
func TestEveryNumberOfThreads(t *testing.T) {
	dir, user := unknownUser(t, gpumemtop(), fault("squeezed"), example("tiny"))
	policies := []string{"futhark", "slab", "arena", "none"}
	compare := func(t *testing.T, policy, says string, limit []string, words ...string) {
		t.Helper()
		start := slices.Concat(user, limit)
		bare := run(t, command{args: slices.Concat(start, words)})
		here := run(t, command{args: slices.Concat(start, []string{dir + "/gpumemtop", "--headless", "--policy", policy, "--"}, words)})
		if bare.code != here.code || !bytes.Equal(bare.stdout, here.stdout) || !contains(here.stderr, says) {
			t.Errorf("%s %s, %s: %s, bare %s\n%s", limit, words, policy, here, bare, here.stderr)
		}
	}
	for threads := 0; threads <= 20; threads++ {
		for i, when := range []string{"first", "later", "open"} {
			policy, says := policies[(threads+i)%len(policies)], "hit rate  "
			if when != "open" && policy != "none" {
				says = "no pool in 1 process: the allocator takes 24 threads"
			}
			if when != "open" && threads == 0 {
				says = "" // PoCL may have no thread
			}
			compare(t, policy, says, nil, dir+"/squeezed", when, itoa(threads), "20")
		}
		if threads == 0 {
			continue
		}
		says := "not watched: "
		if threads >= 2+runtime.NumCPU() {
			says = "hit rate  "
		}
		compare(t, policies[threads%len(policies)], says, []string{"prlimit", "--nproc=" + itoa(11+threads)}, dir+"/tiny")
	}
}

// A limit that the program's shell sets counts gpumemtop's threads as well, which are the same user's: it leaves room for them, and
// reads the one that it has set.
func TestThreadLimitOfAShell(t *testing.T) {
	dir, user := unknownUser(t, gpumemtop(), example("tiny"))
	served := 0
	for threads := 2; threads <= 20; threads++ {
		words := []string{"bash", "-c", fmt.Sprintf("ulimit -u %d; ulimit -u; exec %s/tiny", threads, dir)}
		policy := []string{"futhark", "slab", "arena", "none"}[threads%4]
		bare := run(t, command{args: slices.Concat(user, words)})
		here := run(t, command{args: slices.Concat(user, []string{dir + "/gpumemtop", "--headless", "--policy", policy, "--"}, words)})
		if bare.code != 0 {
			continue // drivers of processors need more
		}
		served++
		if here.code != 0 || !bytes.Equal(bare.stdout, here.stdout) || !contains(here.stderr, "hit rate  ") {
			t.Errorf("%d threads, %s: %s, bare %s\n%s", threads, policy, here, bare, here.stderr)
		}
	}
	if served == 0 {
		t.Error("the program never runs")
	}
}

// gpumemtop that may open too few files says so, too, whatever their number.
func TestTooFewDescriptors(t *testing.T) {
	for most := 4; most <= 12; most++ {
		result := run(t, command{args: []string{"prlimit", fmt.Sprintf("--nofile=%d:%d", most, most), gpumemtop(), "--headless", "--", "echo", "started"}})
		if result.code != 125 || len(result.stdout) != 0 || bytes.Count(result.stderr, []byte("\n")) != 1 {
			t.Errorf("%d: ended with %s and %q\n%s", most, result, result.stdout, result.stderr)
		}
	}
}

// However a program installs a handler, it does not run on the core's small stacks.
func TestHandlersHaveTheirStack(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"ssignal", "sigset", "dlsym", "syscall"} {
		args := []string{fault("handler"), way, "5000"}
		bare := runBare(t, args...)
		here, _ := runUnder(t, "futhark", command{args: args})
		if difference := differs(bare, here); difference != "" {
			t.Errorf("%s: %s", way, difference)
		}
	}
}

// A child that no handler of fork has prepared is left alone.
func TestRawForks(t *testing.T) {
	t.Parallel()
	args := []string{fault("forker"), "20", "64K", "raw"}
	bare := runBare(t, args...)
	for _, policy := range []string{"none", "futhark", "slab"} {
		here, _ := runUnder(t, policy, command{args: args})
		if difference := differs(bare, here); difference != "" {
			t.Errorf("%s: %s", policy, difference)
		}
	}
}

// A program in a time namespace has a clock of its own; its events have the times of ours.
func TestTimeNamespace(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.gmt")
	words := []string{gpumemtop(), "record", "--policy", "none", "-o", file, "--", "unshare", "--time", "--monotonic", "100000"}
	if os.Geteuid() != 0 {
		words = append(words, "--map-root-user")
	}
	here := run(t, command{args: append(words, example("leak"), "5", "1M")})
	f := reportOf(t, file)
	if here.code != 0 || f.DriverCreates != 20 || f.DriverReleases != 15 || f.Lost != 0 {
		t.Errorf("%s, %+v\n%s", here, f, here.stderr)
	}
	if m := regexp.MustCompile(` after ([0-9]+)\.[0-9]+ s\n`).FindSubmatch(here.stderr); m == nil || len(m[1]) > 3 {
		t.Errorf("the run took long:\n%s", here.stderr)
	}
}

// attach gives times by the clock of its own time namespace, not by that of the kernel, which is 100 s ahead here.
func TestAttachInATimeNamespace(t *testing.T) {
	rightstest.NeedAttach(t)
	target := start(t, command{args: []string{example("stencil"), "1000000", "1M"}})
	here := run(t, command{args: []string{
		"unshare", "--time", "--monotonic", "-100", gpumemtop(), "attach", "--headless", "--duration", "500ms", "-p", itoa(target.cmd.Process.Pid),
	}})
	if here.code != 0 || !regexp.MustCompile(` for [0-9]{1,2}\.[0-9]+ s, which goes on\n`).Match(here.stderr) {
		t.Errorf("%s\n%s", here, here.stderr)
	}
	signalTo(t, target.cmd.Process.Pid, syscall.SIGTERM)
	target.wait()
}

// A program that has the kernel kill it for system calls which only we make goes on: unwatched if it did so before its first
// OpenCL call, else with what is there. So does one that is refused calls which Go's runtime makes for each thread. The control group has so little room that creates ask for another look at its files.
func TestFilteredPrograms(t *testing.T) {
	t.Parallel()
	for when, says := range map[string]string{"early": "no OpenCL call was seen", "late": "hit rate  ", "signals": "hit rate  "} {
		bare := runBare(t, fault("filtered"), when, "64", "4M")
		for _, policy := range []string{"futhark", "slab"} {
			args := []string{
				"memory", "memory.max", "209715200", "memory.current", "31457280", "2", gpumemtop(), "--headless", "--policy", policy, "--",
				fault("filtered"), when, "64", "4M",
			}
			here := inNamespace(t, limitedGroups, args...)
			if difference := differs(bare, here); difference != "" || !contains(here.stderr, says) {
				t.Errorf("%s, %s: %s\n%s", when, policy, difference, here.stderr)
			}
		}
	}
}

// A program, or a thread of it, that gives up the processor's counter goes on, watched: its times come from the kernel. A thread
// in strict mode has no system calls, and goes on unwatched.
func TestUntimedPrograms(t *testing.T) {
	t.Parallel()
	if runtime.GOARCH != "amd64" {
		t.Skip("elsewhere the kernel does not let a thread give up the counter")
	}
	// Where threads wait for each other, Go's runtime would read the counter, which no other test makes happen for sure.
	code := run(t, command{args: []string{"objdump", "-d", filepath.Join(root, "build/libgpumemtop-core.so")}})
	if code.code != 0 || !contains(code.stdout, "syscall") || contains(code.stdout, "rdtsc") {
		t.Errorf("the core's code: %s, or reads the counter", code)
	}
	preloaded := libraryIn(t, t.TempDir())
	for how, creates := range map[string]uint64{"first": 4000, "prctl": 4000, "syscall": 4000, "unseen": 4000, "thread": 6000, "strict": 4000} {
		args := []string{fault("untimed"), how, "2000"}
		bare := runBare(t, args...)
		for _, policy := range []string{"none", "futhark", "slab"} {
			retry(t, func() string { // the C library's mutexes read the counter, too, where the driver's threads wait for each other
				here, f := runUnder(t, policy, command{args: args})
				if difference := differs(bare, here); difference != "" || f.Hits+f.Misses+f.LostEvents < creates {
					return fmt.Sprintf("%s, %s: %s; %d requests, %d lost", how, policy, difference, f.Hits+f.Misses, f.LostEvents)
				}
				return ""
			})
		}
		logged := run(t, command{args: args, env: []string{"LD_PRELOAD=" + preloaded, "GPUMEMTOP_LOG=" + t.TempDir()}})
		if difference := differs(bare, logged); difference != "" {
			t.Errorf("%s, with a flight log: %s", how, difference)
		}
	}
}

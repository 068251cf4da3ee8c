package e2e

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/rightstest"
)

// countsOf returns how much each process of a recording that runs a program created, in rising order. Other programs of
// this machine may use OpenCL meanwhile.
func countsOf(t *testing.T, file, program string) []uint64 {
	t.Helper()
	processes := slices.DeleteFunc(reportOf(t, file).Processes, func(p processFigures) bool {
		// A process that was gone at the first look has a number for a name; it is another program's if it created nothing.
		return !strings.HasSuffix(p.Program, program) && !strings.HasSuffix(p.Program, own(program)) && (!strings.HasPrefix(p.Program, "[") || p.Creates == 0)
	})
	return creates(processes)
}

// shell runs a script to its end.
func shell(t *testing.T, script string, args ...string) {
	t.Helper()
	result := run(t, command{args: append([]string{"sh", "-c", script}, args...)})
	if result.code != 0 {
		t.Fatalf("%s: %s\n%s", script, result, result.stderr)
	}
}

// A hundred programs of a millisecond, ten at a time: each is there, with its one buffer, and its call site has a name,
// except a few that ended before gpumemtop could read them. On a busy machine these may be more at times.
func TestAttachedToAll(t *testing.T) {
	const processes = 100
	program := called(t, example("tiny"), "everytiny")
	named := uint64(0)
	for range 3 {
		w := attach(t, "--all")
		shell(t, `seq 100 | xargs -P 10 -I@ "$0"`, program)
		w.leave()
		got := countsOf(t, w.file, "everytiny")
		others := slices.ContainsFunc(reportOf(t, w.file).Processes, func(p processFigures) bool {
			return !strings.HasSuffix(p.Program, own("everytiny")) && !strings.HasPrefix(p.Program, "[")
		})
		if others { // they may have no names either, and the same call sites
			t.Log("other programs use OpenCL at the same time")
		} else if len(got) != processes || slices.Max(got) != 1 || slices.Min(got) != 1 {
			t.Fatalf("%d processes created %v, want 1 in each of %d", len(got), got, processes)
		}
		named = 0
		for _, tag := range figuresIn(t, w.file, true).Tags {
			if tag.Tag == "tiny.c:13 create_only" {
				named += tag.Creates
			}
		}
		if named > processes && !others {
			t.Fatalf("%d creates at the one call site, want %d", named, processes)
		}
		if named >= processes*9/10 {
			return
		}
	}
	t.Errorf("%d creates at the one call site, want %d", named, processes)
}

// Ten at a time, and sixty-four threads in one: each create is counted where it belongs.
func TestAttachedToManyAtOnce(t *testing.T) {
	t.Parallel()
	churn, threads := called(t, example("churn"), "tenchurn"), called(t, example("threads"), "manythreads")
	w := attach(t, "--comm", "tenchurn", "--comm", "manythreads")
	shell(t, `for i in 1 2 3 4 5 6 7 8 9 10; do "$0" ${i}00 4K & done; wait`, churn)
	ends(t, start(t, command{args: []string{threads, "64", "50", "4K"}}))
	w.leave()
	want := []uint64{100, 200, 300, 400, 500, 600, 700, 800, 900, 1000}
	if got := countsOf(t, w.file, "tenchurn"); !slices.Equal(got, want) {
		t.Errorf("ten processes created %v", got)
	}
	if got := countsOf(t, w.file, "manythreads"); !slices.Equal(got, []uint64{64 * 50}) {
		t.Errorf("64 threads created %v, want 3200", got)
	}
}

// Those that have another name are not in the recording, however short they are.
func TestAttachedToNoneElse(t *testing.T) {
	mine, other := called(t, example("tiny"), "minetiny"), called(t, example("tiny"), "othertiny")
	w := attach(t, "--comm", "minetiny")
	shell(t, `seq 20 | xargs -P 4 -I@ "$0"; "$1"`, other, mine)
	w.leave()
	if p := reportOf(t, w.file).Processes; len(p) != 1 || !strings.HasSuffix(p[0].Program, own("minetiny")) {
		t.Errorf("processes %+v, want one minetiny", p)
	}
}

// A shell starts a program, and executes another one: with --follow both are there, however short they are.
func TestAttachedProcessExecutes(t *testing.T) {
	t.Parallel()
	in, out := io.Pipe()
	script := `read go; "$0" 10 4K; exec "$0" 300 4K`
	p := start(t, command{args: []string{"sh", "-c", script, example("churn")}, stdin: in})
	w := attach(t, "-p", itoa(p.cmd.Process.Pid), "--follow")
	if _, err := out.Write([]byte("go\n")); err != nil {
		t.Fatal(err)
	}
	_ = out.Close() // of a pipe in memory
	ends(t, p)
	w.end()
	if got := countsOf(t, w.file, "churn"); !slices.Equal(got, []uint64{10, 300}) {
		t.Errorf("processes created %v, want 10 and 300", got)
	}
}

// The first program uses OpenCL before it executes the second: under one process id there are two processes.
func TestAttachedTwoProgramsOfOneProcess(t *testing.T) {
	t.Parallel()
	w := attach(t, "--comm", "executor", "--comm", "secondchurn")
	first := built(t, own("executor"), executor)
	ends(t, start(t, command{args: []string{first, called(t, example("churn"), "secondchurn"), "200", "4K"}}))
	w.leave()
	processes := reportOf(t, w.file).Processes
	if got := creates(processes); !slices.Equal(got, []uint64{3, 200}) || len(processes) != 2 || processes[0].PID != processes[1].PID {
		t.Errorf("processes %+v, want 3 and 200 creates under one id", processes)
	}
}

// executor creates three buffers, keeps one, and executes its arguments.
const executor = `
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	cl_platform_id platform;
	cl_device_id device;
	if (clGetPlatformIDs(1, &platform, NULL) || clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL))
		return 1;
	cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, NULL);
	clReleaseMemObject(clCreateBuffer(context, CL_MEM_READ_WRITE, 1000, NULL, NULL));
	clReleaseMemObject(clCreateBuffer(context, CL_MEM_READ_WRITE, 2000, NULL, NULL));
	clCreateBuffer(context, CL_MEM_READ_WRITE, 3000, NULL, NULL);
	execv(argv[1], argv + 1);
	return 2;
}`

// Two programs get the same process id, one after the other: they are two processes, and neither has the other's calls.
func TestAttachedProcessIDsComeAgain(t *testing.T) {
	t.Parallel()
	program := called(t, example("churn"), "reusedchurn")
	const again = `echo $1 > /proc/sys/kernel/ns_last_pid; "$0" 100 4K; echo $1 > /proc/sys/kernel/ns_last_pid; "$0" 200 4K`
	for id := 20000; id < 30000; id += 1000 { // others may take the one that was chosen
		w := attach(t, "--comm", "reusedchurn")
		shell(t, again, program, itoa(id))
		w.leave()
		processes := reportOf(t, w.file).Processes
		if got := creates(processes); !slices.Equal(got, []uint64{100, 200}) {
			t.Fatalf("processes created %v, want 100 and 200", got)
		}
		if processes[0].PID == processes[1].PID {
			return
		}
	}
	t.Error("no id came again")
}

// Children that are not followed have none of their creates in the recording.
func TestAttachedWithoutChildren(t *testing.T) {
	t.Parallel()
	for _, follow := range []bool{false, true} {
		in, out := io.Pipe()
		p := start(t, command{args: []string{"sh", "-c", `read go; for i in 1 2 3; do "$0" ${i}00 4K & done; wait`, example("churn")}, stdin: in})
		flags := []string{"-p", itoa(p.cmd.Process.Pid)}
		var want []uint64
		if follow {
			flags, want = append(flags, "--follow"), []uint64{100, 200, 300}
		}
		w := attach(t, flags...)
		if _, err := out.Write([]byte("go\n")); err != nil {
			t.Fatal(err)
		}
		_ = out.Close() // of a pipe in memory
		ends(t, p)
		w.end()
		if got := countsOf(t, w.file, "churn"); !slices.Equal(got, want) {
			t.Errorf("follow %s: processes created %v, want %v", strconv.FormatBool(follow), got, want)
		}
	}
}

// Two that run are named by their ids, in both of the ways to name several, and a third is not.
func TestAttachedToSeveral(t *testing.T) {
	t.Parallel()
	program := called(t, fault("reader"), "onereader")
	for _, list := range []bool{false, true} {
		var ids []string
		var inputs []*io.PipeWriter
		var readers []*process
		for range 3 {
			in, out := io.Pipe()
			p := start(t, command{args: []string{program}, stdin: in})
			ids, inputs, readers = append(ids, itoa(p.cmd.Process.Pid)), append(inputs, out), append(readers, p)
			awaitReading(t, p.cmd.Process.Pid)
		}
		flags := []string{"-p", ids[0], "-p", ids[1]}
		if list {
			flags = []string{"-p", ids[0] + "," + ids[1]}
		}
		w := attach(t, flags...)
		for i := range readers { // the watch ends with the second
			if _, err := inputs[i].Write(make([]byte, 64<<10*(i+1))); err != nil {
				t.Fatal(err)
			}
			_ = inputs[i].Close() // of a pipe in memory
			ends(t, readers[i])
		}
		w.end()
		if got := countsOf(t, w.file, "onereader"); len(got) != 2 || got[0] < 1 || got[1] < 2 {
			t.Errorf("%q: processes created %v, want those of two", flags, got)
		}
	}
}

// A control group is chosen with all that is in it and comes to it, and nothing else is.
func TestAttachedToACgroup(t *testing.T) {
	t.Parallel()
	rightstest.NeedAttach(t)
	group := newCgroup(t)
	program := called(t, example("churn"), "groupchurn")
	w := attach(t, "--cgroup", group)
	shell(t, `"$0" 100 4K; echo $$ > "$1/cgroup.procs" && "$0" 200 4K && "$0" 300 4K`, program, group)
	w.leave()
	if got := countsOf(t, w.file, "groupchurn"); !slices.Equal(got, []uint64{200, 300}) {
		t.Errorf("processes created %v, want 200 and 300", got)
	}
}

// newCgroup makes a control group for a test, of whatever version there is.
func newCgroup(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	var failed []error
	for line := range strings.Lines(string(text)) {
		before, after, _ := strings.Cut(line, " - ")
		if fields := strings.Fields(before); strings.HasPrefix(after, "cgroup") && !strings.Contains(after, "cpuset") {
			group := filepath.Join(fields[4], "gpumemtop-e2e-"+itoa(os.Getpid()))
			if err := os.Mkdir(group, 0o755); err != nil {
				failed = append(failed, err)
				continue
			}
			t.Cleanup(func() { // it takes until its processes are reaped
				waitFor(t, "the control group to be empty", func() bool { return os.Remove(group) == nil })
			})
			return group
		}
	}
	t.Skipf("no control group can be made here: %v", errors.Join(failed...))
	return ""
}

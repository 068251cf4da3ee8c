package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/chromelint"
)

// processFigures is an entry of "processes" in a summary, as far as these tests look at it.
type processFigures struct {
	PID       int      `json:"pid"`
	Parent    int      `json:"parent"`
	Program   string   `json:"program"`
	Arguments []string `json:"arguments"`
	Creates   uint64   `json:"creates"`
	Hits      uint64   `json:"hits"`
	Misses    uint64   `json:"misses"`
	PeakInUse uint64   `json:"peak_in_use"`
	InUse     uint64   `json:"in_use"`
}

// figures decodes the processes of a summary and demands what holds for any: each has an identity of its own, nothing
// was lost, and together they are the total.
func (s *summary) figures(t *testing.T) []processFigures {
	t.Helper()
	var processes []processFigures
	seen := map[int]bool{}
	var hits, misses uint64
	for _, text := range s.Processes {
		var p processFigures
		if err := json.Unmarshal(text, &p); err != nil {
			t.Fatalf("process in the summary: %v\n%s", err, text)
		}
		if p.PID <= 0 || seen[p.PID] {
			t.Errorf("pid %d is no identity: %s", p.PID, text)
		}
		seen[p.PID] = true
		hits, misses = hits+p.Hits, misses+p.Misses
		processes = append(processes, p)
	}
	if hits != s.Hits || misses != s.Misses {
		t.Errorf("processes have %d hits and %d misses together, the total is %d and %d", hits, misses, s.Hits, s.Misses)
	}
	if s.LostEvents != 0 {
		t.Errorf("%d events lost", s.LostEvents)
	}
	return processes
}

// creates lists how much each process created, in rising order.
func creates(processes []processFigures) (counts []uint64) {
	for _, p := range processes {
		counts = append(counts, p.Creates)
	}
	slices.Sort(counts)
	return counts
}

// sortedLines are the lines of an output whose order is chance, because several processes write them.
func sortedLines(output []byte) []string { return slices.Sorted(strings.Lines(string(output))) }

// recorded runs a program under a policy with a recording, and demands that it ends and prints as bare.
func recorded(t *testing.T, policy string, bare outcome, c command) (file string, sum summary) {
	t.Helper()
	dir := t.TempDir()
	file, figures := filepath.Join(dir, "x.gmt"), filepath.Join(dir, "summary.json")
	c.args = append([]string{gpumemtop(), "record", "-o", file, "--policy", policy, "--summary", figures, "--"}, c.args...)
	result := run(t, c)
	if !result.sameEnd(bare) || !slices.Equal(sortedLines(result.stdout), sortedLines(bare.stdout)) {
		t.Errorf("%s: ended with %s and %q, bare with %s and %q\n%s", policy, result, result.stdout, bare, bare.stdout, result.stderr)
	}
	return file, readSummary(t, figures)
}

// Each process that a shell or xargs starts is counted for itself: how much it creates is its first argument.
func TestProcessesOfAShell(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, script string
		processes    int
	}{
		{"fork and exec", `"$0" 100 4K; "$0" 200 4K; exec "$0" 300 4K`, 3},
		{"in the background", `"$0" 100 4K & "$0" 200 4K & wait`, 2},
		{"a pipeline", `"$0" 100 4K | cat; "$0" 200 4K | cat`, 2},
		{"a shell in a shell", `sh -c "'$0' 100 4K & wait"; sh -c "'$0' 200 4K"`, 2},
		{"xargs", `seq 24 | xargs -P 8 -I@ "$0" @00 4K`, 24},
	} {
		t.Run(test.name, func(t *testing.T) {
			args := []string{"sh", "-c", test.script, example("churn")}
			bare := runBare(t, args...)
			var want []uint64
			for n := range test.processes {
				want = append(want, 100*uint64(n+1))
			}
			for _, policy := range []string{"none", "futhark"} {
				_, sum := recorded(t, policy, bare, command{args: args})
				processes := sum.figures(t)
				if got := creates(processes); !slices.Equal(got, want) {
					t.Errorf("%s: processes created %v, want %v", policy, got, want)
				}
				for _, p := range processes {
					if len(p.Arguments) != 2 || p.Arguments[0] != strconv.FormatUint(p.Creates, 10) {
						t.Errorf("%s: process %d with arguments %q created %d", policy, p.PID, p.Arguments, p.Creates)
					}
				}
			}
		})
	}
}

// Two programs of a session get the same process id, one after the other, and then a program of others does: each has a recording, or
// a flight log, with its own calls, and the last one is not taken for the session's.
func TestProcessIDsComeAgain(t *testing.T) {
	t.Parallel()
	const again = `echo $1 > /proc/sys/kernel/ns_last_pid; "$0" 100 4K; echo $1 > /proc/sys/kernel/ns_last_pid; "$0" 200 4K; read end`
	library := libraryIn(t, t.TempDir())
	for id := 8000; id < 18000; id += 1000 { // another process may take the chosen id
		dir := t.TempDir()
		args := []string{"sh", "-c", again, example("churn"), itoa(id)}
		run(t, command{args: args, env: []string{"LD_PRELOAD=" + library, "GPUMEMTOP_LOG=" + dir}})
		logs, _ := filepath.Glob(dir + "/*.flight")
		if len(logs) != 2 {
			t.Fatalf("flight logs %v, want two", logs)
		}
		in, out := io.Pipe()
		p := start(t, command{args: slices.Concat([]string{gpumemtop(), "record", "-o", dir + "/%p.gmt", "--"}, args), stdin: in})
		var names []string
		waitFor(t, "two recordings", func() bool {
			names, _ = filepath.Glob(dir + "/*.gmt")
			return len(names) == 2 && descendant(p.cmd.Process.Pid, "churn") == 0
		})
		_, pid, _ := strings.Cut(names[0], dir+"/")
		pid, _, _ = strings.Cut(pid, ".")
		other := run(t, command{args: []string{"sh", "-c", `echo $(($1-1)) > /proc/sys/kernel/ns_last_pid; sleep 60 >&- 2>&- & echo $!`, "sh", pid}})
		attached := run(t, command{args: []string{gpumemtop(), "attach", "-p", pid, "--duration", "10ms", "--headless"}})
		_ = out.Close() // of a pipe in memory
		p.wait()
		if names[1] != dir+"/"+pid+".gmt" || strings.TrimSpace(string(other.stdout)) != pid {
			continue
		}
		if contains(attached.stderr, "already") {
			t.Errorf("attach takes another process for the session's: %s", attached.stderr)
		}
		for i, name := range names {
			if got := creates(reportOf(t, name).Processes); !slices.Equal(got, []uint64{200 / uint64(i+1)}) {
				t.Errorf("%s: %d creates", name, got)
			}
		}
		return
	}
	t.Error("no id came again")
}

// closer: what the program does with numbers that were our descriptors' is its own affair, and it stays watched.
func TestDescriptorsAreTheProgramsOwn(t *testing.T) {
	t.Parallel()
	bare := runBare(t, fault("closer"))
	for _, s := range []served{{policy: "none"}, {policy: "futhark", flags: []string{"--set", "max_age=0.01"}}} {
		here, sum := s.run(t, command{args: []string{fault("closer")}})
		if what := differs(bare, here); what != "" {
			t.Errorf("%s: %s", s, what)
		}
		if processes := sum.figures(t); len(processes) != 1 || processes[0].Creates != 101 {
			t.Errorf("%s: %+v, want one process with 101 creates", s, processes)
		}
	}
}

// forker: the child from before the first OpenCL call and the one that execs are processes like any other, the one
// forked after it is on its own, and the parent does not notice: 1 + 20 + 20 buffers.
func TestForkedProcesses(t *testing.T) {
	t.Parallel()
	args := []string{fault("forker"), "20", "64K"}
	bare := runBare(t, args...)
	for _, policy := range []string{"none", "futhark", "pow2"} {
		_, sum := recorded(t, policy, bare, command{args: args})
		processes := sum.figures(t)
		if got := creates(processes); !slices.Equal(got, []uint64{20, 20, 41}) {
			t.Errorf("%s: processes created %v, want 20, 20 and 41", policy, got)
		}
		children := 0
		for _, p := range processes {
			for _, parent := range processes {
				if p.Parent == parent.PID && parent.Creates == 41 {
					children++
				}
			}
		}
		if children != 2 {
			t.Errorf("%s: %d processes are children of the one with 41 buffers, want 2: %+v", policy, children, processes)
		}
	}
}

// mpi is an MPI run with a number of ranks. The tests may run as root, on fewer cores than ranks, and where processes may
// not read each other's memory; the library that finds out about the machine must not make OpenCL calls of its own. Two that
// start at once may both want to make the folder that they share, and one fails: so each has its own.
func mpi(t *testing.T, ranks int, args ...string) command {
	t.Helper()
	return command{
		args: append([]string{"mpirun", "--oversubscribe", "-n", itoa(ranks), testProgram("ranks")}, args...),
		env: []string{
			"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", "HWLOC_COMPONENTS=-opencl",
			"OMPI_MCA_btl_vader_single_copy_mechanism=none", "OMPI_MCA_orte_tmpdir_base=" + t.TempDir(),
		},
	}
}

func TestRanksOfAnMPIRun(t *testing.T) {
	t.Parallel()
	const ranks, steps = 4, 25
	bare := run(t, mpi(t, ranks, itoa(steps), "64K"))
	if bare.code != 0 || !contains(bare.stdout, "ranks: checksum ") {
		t.Fatalf("bare: %s, %q\n%s", bare, bare.stdout, bare.stderr)
	}
	kept := []string{"--no-relief", "--set", "max_age=0"} // on a busy machine a run takes so long that blocks are timed or too old
	for _, s := range []served{{policy: "none"}, {policy: "futhark", flags: kept}, {policy: "pow2", flags: kept}} {
		here, sum := s.run(t, mpi(t, ranks, itoa(steps), "64K"))
		if what := differs(bare, here); what != "" {
			t.Errorf("%s: %s", s, what)
		}
		processes := sum.figures(t)
		if len(processes) != ranks {
			t.Errorf("%s: %d processes, want %d: mpirun itself makes no OpenCL calls", s, len(processes), ranks)
		}
		for _, p := range processes {
			if p.Creates != 2*steps || p.Hits+p.Misses != 2*steps || p.InUse != 0 || p.PeakInUse != 128<<10 {
				t.Errorf("%s: a rank's figures are %+v, want %d creates, none in use, 128K at the peak", s, p, 2*steps)
			}
			// A rank holds two buffers at a time on one queue: each is created once.
			if s.policy != "none" && p.Misses != 2 {
				t.Errorf("%s: a rank has %d misses, want 2", s, p.Misses)
			}
		}
	}
}

// recordTen makes a recording of ten processes at once. The first creates 100 buffers, the tenth 1000.
func recordTen(t *testing.T) (file string, processes []processFigures) {
	t.Helper()
	args := []string{"sh", "-c", `for i in 1 2 3 4 5 6 7 8 9 10; do "$0" ${i}00 4K & done; wait`, example("churn")}
	file, sum := recorded(t, "futhark", runBare(t, args...), command{args: args})
	return file, sum.figures(t)
}

func TestRecordingTellsProcessesApart(t *testing.T) {
	t.Parallel()
	file, live := recordTen(t)
	if len(live) != 10 {
		t.Fatalf("%d processes, want 10", len(live))
	}
	result := run(t, command{args: []string{gpumemtop(), "report", "--format", "json", file}})
	path := filepath.Join(t.TempDir(), "report.json")
	if err := os.WriteFile(path, result.stdout, 0o644); err != nil {
		t.Fatal(err)
	}
	again := readSummary(t, path)
	if got := again.figures(t); fmt.Sprint(got) != fmt.Sprint(live) {
		t.Errorf("the recording says\n%+v, the summary of the run\n%+v", got, live)
	}
	text := string(run(t, command{args: []string{gpumemtop(), "report", "--all", file}}).stdout)
	_, table, _ := strings.Cut(text, "\nPROCESSES")
	table, _, _ = strings.Cut(table, "\n\n")
	for _, p := range live {
		found := false
		for line := range strings.Lines(table) {
			words := strings.Fields(line)
			found = found || len(words) > 3 && words[0] == itoa(p.PID) && words[1] == strconv.FormatUint(p.Creates, 10)
		}
		if !found {
			t.Errorf("no line for process %d with %d creates in\n%s", p.PID, p.Creates, text)
		}
	}
}

// Each process has a track of its own in the trace, with its own calls on it.
func TestChromeExportTellsProcessesApart(t *testing.T) {
	t.Parallel()
	file, live := recordTen(t)
	out := filepath.Join(t.TempDir(), "x.json")
	if result := run(t, command{args: []string{gpumemtop(), "export", file, "--format", "chrome", "-o", out}}); result.code != 0 {
		t.Fatalf("export: %s\n%s", result, result.stderr)
	}
	text, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	facts, problems := chromelint.LintTrace(bytes.NewReader(text))
	if len(problems) != 0 || facts.Creates != 5500 {
		t.Errorf("%d creates, want 5500; problems: %+v", facts.Creates, problems)
	}
	var events []struct {
		Name  string `json:"name"`
		Phase string `json:"ph"`
		PID   int    `json:"pid"`
	}
	if err := json.Unmarshal(text, &events); err != nil {
		t.Fatal(err)
	}
	tracks, calls := map[int]int{}, map[int]uint64{}
	for _, e := range events {
		switch {
		case e.Name == "process_name":
			tracks[e.PID]++
		case e.Phase == "X" && e.Name == "create buffer":
			calls[e.PID]++
		}
	}
	for _, p := range live {
		if tracks[p.PID] != 1 || calls[p.PID] != p.Creates {
			t.Errorf("process %d: %d tracks with %d creates, want 1 with %d", p.PID, tracks[p.PID], calls[p.PID], p.Creates)
		}
	}
	if len(tracks) != len(live) {
		t.Errorf("%d tracks for %d processes", len(tracks), len(live))
	}
}

// Threads that come and go by the thousand: every call is counted, and what gpumemtop keeps of its own does not grow
// with them. (The rings, which are the program's, are another matter: they fill up once and are used again.)
func TestThreadsByTheThousand(t *testing.T) {
	for _, policy := range []string{"none", "futhark"} {
		t.Run(policy, func(t *testing.T) {
			few, _ := spawner(t, policy, 500)
			many, sum := spawner(t, policy, 5000)
			processes := sum.figures(t)
			if len(processes) != 1 || processes[0].Creates != 50_000 || sum.Hits+sum.Misses != 50_000 {
				t.Errorf("%d requests, processes %+v; want 50000 from one", sum.Hits+sum.Misses, processes)
			}
			if many > few+memorySlack {
				t.Errorf("memory grew from %d KiB with 500 to %d KiB with 5000 threads", few, many)
			}
			t.Logf("%d KiB with 500 and %d KiB with 5000 threads", few, many)
		})
	}
}

// spawner records threads with ten buffers each and returns the most memory that gpumemtop had of its own, in
// KiB.
func spawner(t *testing.T, policy string, threads int) (int, summary) {
	t.Helper()
	bare := runBare(t, fault("spawner"), itoa(threads), "10", "4K")
	dir := t.TempDir()
	file := filepath.Join(dir, "summary.json")
	p := start(t, command{dir: dir, args: []string{
		gpumemtop(), "record", "-o", "x.gmt", "--policy", policy, "--summary", file, "--",
		fault("spawner"), itoa(threads), "10", "4K",
	}})
	result, most := p.waitWatching("RssAnon")
	if difference := differs(bare, result); difference != "" {
		t.Errorf("spawner: %s", difference)
	}
	return most, readSummary(t, file)
}

// A rank that is killed takes the run with it, as bare, and what the ranks did until then is there.
func TestKilledRank(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, figures := filepath.Join(dir, "x.gmt"), filepath.Join(dir, "summary.json")
	c := mpi(t, 3, "1000000", "2M")
	c.args = append([]string{gpumemtop(), "record", "-o", file, "--summary", figures, "--"}, c.args...)
	p := start(t, c)
	rank := awaitDescendant(t, p.cmd.Process.Pid, "ranks")
	awaitGrowth(t, file)
	waitFor(t, "three ranks with OpenCL calls", func() bool {
		var sum struct {
			Processes []processFigures `json:"processes"`
		}
		text := run(t, command{args: []string{gpumemtop(), "report", "--format", "json", file}}).stdout
		return json.Unmarshal(text, &sum) == nil && len(sum.Processes) == 3 && !slices.ContainsFunc(sum.Processes,
			func(f processFigures) bool { return f.Creates == 0 })
	})
	if err := syscall.Kill(rank, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if result := p.wait(); result.code == 0 || result.code == 125 {
		t.Errorf("ended with %s, want what mpirun says of a dead rank\n%s", result, result.stderr)
	}
	sum := readSummary(t, figures)
	if processes := sum.figures(t); len(processes) != 3 {
		t.Errorf("%d processes in the summary, want 3", len(processes))
	}
	checkReport(t, file, "create_scattered")
}

// More processes than a small terminal has rows: they can be looked at one by one and in a list.
func TestManyProcessesInASmallTerminal(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	// The driver keeps the compiled kernels: they are not compiled 24 times below.
	run(t, command{args: []string{fault("reader")}, stdin: bytes.NewReader(make([]byte, 64<<10))})
	term := openTerminal(t, 64, 20) // at 60 columns a pid of six digits finds no room
	script := filepath.Join(dir, "crowd")
	// After its first buffer each waits for more input: that many working would starve each other and the dashboard.
	const crowd = "for i in $(seq 24); do { head -c 64K /dev/zero; exec sleep 1000; } | %s -t & done; wait\n"
	text := fmt.Sprintf(crowd, fault("reader"))
	if err := os.WriteFile(script, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	term.run(dir, gpumemtop(), "--", "sh", script)
	term.await(`pid \d+ \+23`)
	term.await(`work\.c:\d+`)
	term.keys("p")
	term.await(`reader -t.* process 1/24 .*RUNNING`)
	term.keys("P")
	term.await(`processes 24`)
	term.await(`(?s)all processes.*▸ +\d+ .* ● reader`)
	term.keys("G", "Enter")
	term.await(`process 24/24 `)
	term.keys("Escape")
	term.await(`gpumemtop  sh /.* RUNNING`)
	term.keys("q")
	term.await(`\[t\]erminate`)
	term.keys("t")
	term.await(`(?m)^status=143$`) // of SIGTERM, as the shell
	term.await(`(?m)^done`)
	term.checkRestored(dir)
	if !strings.Contains(term.screen(), "and 4 more") {
		t.Errorf("the summary does not count the processes that it leaves out:\n%s", term.screen())
	}
}

package wire

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"math"
	"path"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// Place says who a process is among others, by its environment and the kernel. What is unknown is empty.
type Place struct {
	App       string `json:"app,omitempty"` // that the user chose for the program's name
	Job       string `json:"job,omitempty"` // of a batch system, else of MPI, else the pod
	Step      string `json:"step,omitempty"`
	Rank      string `json:"rank,omitempty"`
	Size      string `json:"size,omitempty"` // how many ranks there are
	Pod       string `json:"pod,omitempty"`  // uid
	Container string `json:"container,omitempty"`
	Born      string `json:"born,omitempty"`  // start of the process in clock ticks since the host's
	Build     string `json:"build,omitempty"` // hash of the script that the process runs
}

// AppEnv names the program in place of its file.
const AppEnv = "GPUMEMTOP_APP"

// placeVariables are those that say a place, the first that is set. A launcher that a batch system starts gives ranks of its
// own: its variables come first. gmt_flight_begin has the same ones.
var placeVariables = [...][]string{
	{AppEnv},
	{"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "PMIX_NAMESPACE", "PMI_JOBID"},
	{"SLURM_STEP_ID", "PBS_ARRAY_INDEX", "LSB_JOBINDEX"},
	{"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID", "JOB_COMPLETION_INDEX"},
	{"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"},
	{"POD_UID"},
}

// fieldPointers returns those of placeVariables, then the others.
func (p *Place) fieldPointers() []*string {
	return []*string{&p.App, &p.Job, &p.Step, &p.Rank, &p.Size, &p.Pod, &p.Container, &p.Born, &p.Build}
}

// placeMax bounds a field, in bytes: monitoring systems keep a time series for each of them.
const placeMax = 128

// ReadPlace returns the place of a process. read returns a file of its folder in /proc, nil where that cannot be read.
func ReadPlace(read func(file string) []byte) (p Place) {
	environment := append([]byte{0}, read("environ")...)
	fields := p.fieldPointers()
	for i, names := range placeVariables {
		for _, name := range names {
			_, after, _ := bytes.Cut(environment, []byte("\x00"+name+"="))
			value, _, _ := bytes.Cut(after, []byte{0})
			*fields[i] = cmp.Or(*fields[i], string(value[:min(len(value), placeMax)]))
		}
	}
	p.readCgroupFile(string(read("cgroup")))
	p.Job = cmp.Or(p.Job, p.Pod)
	stat := read("stat")
	if words := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:]); len(words) > bornWord { // the name may have anything
		p.Born = string(words[bornWord])
	}
	words := strings.Split(strings.TrimSuffix(string(read("cmdline")), "\x00"), "\x00")
	if script := scriptOf(words[0], words[1:]); script != "" {
		folder := "cwd/"
		if path.IsAbs(script) {
			folder = "root"
		}
		if text := read(folder + script); text != nil {
			sum := sha256.Sum256(text)
			p.Build = hex.EncodeToString(sum[:20])
		}
	}
	for _, field := range fields {
		*field = strings.Map(func(r rune) rune {
			if r < ' ' || r == 0x7f {
				return '?'
			}
			return r
		}, strings.ToValidUTF8(*field, "?"))
	}
	return p
}

// bornWord is the place of starttime in /proc/PID/stat, from the state on.
const bornWord = 19

var (
	// Kubernetes: kubepods…/pod<uid>/<id>, or with systemd kubepods-besteffort-pod<uid with _>.slice/cri-containerd-<id>.scope.
	podPattern       = compileOnFirstUse(`pod([0-9a-f]{8}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{12})`)
	containerPattern = compileOnFirstUse(`(?:^|[/-])([0-9a-f]{64})(?:\.scope)?(?:/|$)`)
	// Slurm: …/job_<id>/step_<id>/…
	slurmPattern = compileOnFirstUse(`/job_(\d+)(?:/step_([^/]+))?`)
)

// compileOnFirstUse compiles when it is first used: few runs look.
func compileOnFirstUse(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}

// readCgroupFile reads /proc/PID/cgroup. Slurm's job is that of the control group: an environment may be older.
func (p *Place) readCgroupFile(text string) {
	for line := range strings.Lines(text) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) < 3 {
			continue
		}
		if m := podPattern().FindStringSubmatch(parts[2]); m != nil {
			p.Pod = strings.ReplaceAll(m[1], "_", "-")
		}
		if m := containerPattern().FindStringSubmatch(parts[2]); m != nil {
			p.Container = m[1]
		}
		if m := slurmPattern().FindStringSubmatch(parts[2]); m != nil {
			p.Job, p.Step = m[1], cmp.Or(m[2], p.Step)
		}
	}
}

// WithMissingFrom returns the place, with what it lacks from another one.
func (p Place) WithMissingFrom(other Place) Place {
	mine, others := p.fieldPointers(), other.fieldPointers()
	for i := range mine {
		*mine[i] = cmp.Or(*mine[i], *others[i])
	}
	return p
}

// CommonPlace returns what two places share.
func (p Place) CommonPlace(other Place) Place {
	mine, others := p.fieldPointers(), other.fieldPointers()
	for i := range mine {
		if *mine[i] != *others[i] {
			*mine[i] = ""
		}
	}
	return p
}

// DiagRecord returns the DIAG that gives the place of a process.
func (p Place) DiagRecord(time uint64) Record {
	var words []string
	for _, field := range p.fieldPointers() {
		words = append(words, *field)
	}
	return DiagFields{Time: time, Diag: DiagPlace}.Record([]byte(strings.Join(words, "\t")))
}

// ParsePlace reads what Record wrote; fields may come behind the known ones.
func ParsePlace(payload []byte) (p Place) {
	words := strings.Split(string(payload), "\t")
	for i, field := range p.fieldPointers() {
		if i < len(words) {
			*field = words[i]
		}
	}
	return p
}

// interpreters run scripts, which are the programs then. A version may follow.
var interpreters = regexp.MustCompile(`^(?:python|pypy|ruby|perl|node|julia|Rscript|lua|luajit|java)[-0-9.]*$`)

// ProgramNameOf returns the name of a program by its file and arguments: the script's where it is an interpreter.
func ProgramNameOf(program string, arguments []string) string {
	return path.Base(cmp.Or(scriptOf(program, arguments), program))
}

// scriptOf returns the script or module that an interpreter runs; empty: the program is none, or runs none.
func scriptOf(program string, arguments []string) string {
	if !interpreters.MatchString(path.Base(program)) {
		return ""
	}
	for i := 0; i < len(arguments); i++ {
		switch word := arguments[i]; word {
		case "-m", "-jar":
			return strings.Join(arguments[i+1:min(i+2, len(arguments))], "")
		case "-c", "-e":
			return ""
		case "-W", "-X", "-I", "-cp", "-r": // options with a value
			i++
		default:
			if !strings.HasPrefix(word, "-") {
				return word
			}
		}
	}
	return ""
}

// RankNumber returns what PROCESS has for a rank.
func RankNumber(rank string) uint64 {
	n, err := strconv.ParseUint(rank, 10, 32)
	if err != nil || n == math.MaxUint32 {
		return 0
	}
	return n + 1
}

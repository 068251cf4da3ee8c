package wire

import "testing"

// TestReadPlace: a launcher's own variables come before those of a batch system, which may have started the launcher.
func TestReadPlace(t *testing.T) {
	const uid, id = "0a1b2c3d-0000-1111-2222-333344445555", "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
	const stat = "7 (a b) c) S 1 7 7 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 4711 1 1"
	for _, c := range []struct {
		environ, cgroup, stat string
		want                  Place
		cmdline               string
	}{
		{"PATH=/bin\x00OMPI_COMM_WORLD_RANK=3\x00OMPI_COMM_WORLD_SIZE=8\x00SLURM_PROCID=0\x00SLURM_JOB_ID=17\x00", "", "", Place{Job: "17", Rank: "3", Size: "8"}, ""},
		{"PMIX_NAMESPACE=99@1\x00PMIX_RANK=2", "", "", Place{Job: "99@1", Rank: "2"}, ""},
		{"MY_PMI_RANK=4\x00PMI_RANK=\x00GPUMEMTOP_APP=a\nb\xff", "", "7 (x) S 1", Place{App: "a?b?"}, ""},
		{"LSB_JOBID=8\x00LSB_JOBINDEX=2", "", stat, Place{Job: "8", Step: "2", Born: "4711"}, ""},
		{"PBS_JOBID=9.host", "0::/user.slice/user-0.slice", "", Place{Job: "9.host"}, ""},
		{"", "0::/kubepods/besteffort/pod" + uid + "/" + id, "", Place{Job: uid, Pod: uid, Container: id}, ""},
		{"", "0::/kubepods.slice/kubepods-pod0a1b2c3d_0000_1111_2222_333344445555.slice/cri-containerd-" + id + ".scope", "", Place{Job: uid, Pod: uid, Container: id}, ""},
		{"SLURM_JOB_ID=1\x00SLURM_STEP_ID=0", "0::/system.slice/slurmstepd.scope/job_4711/step_0/user/task_0", "", Place{Job: "4711", Step: "0"}, ""},
		{"", "11:memory:/slurm/uid_1000/job_12\n1:name=systemd:/x", "", Place{Job: "12"}, ""},
		{cmdline: "python3\x00a.py\x00", want: Place{Build: "525d513313416cf187f44fa87e1753ee6d11552c"}},
		{cmdline: "python3\x00/a.py\x00"}, {cmdline: "python3\x00-c\x00x"}, {cmdline: "a.py"},
		{"", "garbage\n::\n0::\n", ")", Place{}, ""},
	} {
		files := map[string]string{"environ": c.environ, "cgroup": c.cgroup, "stat": c.stat, "cmdline": c.cmdline, "cwd/a.py": "print()"}
		got := ReadPlace(func(file string) []byte {
			if text, there := files[file]; there {
				return []byte(text)
			}
			return nil
		})
		if got != c.want {
			t.Errorf("%+v: %+v", c, got)
		}
		r := got.DiagRecord(5)
		if back := ParsePlace(r.Payload); back != got || !r.IsDefinition() || r.Time != 5 {
			t.Errorf("%+v came back as %+v", got, back)
		}
	}
	for rank, want := range map[string]uint64{"": 0, "0": 1, "41": 42, "-1": 0, "x": 0, "4294967295": 0} {
		if got := RankNumber(rank); got != want {
			t.Errorf("%q: %d, want %d", rank, got, want)
		}
	}
}

func TestProgramName(t *testing.T) {
	for want, words := range map[string][]string{
		"train":     {"/opt/train", "python3"},
		"train.py":  {"/usr/bin/python3.11", "-u", "-X", "dev", "/opt/train.py", "x.py"},
		"lib.tool":  {"python3", "-m", "lib.tool", "-v"},
		"python3":   {"python3", "-c", "import x"},
		"pythonic":  {"/bin/pythonic", "a"},
		"server.js": {"node", "server.js"},
		"a.jar":     {"java", "-Xmx1g", "-jar", "/x/a.jar"},
		"pypy3":     {"pypy3"},
	} {
		if got := ProgramNameOf(words[0], words[1:]); got != want {
			t.Errorf("%q: %q, want %q", words, got, want)
		}
	}
}

package wire

import "testing"

// A launcher's own variables come before those of Slurm, which may have started the launcher.
func TestRank(t *testing.T) {
	for text, want := range map[string]string{
		"PATH=/bin\x00OMPI_COMM_WORLD_RANK=3\x00SLURM_PROCID=0\x00": "3", "SLURM_PROCID=17": "17", "MY_PMI_RANK=4\x00PMI_RANK=\x00": "", "": "",
	} {
		if got := RankIn([]byte(text)); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	for rank, want := range map[string]uint64{"": 0, "0": 1, "41": 42, "-1": 0, "x": 0, "4294967295": 0} {
		if got := RankNumber(rank); got != want {
			t.Errorf("%q: %d, want %d", rank, got, want)
		}
	}
}

package wire

import (
	"bytes"
	"cmp"
	"math"
	"strconv"
)

// Rank returns the rank of a process in its job from its environment; empty: unknown. A launcher that Slurm starts gives ranks of its
// own: its variables come first.
func Rank(lookup func(name string) string) string {
	return cmp.Or(lookup("OMPI_COMM_WORLD_RANK"), lookup("PMI_RANK"), lookup("PMIX_RANK"), lookup("SLURM_PROCID"))
}

// RankIn returns the rank of a process whose environment is text, as /proc has it: words NAME=VALUE, each ended by NUL.
func RankIn(text []byte) string {
	return Rank(func(name string) string {
		_, after, _ := bytes.Cut(append([]byte{0}, text...), []byte("\x00"+name+"="))
		value, _, _ := bytes.Cut(after, []byte{0})
		return string(value)
	})
}

// RankNumber returns what PROCESS has for a rank.
func RankNumber(rank string) uint64 {
	n, err := strconv.ParseUint(rank, 10, 32)
	if err != nil || n == math.MaxUint32 {
		return 0
	}
	return n + 1
}

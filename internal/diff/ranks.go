package diff

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

const (
	ranksMost  = 1 << 20 // of a job
	ranksShown = 10      // of those that are missing
)

type rankedJob struct {
	app, job string
	size     int
}

// presentRanks are the ranks of jobs that left something, some more than once.
type presentRanks map[rankedJob][]int32

func (p presentRanks) note(r *BuildRun) {
	size, err := strconv.Atoi(r.Size)
	if err != nil || size < 2 || size > ranksMost || r.Job == "" {
		return
	}
	if rank, err := strconv.Atoi(r.Rank); err == nil && rank >= 0 && rank < size {
		job := rankedJob{r.App, r.Job, size}
		p[job] = append(p[job], int32(rank))
	}
}

// missing names ranks that left nothing where other ranks of their job left recordings.
func (p presentRanks) missing() (list []string) {
	for job, ranks := range p {
		slices.Sort(ranks)
		ranks = slices.Compact(ranks)
		missing := job.size - len(ranks)
		if missing == 0 {
			continue
		}
		list = append(list, fmt.Sprintf("%s, job %s: %s of %d left nothing", job.app, job.job, firstMissing(ranks, missing), job.size))
	}
	slices.Sort(list)
	return list
}

// firstMissing lists the first ranks that sorted ranks lack, and counts the others.
func firstMissing(ranks []int32, missing int) string {
	var names []string
	for rank := int32(0); len(names) < min(missing, ranksShown); rank++ {
		if len(ranks) > 0 && ranks[0] == rank {
			ranks = ranks[1:]
		} else {
			names = append(names, strconv.Itoa(int(rank)))
		}
	}
	text := "rank " + names[0]
	if len(names) > 1 {
		text = "ranks " + strings.Join(names, ", ")
	}
	if left := missing - len(names); left > 0 {
		text += fmt.Sprintf(" and %d more", left)
	}
	return text
}

// Package measure runs an experiment in a program: blocks of it are served by its present configuration of the pool and by an
// alternative, in random order, and timed. A Director decides which part of the program is a block and when the arms change; a
// Follower cuts the blocks from the records, so that a live run and its recording give the same answer.
package measure

import (
	"fmt"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/internal/experiment"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Plan is a block that is to come. It is announced in a DIAG before the program reaches it.
type Plan struct {
	Number     uint64 // of the block in its experiment, from 0
	Arm        experiment.Arm
	From       uint64 // the pool's request with which it begins
	Slices     uint64 // parts of it that are timed
	Requests   uint64 // of a slice
	Iterations uint64 // of a slice; 0: requests do not repeat
}

// firstRequestAfter is the first request after the block.
func (p *Plan) firstRequestAfter() uint64 { return p.From + p.Slices*p.Requests }

// sliceLength returns how many iterations a slice is, or requests where these do not repeat.
func (p *Plan) sliceLength() uint64 {
	if p.Iterations == 0 {
		return p.Requests
	}
	return p.Iterations
}

// planForm is how a DIAG announces a block.
const planForm = "block %d: arm %d from request %d, %d parts of %d requests, %d iterations"

func (p *Plan) announcementText() string {
	return fmt.Sprintf(planForm, p.Number, p.Arm, p.From, p.Slices, p.Requests, p.Iterations)
}

// Bounds of what a text may say, which may come from a damaged file.
const (
	partsMost    = 1024
	requestsMost = 1 << 40
)

// parseBlockPlan reads what text writes.
func parseBlockPlan(text string) (p Plan, ok bool) {
	n, err := fmt.Sscanf(text, planForm, &p.Number, &p.Arm, &p.From, &p.Slices, &p.Requests, &p.Iterations)
	small := p.Slices > 0 && p.Slices <= partsMost && p.Requests > 0 && p.Requests < requestsMost && p.Iterations < requestsMost && p.From < 1<<60
	return p, err == nil && n == 6 && small && p.Arm <= experiment.Alternative
}

// The other texts of DIAG begin with these words.
const (
	startWord = "experiment: "
	endWord   = "experiment ends: "
	notWord   = "not measured: "
)

// IsAnnouncement reports whether a DIAG announces a block, which is too little to tell the user.
func IsAnnouncement(r *wire.Record) bool {
	return r.AsDiag().Diag() == wire.DiagMeasure && strings.HasPrefix(string(r.Payload), "block ")
}

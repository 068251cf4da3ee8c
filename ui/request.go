package ui

import "codeberg.org/gpumemtop/gpumemtop/internal/stats"

// request is a change that this dashboard asked for, until its answer is reported.
type request struct {
	sequence uint64
	late     bool // it was reported that there is no answer
}

// isAnsweredBy reports whether a snapshot has the answer to the request, or to a later one.
func (q *request) isAnsweredBy(r *stats.Request) bool { return r.Sequence >= q.sequence }

// howRequestEndedText returns in words how the request ended, as a snapshot has it; empty while that is open. After a late request
// another answer may come.
func (q *request) howRequestEndedText(r *stats.Request, now uint64, ended bool) (text string, st style) {
	was := q.late
	q.late = false
	switch known := q.isAnsweredBy(r); {
	case known && r.Refused != "":
		return r.Refused, badStyle
	case known && !r.IsPending():
		return "acknowledged", goodStyle
	case ended:
		return "the program ended before it answered", warnStyle
	case known && r.IsUnanswered(now):
		if q.late = true; !was {
			return "the program does not answer", warnStyle
		}
	}
	return "", plain
}

package ui

import "codeberg.org/gpumemtop/gpumemtop/internal/stats"

// paneID names a pane. The key of its number zooms a pane.
type paneID uint8

const (
	noPane paneID = iota
	paneMemory
	paneRates
	paneTags
	paneFree
	paneMisses
	paneLimits
	paneOutput
	paneProcesses // the panes from here on have no number; they are shown alone or not at all
	panePolicies
	paneGhosts
	paneCurve
	paneFailures
	paneTransfers
	paneObjects
	paneHeap
	panePoints
	paneCount
)

// isUnnumbered reports whether a pane is shown alone or not at all.
func (p paneID) isUnnumbered() bool { return p >= paneProcesses }

var paneDigits = [paneCount]string{"", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷"}

// paneNames are the numbered panes.
var paneNames = [...]string{paneMemory: "memory", paneRates: "rates", paneTags: "tags", paneFree: "pool by size", paneMisses: "misses", paneLimits: "limits", paneOutput: "output"}

// pane is one part of the dashboard. The dashboard places it, draws the frame around it, and passes on the keys that
// move in it.
type pane interface {
	// title returns what the frame shows: the title, and a hint that is left out first.
	title(s *stats.Snapshot) (title, hint []span)
	// draw fills the inside. s is never nil.
	draw(r region, s *stats.Snapshot)
	// move handles a key that moves in the pane.
	move(m motion)
	// handleEnter handles the enter key.
	handleEnter()
}

// basePane is for panes without rows of their own: keys move in the tags, and enter opens the free list.
type basePane struct{ d *dashboard }

func (p basePane) move(m motion) { p.d.tags.move(m) }

func (p basePane) handleEnter() { p.d.free.showFreeListOfTag() }

// list is the cursor in a list that a pane draws.
type list struct{ at, top, page int }

func (l *list) asList() *list { return l }

// moveCursor moves the cursor by a key.
func (l *list) moveCursor(m motion, all int) {
	l.at = max(0, min(l.at+m.rowsDown(max(1, l.page-1)), all-1))
}

// setPageAndScroll sets how many rows are drawn, and moves the first of them so that the cursor is visible.
func (l *list) setPageAndScroll(page, all int) {
	l.page = max(1, page)
	l.at = max(0, min(l.at, all-1))
	l.top = max(l.at-l.page+1, min(l.top, l.at))
	l.top = max(0, min(l.top, all-l.page))
}

// motion is a way to move in a list.
type motion uint8

const (
	stay motion = iota
	moveUp
	moveDown
	movePageUp
	movePageDown
	moveTop
	moveBottom
)

// far is further than any list is long.
const far = 1 << 30

// rowsDown returns how many rows a motion goes down.
func (m motion) rowsDown(page int) int {
	return [...]int{moveUp: -1, moveDown: 1, movePageUp: -page, movePageDown: page, moveTop: -far, moveBottom: far}[m]
}

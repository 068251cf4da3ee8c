package merging

import (
	"fmt"
	"slices"
	"testing"
)

// graph makes symmetric edges.
func graph(n int, table map[int][]int) []map[int]bool {
	edges := make([]map[int]bool, n)
	for x := range edges {
		edges[x] = map[int]bool{}
	}
	for x, ys := range table {
		for _, y := range ys {
			edges[x][y], edges[y][x] = true, true
		}
	}
	return edges
}

// canny is figure 10.7. The thesis omits the sizes; these follow its text: m0 to m6 are equal, m7 and m8 are larger and
// known from the parameters, m9 is larger and known at the end. m0 is the caller's.
func canny() *Problem {
	p := &Problem{Max: true, Edges: graph(10, map[int][]int{
		0: {1}, 1: {0, 2}, 2: {1, 3}, 3: {2, 4, 5}, 4: {3, 5, 6}, 5: {3, 4, 6}, 6: {4, 5, 7, 8}, 7: {6, 8, 9},
		8: {6, 7, 9}, 9: {7, 8},
	})}
	for i := range 10 {
		b := Block{Size: 100, Created: i, Fixed: i == 0}
		if i >= 7 {
			b.Size = 400
		}
		if i == 9 {
			b.Size, b.Known = 1000, 9
		}
		p.Blocks = append(p.Blocks, b)
	}
	return p
}

func groups(p *Grouping) string { return fmt.Sprint(p.Groups) }

func TestCannyLinearScanGivesThePrintedReuses(t *testing.T) {
	p := canny()
	plan, ok := p.GroupLinearly()
	if want := "[[0 2 4] [1 3 6] [5 7] [8] [9]]"; !ok || groups(plan) != want {
		t.Errorf("groups %v, want %s", plan.Groups, want)
	}
	if found := p.FindConflicts(plan); len(found) != 0 {
		t.Errorf("the plan is wrong: %v", found)
	}
}

func TestCannyBestHasFourBlocksWithTheLastApart(t *testing.T) {
	for _, byCount := range []bool{true, false} {
		p := canny()
		plan := p.FindBestGrouping(Bound{}, byCount)
		if len(plan.Groups) != 4 || !plan.Optimal {
			t.Errorf("%d blocks %v, optimal %v, want 4 and optimal", len(plan.Groups), plan.Groups, plan.Optimal)
		}
		if !slices.ContainsFunc(plan.Groups, func(g []int) bool { return slices.Equal(g, []int{9}) }) {
			t.Errorf("m9 is not apart: %v", plan.Groups)
		}
		if found := p.FindConflicts(plan); len(found) != 0 {
			t.Errorf("the plan is wrong: %v", found)
		}
	}
}

func TestCannyPrintedHandPlanIsRejected(t *testing.T) {
	hand := &Grouping{Groups: [][]int{{0, 3}, {1, 4, 6}, {2, 5, 7, 8}, {9}}} // figure 10.9
	var pairs []string
	for _, c := range canny().FindConflicts(hand) {
		pairs = append(pairs, c.String())
	}
	if want := []string{"4 and 6: interfere", "7 and 8: interfere"}; !slices.Equal(pairs, want) {
		t.Errorf("conflicts %q, want %q", pairs, want)
	}
}

// figure96 is the program of figure 9.6 as printed: xs0 is read by the statement that makes xs3.
func figure96() *Program {
	kernel := func(uses ...Use) Step { return Step{Kind: KindKernel, Uses: uses} }
	r := func(b int) Use { return Use{Buffer: b, Reads: true} }
	w := func(b int) Use { return Use{Buffer: b, Writes: true} }
	p := &Program{Steps: []Step{
		kernel(w(0)), {Kind: KindRead, Uses: []Use{r(0)}},
		kernel(w(1)), {Kind: KindRead, Uses: []Use{r(1)}},
		kernel(r(1), w(2)), {Kind: KindRead, Uses: []Use{r(2)}},
		kernel(r(0), r(2), w(3)), {Kind: KindRead, Uses: []Use{r(3)}},
	}}
	for i := range p.Steps {
		p.Steps[i].Done = i
	}
	for range 4 {
		p.Buffers = append(p.Buffers, Buffer{Size: 64, Parent: None, Released: None})
	}
	return p
}

func TestFigure96NeedsThreeBlocksAsPrinted(t *testing.T) {
	a, err := Analyse(figure96())
	if err != nil {
		t.Fatal(err)
	}
	l := a.Lifetimes(Uses)
	var pairs []string
	for x := range l.Spans {
		for y := range l.Spans[x+1:] {
			if y += x + 1; haveOverlap(l.Spans[x], l.Spans[y]) {
				pairs = append(pairs, fmt.Sprintf("%d-%d", x, y))
			}
		}
	}
	if want := []string{"0-1", "0-2", "0-3", "1-2", "2-3"}; !slices.Equal(pairs, want) {
		t.Errorf("interferences %q, want %q", pairs, want)
	}
	if b := l.LowerBound(); b.Blocks != 3 || b.Bytes != 192 {
		t.Errorf("bound %+v, want 3 blocks of 192 bytes", b)
	}
	p, _ := a.reuseProblem(l, false)
	linear, _ := p.GroupLinearly()
	best := p.FindBestGrouping(l.LowerBound(), true)
	if len(linear.Groups) != 3 || len(best.Groups) != 3 || !best.Optimal {
		t.Errorf("linear %v, best %v (optimal %v), want 3 blocks each", linear.Groups, best.Groups, best.Optimal)
	}
}

func TestFigure96NeedsTwoBlocksByItsTable(t *testing.T) {
	p := &Problem{Blocks: make([]Block, 4), Edges: graph(4, map[int][]int{2: {1, 3}, 3: {0, 2}})}
	for i := range p.Blocks {
		p.Blocks[i] = Block{Size: 64, Created: i}
	}
	linear, _ := p.GroupLinearly()
	best := p.FindBestGrouping(Bound{}, true)
	if len(linear.Groups) != 3 || groups(best) != "[[0 2] [1 3]]" || !best.Optimal {
		t.Errorf("linear %v, best %v (optimal %v), want 3 blocks and [[0 2] [1 3]]", linear.Groups, best.Groups, best.Optimal)
	}
}

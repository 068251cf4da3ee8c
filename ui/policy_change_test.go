package ui

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/charmbracelet/x/exp/golden"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
)

// policyTest is a dashboard with policies to choose from, on a crowd of processes under futhark.
func policyTest(w, h int, s *stats.Snapshot, asked *[]string, refusal error) *dashboard {
	o := (&calls{}).options()
	o.SetPolicy = func(name string) (uint64, error) {
		if refusal == nil {
			*asked = append(*asked, name)
		}
		return uint64(len(*asked)), refusal
	}
	o.Policies = []Policy{
		{"none", "Observes only: every buffer comes from the driver and goes back to it."},
		{"futhark", "Best fit: the smallest free block that is large enough serves, if it is small, or comes from the same call site. Little is wasted."},
		{"pow2", "Every request is rounded up to a power of two and served by a free block of exactly that size, the latest first."},
		{"slab", "Buffers are parts of large blocks: the smallest free range that is large enough serves, and neighbours that are free are joined."},
	}
	return newTest(o, w, h, s)
}

// answeredPolicy is how a snapshot has a request that was answered.
func answeredPolicy(sequence uint64, refused string) stats.Request {
	return stats.Request{Sequence: sequence, AskedAt: sampleSnapshot().Time, AnsweredAt: sampleSnapshot().Time, Refused: refused}
}

// obeying is a crowd of n processes; some have switched to a policy.
func obeying(n, some int, policy string, change stats.PolicyChange) *stats.Snapshot {
	s := crowdSnapshot(n)
	s.Change = change
	for i := range s.Processes {
		s.Processes[i].State, s.Processes[i].Policy = stats.Running, "futhark"
		if i < some {
			s.Processes[i].Policy, s.Policy = policy, policy
		}
	}
	return s
}

func TestPoliciesGolden(t *testing.T) {
	for _, size := range [][2]int{{120, 36}, {80, 24}, {60, 14}} {
		t.Run(itoa(size[0])+"x"+itoa(size[1]), func(t *testing.T) {
			var asked []string
			d := policyTest(size[0], size[1], obeying(3, 0, "", stats.PolicyChange{}), &asked, nil)
			press(d, "a", "j", "enter")
			d.Update(frameMsg{now: testStart, snap: obeying(3, 1, "pow2", stats.PolicyChange{Former: []string{"futhark"}, Done: 1, Request: answeredPolicy(1, "")})})
			checkFrame(t, frameText(d), size[0], size[1])
			golden.RequireEqual(t, screen(d))
		})
	}
}

func TestPolicyIsChosen(t *testing.T) {
	var asked []string
	d := policyTest(120, 36, obeying(2, 0, "", stats.PolicyChange{}), &asked, nil)
	whole := screen(d)
	if !strings.Contains(whole, "a policy") {
		t.Errorf("no key for the policy in the limits pane:\n%s", whole)
	}
	press(d, "a", "j", "esc")
	if got := screen(d); got != whole || len(asked) != 0 {
		t.Errorf("esc asked for %q, and shows\n%s", asked, got)
	}
	press(d, "a", "enter")
	if got := screen(d); len(asked) != 0 || !strings.Contains(got, "policy futhark is in force already") {
		t.Errorf("asked for %q:\n%s", asked, got)
	}
	press(d, "j", "j", "j", "k", "enter") // the end of the list holds
	if got := screen(d); !slices.Equal(asked, []string{"pow2"}) || !strings.Contains(got, "…") || !strings.Contains(got, "processes under futhark: 2 of 2") {
		t.Errorf("asked for %q:\n%s", asked, got)
	}
	d.Update(frameMsg{now: testStart, snap: obeying(2, 0, "", stats.PolicyChange{Wanted: "pow2", Request: stats.Request{Sequence: 1, AskedAt: sampleSnapshot().Time}})})
	d.Update(frameMsg{now: testStart, snap: obeying(2, 1, "pow2", stats.PolicyChange{Former: []string{"futhark"}, Done: 1, Request: answeredPolicy(1, "")})})
	got := screen(d)
	for _, want := range []string{"✓ policy futhark → pow2 acknowledged", "processes under pow2: 1 of 2", "4712 futhark  blur --rank 1", "●"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	press(d, "g", "enter")
	d.Update(frameMsg{now: testStart, snap: obeying(2, 1, "pow2", stats.PolicyChange{Request: answeredPolicy(2, "the allocator has failed")})})
	shows(t, d, "✗ policy none: the allocator has failed")
	press(d, "enter")
	late := obeying(2, 1, "pow2", stats.PolicyChange{Wanted: "none", Request: stats.Request{Sequence: 3, AskedAt: sampleSnapshot().Time}})
	late.Time += 6e9
	d.Update(frameMsg{now: testStart, snap: late})
	shows(t, d, "✗ policy none: the program does not answer")
}

// TestOvertakenPolicy: another terminal asked for another policy before the answer; what is in force is reported.
func TestOvertakenPolicy(t *testing.T) {
	var asked []string
	d := policyTest(120, 36, obeying(2, 0, "", stats.PolicyChange{}), &asked, nil)
	press(d, "a", "j", "enter")
	d.Update(frameMsg{now: testStart, snap: obeying(2, 2, "slab", stats.PolicyChange{Done: 2, Request: answeredPolicy(2, "")})})
	shows(t, d, "✓ policy futhark → slab acknowledged")
}

func TestPolicyIsNotOffered(t *testing.T) {
	var asked []string
	live := func() *dashboard { return policyTest(120, 36, obeying(2, 0, "", stats.PolicyChange{}), &asked, nil) }
	readOnly, ended, refused := live(), live(), policyTest(120, 36, obeying(2, 0, "", stats.PolicyChange{}), &asked, errors.New("not from none"))
	readOnly.o.ReadOnly = true
	readOnly.mode = keymapMode(&readOnly.o)
	ended.Update(frameMsg{now: testStart, app: App{State: stats.Exited}, hasApp: true})
	unset := newTest((&calls{}).options(), 120, 36, sampleSnapshot())
	for want, d := range map[string]*dashboard{
		"the policy cannot be changed here": readOnly, "its policy can no longer change": ended, "✗ not from none": refused,
		"cannot be changed": unset,
	} {
		press(d, "a", "j", "enter")
		if got := screen(d); len(asked) != 0 || !strings.Contains(got, want) {
			t.Errorf("asked for %q, no %q in\n%s", asked, want, got)
		}
	}
	small := policyTest(40, 10, obeying(2, 0, "", stats.PolicyChange{}), &asked, nil)
	if press(small, "a", "j", "enter"); len(asked) != 0 {
		t.Errorf("asked for %q in a list that has no room", asked)
	}
	attached := attachedTest(120, 36, attachedSnapshot(1), App{Status: -1})
	press(attached, "a")
	shows(t, attached, "no command has the key a; ? shows the keys")
	press(attached, "?", "?")
	hides(t, attached, "a policies", "switches to")
}

package model

import (
	"bytes"
	"slices"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// formerMax bounds how many former policies are kept.
const formerMax = 16

// policyNameMax bounds what a target may call a policy, in bytes.
const policyNameMax = 64

// PolicyChange is what there is to say of changes of the policy.
type PolicyChange struct {
	Former []string // policies that the program had before the present one, oldest first, the last of them at most 16
	Wanted string   // that was asked for and not answered yet; empty: none
	// Refused is the target's word when it said no to the latest change, and Refusals how often it has said no.
	Refused  string
	Refusals uint64
	Done     uint64 // how many changes took place, also those to other limits of the same policy
}

// policies follows the policy of the running program and the changes on their way to it.
type policies struct {
	PolicyChange
	first string // that every process starts with
	sent  uint64 // number of the latest change, while it is pending
	taken uint64 // number of the change that took place last
}

func (p *policies) show() PolicyChange {
	c := p.PolicyChange
	c.Former = slices.Clone(c.Former)
	return c
}

func (p *policies) want(name string, sequence uint64) {
	p.Wanted, p.Refused, p.sent = name, "", sequence
}

// refuse applies the target's no.
func (p *policies) refuse(r *wire.Record) {
	if p.Wanted == "" || r.Object != p.sent {
		return
	}
	p.Wanted, p.Refused = "", Clean(r.Payload)
	p.Refusals++
	if p.Refused == "" {
		p.Refused = "refused"
	}
}

// answer handles LIMIT.
func (m *Model) answer(p *process, r *wire.Record) {
	name, rest, _ := bytes.Cut(bytes.TrimRight(r.Payload, "\x00"), []byte("="))
	switch {
	case r.Status != 0:
		m.policies.refuse(r)
		m.limits.answer(r)
	case string(name) == "policy":
		m.goOver(p, r.Object, rest)
	default:
		m.limits.answer(r)
	}
}

// goOver notes that a process obeys another policy, "name" or "name,limit=value,...". The first that does so decides what
// is shown; its limits begin with what it says and their defaults.
func (m *Model) goOver(p *process, number uint64, text []byte) {
	word, settings, _ := strings.Cut(string(text), ",")
	name := Clean([]byte(word))
	if name == "" || len(name) > policyNameMax {
		return
	}
	p.shown.Policy = name
	c := &m.policies
	if c.Wanted != "" && number >= c.sent {
		c.Wanted, c.Refused = "", ""
	}
	if name == m.options.Policy && number == c.taken {
		return // another process has said so
	}
	if m.options.Policy != name && m.options.Policy != "" {
		if len(c.Former) == formerMax {
			c.Former = slices.Delete(c.Former, 0, 1)
		}
		c.Former = append(c.Former, m.options.Policy)
	}
	m.options.Policy, c.taken = name, number
	c.Done++
	m.limits = limits{}
	if m.options.LimitsOf != nil {
		m.limits = newLimits(m.options.LimitsOf(name))
	}
	for setting := range strings.SplitSeq(settings, ",") {
		limit, value, _ := strings.Cut(setting, "=")
		if i := m.limits.find(limit); i >= 0 && m.limits.list[i].Set(value) {
			m.limits.list[i].Wanted = m.limits.list[i].Value
		}
	}
}

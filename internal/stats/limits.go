package stats

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/callsite"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// LimitKind says what the value of a limit is and how it is written.
type LimitKind = allocator.Kind

// The kinds of limits.
const (
	LimitNumber  = allocator.Number
	LimitCount   = allocator.Count
	LimitBytes   = allocator.Bytes
	LimitSeconds = allocator.Seconds
	LimitSwitch  = allocator.Switch
	LimitChoice  = allocator.Choice
	LimitSizes   = allocator.Sizes
)

// Limit is one allocator limit in the running program.
type Limit struct {
	Name     string
	Kind     LimitKind
	Text     string  // as acknowledged by the target, which takes it in this form
	Value    float64 // the same as a number: the place among Choices, how many Sizes
	Min, Max float64
	Choices  []string // for Switch and Choice
	Zero     string   // what 0 means, "no limit" or "auto"; empty: 0
	Request           // the latest under the present policy
	Wanted   float64  // the value of a Request that is pending; else Value
}

// AnswerTime is how long the target may take to answer a request, in ns.
const AnswerTime = 5_000_000_000

// Request is the latest change of a limit, or of the policy, that was sent to the target, and the target's answer.
type Request struct {
	Sequence            uint64 // its number, under which the target answers; 0: none was sent
	AskedAt, AnsweredAt uint64 // ns; 0: not yet
	Refused             string // why the target refused; empty: it did not
}

// IsPending reports whether the target has still to answer.
func (r *Request) IsPending() bool { return r.Sequence != 0 && r.AnsweredAt == 0 }

// IsUnanswered reports whether the target has had AnswerTime to answer, and has not.
func (r *Request) IsUnanswered(now uint64) bool { return r.IsPending() && now > r.AskedAt+AnswerTime }

// noteAccepted notes that the target obeyed a number: this request's, or that of a later one.
func (r *Request) noteAccepted(sequence, time uint64) {
	if r.IsPending() && sequence >= r.Sequence {
		r.AnsweredAt = time
	}
}

// noteRefused notes the target's no, and reports whether it answers this request.
func (r *Request) noteRefused(no *wire.Record) bool {
	if !r.IsPending() || no.AsLimit().Sequence() != r.Sequence {
		return false
	}
	r.AnsweredAt, r.Refused = no.Time, cmp.Or(callsite.CleanText(no.Payload), "refused")
	return true
}

// LimitOf returns a limit of the allocator as snapshots show it.
func LimitOf(l *allocator.Limit) Limit {
	return Limit{Name: l.Name, Kind: l.Kind, Text: l.Text, Value: l.Value, Min: l.Min, Max: l.Max, Choices: l.Choices, Zero: l.Zero}
}

// PolicyLimits returns the limits of a policy with the values that a recording has by name, and defaults for the others. An unknown
// policy has none.
func PolicyLimits(policy string, values map[string]string) []Limit {
	description, _ := allocator.DescribePolicy(policy)
	var list []Limit
	for i := range description.Limits {
		limit := LimitOf(&description.Limits[i])
		if value, ok := allocator.RecordedLimit(values, limit.Name); ok {
			limit.SetFromText(value)
		}
		list = append(list, limit)
	}
	return list
}

// DefaultLimits returns the limits of a policy with their defaults.
func DefaultLimits(policy string) []Limit { return PolicyLimits(policy, nil) }

// TakesWords reports whether the limit takes words.
func (l *Limit) TakesWords() bool { return l.Kind == LimitSwitch || l.Kind == LimitChoice }

// ParseValue returns what a text means as a Value, false when it means nothing for this limit.
func (l *Limit) ParseValue(text string) (float64, bool) {
	switch {
	case l.TakesWords():
		at := slices.Index(l.Choices, text)
		return float64(at), at >= 0
	case l.Kind == LimitSizes:
		for size := range strings.SplitSeq(text, ":") {
			if _, err := strconv.ParseUint(size, 10, 64); err != nil {
				return 0, false
			}
		}
		return float64(strings.Count(text, ":") + 1), true
	}
	value, err := strconv.ParseFloat(text, 64)
	return value, err == nil && !math.IsNaN(value) && !math.IsInf(value, 0)
}

// TextForTarget writes a Value in the form that the target takes. Sizes cannot be written so: they are the Text.
func (l *Limit) TextForTarget(value float64) string {
	switch {
	case l.Kind == LimitSizes:
		return l.Text
	case l.TakesWords():
		if at := int(value); at >= 0 && at < len(l.Choices) {
			return l.Choices[at]
		}
		return ""
	}
	return strconv.FormatFloat(value, 'f', -1, 64)
}

// SetFromText gives the limit the value that a text means; a text that means nothing is ignored.
func (l *Limit) SetFromText(text string) bool {
	value, ok := l.ParseValue(text)
	if ok {
		l.Text, l.Value = text, value
	}
	return ok
}

// limits follows the limits of the running program and the changes on their way to it.
type limits struct{ list []Limit }

func newLimits(list []Limit) limits {
	l := limits{list: slices.Clone(list)}
	for i := range l.list {
		l.list[i].Wanted = l.list[i].Value
	}
	return l
}

// indexOfLimit returns the place of a limit, -1 when it is not in the list.
func (l *limits) indexOfLimit(name string) int {
	return slices.IndexFunc(l.list, func(x Limit) bool { return x.Name == name })
}

// noteChangeSent notes that a change was sent with a sequence number. A limit that is not in the list, or a value that means
// nothing for it, is ignored.
func (l *limits) noteChangeSent(name, text string, sequence, now uint64) {
	i := l.indexOfLimit(name)
	if i < 0 {
		return
	}
	if value, ok := l.list[i].ParseValue(text); ok {
		l.list[i].Wanted, l.list[i].Request = value, Request{Sequence: sequence, AskedAt: now}
	}
}

// applyAnswer applies the target's word: what it acknowledges holds, and the change is done unless a later one for the
// same limit is still on its way.
func (l *limits) applyAnswer(r *wire.Record) {
	if r.AsLimit().Status() != 0 {
		l.noteRefused(r)
		return
	}
	name, text := wire.ParseLimit(r.Payload)
	i := l.indexOfLimit(string(name))
	if i < 0 || !l.list[i].SetFromText(string(text)) {
		return
	}
	x := &l.list[i]
	x.Refused = ""
	x.noteAccepted(r.AsLimit().Sequence(), r.Time)
	if !x.IsPending() {
		x.Wanted = x.Value
	}
}

func (l *limits) noteRefused(r *wire.Record) {
	for i := range l.list {
		if x := &l.list[i]; x.Request.noteRefused(r) {
			x.Wanted = x.Value
		}
	}
}

// MaxCachedBytes is the limit of cached bytes, of policies that have one.
const MaxCachedBytes = "max_cached_bytes"

// MaxCachedBytes returns how many bytes the policy keeps cached at most in each process: the lowest of max_cached_bytes,
// max_cached_fraction of the device's memory and that memory. It returns false when the policy has no such limit.
func (s *Snapshot) MaxCachedBytes() (uint64, bool) {
	most, known := math.Inf(1), false
	for i := range s.Limits {
		switch l := &s.Limits[i]; {
		case l.Name == MaxCachedBytes:
			most, known = min(most, max(l.Value, 0)), true
		case l.Name == "max_cached_fraction" && s.Device.Global > 0:
			most, known = min(most, max(l.Value, 0)*float64(s.Device.Global)), true
		}
	}
	if most >= math.MaxUint64 {
		return math.MaxUint64, known
	}
	return uint64(most), known
}

// formerMax bounds how many former policies are kept.
const formerMax = 16

// policyNameMax bounds what a target may call a policy, in bytes.
const policyNameMax = 64

// PolicyChange is what there is to say of changes of the policy.
type PolicyChange struct {
	Former []string // policies that the program had before the present one, oldest first, the last of them at most 16
	Done   uint64   // how many changes took place, also those to other limits of the same policy
	Request
	Wanted string // the policy of a Request that is pending; empty: none
}

// policies follows the policy of the running program and the changes on their way to it.
type policies struct {
	PolicyChange
	taken uint64 // number of the change that took place last
}

func (p *policies) changeForSnapshot() PolicyChange {
	c := p.PolicyChange
	c.Former = slices.Clone(c.Former)
	return c
}

func (p *policies) noteChangeSent(name string, sequence, now uint64) {
	p.Wanted, p.Request = name, Request{Sequence: sequence, AskedAt: now}
}

// noteRefused applies the target's no.
func (p *policies) noteRefused(r *wire.Record) {
	if p.Request.noteRefused(r) {
		p.Wanted = ""
	}
}

// handleLimit handles LIMIT.
func (m *Model) handleLimit(p *process, r *wire.Record) {
	name, value := wire.ParseLimit(r.Payload)
	switch {
	case r.AsLimit().Status() != 0:
		m.policies.noteRefused(r)
		m.limits.applyAnswer(r)
	case string(name) == wire.PolicySetting:
		m.switchPolicy(p, r, string(value))
	case string(name) == wire.PlanSetting:
		m.readPlan(p, value)
	case string(name) == wire.RelieveSetting, string(name) == wire.PeriodSetting: // no limits
	default:
		m.limits.applyAnswer(r)
	}
}

// switchPolicy notes that a process obeys another policy, "name" or "name,limit=value,...". The first that does so decides what
// is shown; its limits begin with what it says and their defaults.
func (m *Model) switchPolicy(p *process, r *wire.Record, value string) {
	word, settings := wire.ParsePolicyValue(value)
	name := callsite.CleanText([]byte(word))
	if name == "" || len(name) > policyNameMax {
		return
	}
	p.shown.Policy = name
	c, number := &m.policies, r.AsLimit().Sequence()
	if c.noteAccepted(number, r.Time); !c.IsPending() {
		c.Wanted = ""
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
		if i := m.limits.indexOfLimit(limit); i >= 0 && m.limits.list[i].SetFromText(value) {
			m.limits.list[i].Wanted = m.limits.list[i].Value
		}
	}
}

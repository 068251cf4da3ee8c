package broker

import (
	"fmt"
	"strconv"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// ObeyMessage obeys a message of the session and returns the text that acknowledges it. A refused message changes nothing.
//
//	limit NAME=VALUE               NAME=VALUE
//	trim BYTES                     BYTES                                       keeps them cached
//	relieve BYTES WHY              relieve=BYTES GIVEN WHY                     see wire.Relief
//	period NS                      period=NS                                   of an iteration of the program; 0: unknown
//	policy NAME [LIMIT=VALUE,...]  policy=NAME,LIMIT=VALUE,...
//	plan PIECE                     plan=PIECE                                  of an allocator.Layout
//	arms POLICY [LIMIT=VALUE,...]  arms=POLICY,LIMIT=VALUE,...,request=COUNT   begins an experiment with that alternative
//	arms +LIMIT=VALUE              arms=+LIMIT=VALUE,request=COUNT             changes a limit of the alternative
//	arms                           arms=off,request=COUNT                      ends the experiment
//	arm ARM REQUEST                arm=ARM,request=REQUEST                     from that request on, arm 1 decides, the alternative, or 0
//
// COUNT is how many requests the program has made. A turn may begin with the next one.
func (b *Broker) ObeyMessage(text string, time int64, out []Eviction) (reply string, n Number, _ []Eviction, err error) {
	defer b.endCall(&err)
	if err = b.beginCall(); err != nil {
		return "", 0, out, err
	}
	verb, rest, _ := strings.Cut(text, " ")
	switch verb {
	case "limit":
		reply = rest
		name, number, _ := strings.Cut(rest, "=")
		b.evicted, err = b.policy.SetLimit(name, number, time, b.evicted)
	case "trim":
		reply, err = rest, b.trimPool(rest)
	case wire.RelieveSetting:
		reply, err = b.obeyReliefMessage(rest, time)
	case wire.PeriodSetting:
		reply, err = "period="+rest, b.setIterationTime(rest)
	case "policy":
		reply = "policy=" + strings.Replace(rest, " ", ",", 1)
		err = b.changePolicyOfArm(rest, time, b.policy.SwitchPolicy)
	case "plan":
		reply, err = "plan="+rest, b.addLayoutPiece(rest)
	case "arms":
		reply, err = b.obeyExperimentMessage(rest, time)
	case "arm":
		reply, err = b.obeyTurnMessage(rest)
	default:
		err = fmt.Errorf("unknown control message %q", verb)
	}
	if err != nil {
		return "", 0, b.appendEvictions(out), err
	}
	return reply, b.nextDecisionNumber(), b.appendEvictions(out), nil
}

func (b *Broker) trimPool(bytes string) error {
	keep, err := strconv.ParseUint(bytes, 10, 64)
	if err != nil {
		return fmt.Errorf("trim: %q is no number of bytes", bytes)
	}
	b.evicted = b.policy.Trim(keep, b.evicted)
	return nil
}

// obeyReliefMessage gives blocks back because other programs lack memory, or so that the release of one is timed.
func (b *Broker) obeyReliefMessage(text string, time int64) (reply string, err error) {
	r, ok := wire.ParseReliefValue(text)
	if !ok {
		return "", fmt.Errorf("relieve: %q is no number of bytes with a reason", text)
	}
	b.evicted = b.policy.EvictForOthers(r, time, b.evicted)
	for _, e := range b.evicted {
		r.Given += e.Size
	}
	return r.AnswerText(), nil
}

// setIterationTime gives the pools the time that an iteration takes.
func (b *Broker) setIterationTime(ns string) error {
	period, err := strconv.ParseUint(ns, 10, 63)
	if err != nil {
		return fmt.Errorf("period: %q is no number of ns", ns)
	}
	b.policy.SetIterationTime(int64(period))
	return nil
}

// changePolicyOfArm gives one of the arms a policy.
func (b *Broker) changePolicyOfArm(text string, time int64, to func(*allocator.Pool, int64, []allocator.Eviction) []allocator.Eviction) error {
	name, limits, _ := strings.Cut(text, " ")
	next, err := newPolicy(name, limits)
	if err == nil {
		b.evicted = to(next, time, b.evicted)
	}
	return err
}

func (b *Broker) addLayoutPiece(piece string) error {
	layout, err := b.draft.ReadPiece(piece)
	if err == nil && layout != nil {
		b.evicted, err = b.policy.InstallLayout(*layout, b.evicted)
	}
	return err
}

// obeyExperimentMessage begins or ends an experiment, or changes a limit of its alternative. The reply names the number of
// requests so far, after which turns may begin.
func (b *Broker) obeyExperimentMessage(text string, time int64) (reply string, err error) {
	what := strings.Replace(text, " ", ",", 1)
	switch setting, limit := strings.CutPrefix(text, "+"); {
	case limit:
		name, number, _ := strings.Cut(setting, "=")
		b.evicted, err = b.policy.SetAlternativeLimit(name, number, time, b.evicted)
	case text == "":
		what = "off"
		b.evicted = b.policy.EndExperiment(time, b.evicted)
	default:
		err = b.changePolicyOfArm(text, time, b.policy.BeginExperiment)
	}
	return fmt.Sprintf("arms=%s,request=%d", what, b.policy.RequestCount()), err
}

func (b *Broker) obeyTurnMessage(text string) (reply string, err error) {
	first, second, _ := strings.Cut(text, " ")
	arm, err := strconv.ParseUint(first, 10, 1)
	if err != nil {
		return "", fmt.Errorf("arm: %q is no arm: want 0 or 1", first)
	}
	from, err := strconv.ParseUint(second, 10, 64)
	if err != nil {
		return "", fmt.Errorf("arm: %q is no number of a request", second)
	}
	return fmt.Sprintf("arm=%d,request=%d", arm, from), b.policy.LetArmDecideFrom(int(arm), from)
}

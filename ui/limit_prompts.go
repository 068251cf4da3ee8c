package ui

import (
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
)

// defaultSettings is the name that the settings get by default.
const defaultSettings = "gpumemtop.toml"

// askLimitValue asks for a value of the chosen limit.
func (p *limitsPane) askLimitValue() {
	d := p.d
	name := d.live.Limits[p.chosenIndex(d.live.Limits)].Name
	p.chosen = name
	d.prompt = &prompt{
		label: name + " = ", keys: []word{{"enter", "set it"}, {"esc", "back"}},
		done: func(text string) { p.requestTypedValue(name, text) },
	}
}

// requestTypedValue asks for a value as people write it.
func (p *limitsPane) requestTypedValue(name, text string) {
	d := p.d
	at := p.indexOfLimit(name)
	if text == "" || at < 0 {
		return
	}
	l := &d.live.Limits[at]
	if text == l.Zero {
		text = "0"
	}
	value, err := d.o.ParseLimit(d.live.Policy, name, text)
	if err != nil {
		d.sayMessage(badStyle, "✗ "+err.Error())
		return
	}
	to, ok := l.ParseValue(value)
	switch {
	case !ok:
		d.sayMessage(badStyle, "✗ "+name+" cannot be "+text)
	case l.Kind == stats.LimitSizes:
		d.sayMessage(dim, name+" is "+l.Text+": a list cannot be changed here")
	default:
		p.requestLimitValue(at, to)
	}
}

// indexOfLimit returns the place of a limit, -1 if there is none of that name.
func (p *limitsPane) indexOfLimit(name string) int {
	return slices.IndexFunc(p.d.live.Limits, func(l stats.Limit) bool { return l.Name == name })
}

// whyUnsavable says why policy and limits cannot be saved, empty if they can.
func (p *limitsPane) whyUnsavable() string {
	switch d := p.d; {
	case d.o.Save == nil:
		return "there are no settings to save here"
	case d.live == nil || d.live.Policy == "":
		return "the program has not reported its policy yet"
	}
	return ""
}

// askFileForLimits asks for the file that gets policy and limits.
func (p *limitsPane) askFileForLimits() {
	d := p.d
	d.askPathAndWrite("save policy and limits as: ", defaultSettings, nil, func(path string) (string, error) {
		return "saved: gpumemtop --config " + path + " ./app uses them", d.o.Save(path, d.live.Policy, d.live.Limits)
	})
}

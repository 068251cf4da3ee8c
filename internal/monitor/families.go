package monitor

import (
	"cmp"
	"maps"
	"slices"

	dto "github.com/prometheus/client_model/go"
)

type description struct {
	name, help string
	kind       dto.MetricType
	labels     []string // names
}

// exposition has metrics by name.
type exposition map[string]*dto.MetricFamily

// addValue adds a value with the values of its labels: first those that all metrics have, then its own.
func (e exposition) addValue(of *description, value float64, shared []string, own ...string) {
	family := e[of.name]
	if family == nil {
		family = &dto.MetricFamily{Name: &of.name, Help: &of.help, Type: &of.kind}
		e[of.name] = family
	}
	m := &dto.Metric{Label: make([]*dto.LabelPair, len(of.labels))}
	for i, text := range slices.Concat(shared, own) {
		m.Label[i] = &dto.LabelPair{Name: &of.labels[i], Value: &text}
	}
	slices.SortFunc(m.Label, func(a, b *dto.LabelPair) int { return cmp.Compare(a.GetName(), b.GetName()) })
	if of.kind == dto.MetricType_COUNTER {
		m.Counter = &dto.Counter{Value: &value}
	} else {
		m.Gauge = &dto.Gauge{Value: &value}
	}
	family.Metric = append(family.Metric, m)
}

// sortedFamilies returns families by name, and their values by labels. Prometheus refuses two values with the same labels, so the
// first added value stays.
func (e exposition) sortedFamilies() []*dto.MetricFamily {
	for _, family := range e {
		slices.SortStableFunc(family.Metric, compareByLabels)
		family.Metric = slices.CompactFunc(family.Metric, func(a, b *dto.Metric) bool { return compareByLabels(a, b) == 0 })
	}
	return slices.SortedFunc(maps.Values(e), func(a, b *dto.MetricFamily) int { return cmp.Compare(a.GetName(), b.GetName()) })
}

// compareByLabels orders values of one metric, whose labels have the same names.
func compareByLabels(a, b *dto.Metric) int {
	return slices.CompareFunc(a.Label, b.Label, func(a, b *dto.LabelPair) int { return cmp.Compare(a.GetValue(), b.GetValue()) })
}

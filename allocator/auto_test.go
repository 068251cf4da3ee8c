package allocator

import (
	"slices"
	"testing"
)

// TestAutoBeginsAsItsBase: to whatever makes policies it is the base, with the same limits.
func TestAutoBeginsAsItsBase(t *testing.T) {
	p, err := New(Auto, []Setting{{"max_waste_ratio", "3"}})
	if err != nil || p.PolicyName() != AutoBase {
		t.Fatalf("%v, %v", p, err)
	}
	d, known := DescribePolicy(Auto)
	base, _ := DescribePolicy(AutoBase)
	if !known || d.Name != Auto || d.Summary == base.Summary || !slices.EqualFunc(d.Limits, base.Limits, func(a, b Limit) bool { return a.Name == b.Name && a.Text == b.Text }) {
		t.Errorf("%+v", d)
	}
	if slices.Contains(PolicyNames(), Auto) {
		t.Error("it is among the policies that serve")
	}
}

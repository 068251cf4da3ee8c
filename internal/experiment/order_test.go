package experiment

import "testing"

// TestOrderIsBalanced: quadruples are ABBA or BAAB, equally often, and neither the last one nor the seed shows the next.
func TestOrderIsBalanced(t *testing.T) {
	const quadruples = 4000
	o := NewOrder(5)
	counts, repeats, last := [2]int{}, 0, Arm(0)
	for range quadruples {
		a, b, c, d := o.NextArm(), o.NextArm(), o.NextArm(), o.NextArm()
		if a == b || b != c || a != d || a > 1 || b > 1 {
			t.Fatalf("a quadruple is %v %v %v %v", a, b, c, d)
		}
		counts[a]++
		if a == last {
			repeats++
		}
		last = a
	}
	const least = quadruples/2 - 126 // four standard deviations
	if min(counts[0], counts[1], repeats, quadruples-repeats) < least {
		t.Errorf("%v begin with each arm, %d with that of the last", counts, repeats)
	}
	var firsts [2]int
	for seed := range uint64(quadruples) {
		first, again := NewOrder(seed).NextArm(), NewOrder(seed).NextArm()
		if first != again {
			t.Fatal("equal seeds give other orders")
		}
		firsts[first]++
	}
	if min(firsts[0], firsts[1]) < least {
		t.Errorf("%v of neighbouring seeds begin with each arm", firsts)
	}
}

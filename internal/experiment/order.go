package experiment

import "math/rand/v2"

// Arm is one of the two configurations that are compared.
type Arm uint8

// The arms.
const (
	Present     Arm = iota // the configuration that the run has
	Alternative            // the configuration that the run is compared with
)

// String returns the name of an arm.
func (a Arm) String() string {
	if a == Present {
		return "present"
	}
	return "alternative"
}

// blocksOfQuadruple is how many blocks are drawn at a time: ABBA or BAAB.
const blocksOfQuadruple = 4

// Order draws the order of the arms: quadruples ABBA or BAAB, each with probability ½ and independent of all others. Both
// arms of a quadruple have the same mean time, so that linear drift cancels within it. The draw is what makes the test
// of Trial exact.
type Order struct {
	random *rand.Rand
	first  Arm
	count  int
}

// NewOrder returns an order. Equal seeds give equal orders.
func NewOrder(seed uint64) *Order {
	return &Order{random: rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15))}
}

// NextArm returns the arm of the next block.
func (o *Order) NextArm() Arm {
	place := o.count % blocksOfQuadruple
	o.count++
	if place == 0 {
		o.first = Arm(o.random.Uint64() >> 63)
	}
	if place == 1 || place == 2 {
		return 1 - o.first
	}
	return o.first
}

package measure

// SeenFromAlternative returns the result as seen from the alternative: what it takes beside the present configuration.
func (r *Result) SeenFromAlternative() *Result {
	t := *r
	a := &t.Answer
	a.Present, a.Alternative = a.Alternative, a.Present
	inverse := func(change float64) float64 { return -change / (1 + change) }
	a.Difference, a.Low, a.High = inverse(a.Difference), inverse(a.High), inverse(a.Low)
	return &t
}

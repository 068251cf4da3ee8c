package watch

import "testing"

// TestLessMemoryNamesPoolable: where creates are served by no pool, simulated sizes are without their memory.
func TestLessMemoryNamesPoolable(t *testing.T) {
	for want, n := range map[string][3]uint64{
		"1.00 MiB at its peak instead of 2.00 MiB, simulated":                    {1 << 20, 2 << 20, 0},
		"1.00 MiB of poolable memory at its peak instead of 2.00 MiB, simulated": {1 << 20, 2 << 20, 3},
		"": {2 << 20, 2 << 20, 3},
	} {
		if got := LessMemoryText(n[0], n[1], n[2]); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

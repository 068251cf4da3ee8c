// Package racetest skips tests that the race detector makes too slow.
package racetest

import "testing"

// Slow skips the test under the race detector. It must be the first statement of the test or fuzz target: make test finds such tests in the
// sources (internal/archtest), and runs them without the detector.
func Slow(t testing.TB) {
	t.Helper()
	if enabled {
		t.Skip("too slow under the race detector: make test runs it without")
	}
}

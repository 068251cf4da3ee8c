//go:build !soak

package main

import "time"

// soonest is the least time between two evictions by the mailbox's thread, so that no setting keeps a processor busy.
const soonest = 10 * time.Millisecond

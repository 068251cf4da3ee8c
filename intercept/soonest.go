//go:build !soak

package main

import "time"

// soonest is how soon the mailbox's thread gives blocks back again: no setting keeps a processor busy.
const soonest = 10 * time.Millisecond

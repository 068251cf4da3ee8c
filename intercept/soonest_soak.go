//go:build soak

package main

import "time"

const soonest = time.Millisecond // short, so that it coincides with calls of the program

//go:build soak

package main

import "time"

const soonest = time.Millisecond // so that it meets what the program does

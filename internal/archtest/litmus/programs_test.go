package litmus

// ordered returns the order of a place in the tables.
type ordered func(place string) order

// program is what threads do around a few variables, and what must not come out: a race, or what wrong says of the threads' results.
type program struct {
	initial map[string]int
	threads func(of ordered) []func(*thread) int
	wrong   func(results []int) bool
}

// bad counts the executions that are wrong or have a race, and all.
func (p program) bad(of ordered) (bad, all int) {
	initial := map[string]int{}
	for location, value := range p.initial {
		initial[location] = value
	}
	explore(initial, p.threads(of), func(x *execution) {
		all++
		if x.racy || p.wrong != nil && p.wrong(x.returned) {
			bad++
		}
	})
	return bad, all
}

func isZero(v int) bool { return v == 0 }

// both says that no thread saw what the other one did first.
func both(results []int) bool { return results[0] == 0 && results[1] == 0 }

// locked has two threads change data, one after the other, through two ways in and one out.
func locked(word, in, other, out string) program {
	enter := func(place string) func(of ordered) func(*thread) int {
		return func(of ordered) func(*thread) int {
			return func(t *thread) int {
				t.exchange(word, 1, of(place), isZero)
				was := t.load("data", plain)
				t.store("data", was+1, plain)
				t.exchange(word, 0, of(out), nil)
				return was
			}
		}
	}
	return program{
		initial: map[string]int{word: 0, "data": 0},
		threads: func(of ordered) []func(*thread) int { return []func(*thread) int{enter(in)(of), enter(other)(of)} },
		wrong:   func(results []int) bool { return results[0] == results[1] },
	}
}

// passed has one thread write data and then a word, and another one read them.
func passed(word string, from, to int, write, read string) program {
	return program{
		initial: map[string]int{word: from, "data": 0},
		threads: func(of ordered) []func(*thread) int {
			return []func(*thread) int{
				func(t *thread) int {
					t.store("data", 1, plain)
					t.store(word, to, of(write))
					return 1
				},
				func(t *thread) int {
					if t.load(word, of(read)) != to {
						return 1
					}
					return t.load("data", plain)
				},
			}
		},
		wrong: func(results []int) bool { return results[1] != 1 },
	}
}

// returned has one thread read data and then give back the room for them, and another one write there.
func returned(word, give, look string) program {
	return program{
		initial: map[string]int{word: 0, "data": 1},
		threads: func(of ordered) []func(*thread) int {
			return []func(*thread) int{
				func(t *thread) int {
					got := t.load("data", plain)
					t.store(word, 1, of(give))
					return got
				},
				func(t *thread) int {
					if t.load(word, of(look)) == 1 {
						t.store("data", 2, plain)
					}
					return 0
				},
			}
		},
		wrong: func(results []int) bool { return results[0] != 1 },
	}
}

// crossed has two threads that each announce themselves and then look for the other; add: by an addition instead of a store.
func crossed(word, other string, announce, look, announce2, look2 string, add bool) program {
	side := func(t *thread, mine, its string, announced, looked order, add bool) int {
		if add {
			t.add(mine, 1, announced)
		} else {
			t.store(mine, 1, announced)
		}
		return t.load(its, looked)
	}
	return program{
		initial: map[string]int{word: 0, other: 0},
		threads: func(of ordered) []func(*thread) int {
			return []func(*thread) int{
				func(t *thread) int { return side(t, word, other, of(announce), of(look), false) },
				func(t *thread) int { return side(t, other, word, of(announce2), of(look2), add) },
			}
		},
		wrong: both,
	}
}

var programs = map[string]program{
	"a pair, or an event with payload, is read whole":              passed("head", 0, 1, "publish", "look for events"),
	"a pair of events is read whole":                               passed("head", 0, 1, "publish a pair", "look for events"),
	"a slot is written again once it was read":                     returned("tail", "give room", "look for room"),
	"the next owner of a ring goes on where it ended":              nextOwner,
	"threads share a ring, under a lock":                           locked("shared_lock", "lock", "lock", "unlock"),
	"one thread at a time is in the core":                          locked("state", "enter", "enter after looks", "leave"),
	"who has slept comes after who left":                           slept,
	"a message is read whole":                                      passed("posted", 0, 1, "post", "look for messages"),
	"a message is written where one was read":                      returned("taken", "take", "look for room in the mailbox"),
	"a context's end sees the core's thread, or is seen":           crossed("inside", "stopped", "core begins", "core looks", "stop", "stop looks", true),
	"after the core's thread the driver is left alone":             passed("inside", 1, 0, "core ends", "stop looks"),
	"a line of the clock is read whole":                            line("write its time", "read its time"),
	"a line's rate is its own":                                     line("write its rate", "read its rate"),
	"one thread at a time makes a line":                            locked("making", "make", "make", "made"),
	"the first reading is there once the clock is on":              passed("off", 1, 0, "on", "is it on"),
	"at least the time that lines have reached":                    reached,
	"the core learns that the counter may not be read":             crossed("refused", "core_word", "refuse", "is there a core", "core comes", "is it refused", false),
	"the last pin goes after all uses":                             lastPin("unpin", "unpin a slab"),
	"the last pin of a slab goes after all uses":                   lastPin("unpin a slab", "unpin"),
	"who finds one pin is alone":                                   onlyPin,
	"one thread claims a block":                                    claim,
	"the end of pooling finds a block, or is seen by who pools it": crossed("pooled", "ended", "pool", "recheck", "end pooling", "look for pooled", true),
}

// simple is a program without rows, all whose accesses have one order.
func simple(initial map[string]int, wrong func([]int) bool, codes ...func(t *thread, o order) int) program {
	return program{initial: initial, wrong: wrong, threads: func(of ordered) (threads []func(*thread) int) {
		for _, code := range codes {
			threads = append(threads, func(t *thread) int { return code(t, of("")) })
		}
		return threads
	}}
}

// nextOwner: the next owner of a ring reads what the former one wrote without an order.
var nextOwner = program{
	initial: map[string]int{"owner": 1, "waits": 0},
	threads: func(of ordered) []func(*thread) int {
		return []func(*thread) int{
			func(t *thread) int {
				t.store("waits", 1, plain)
				t.store("owner", 0, of("thread ends"))
				return 1
			},
			func(t *thread) int {
				t.exchange("owner", 2, of("claim a ring"), isZero)
				return t.load("waits", plain)
			},
		}
	},
	wrong: func(results []int) bool { return results[1] != 1 },
}

// slept: the gate is 1 while it is taken, and 2 if others may sleep.
var slept = program{
	initial: map[string]int{"state": 0, "data": 0},
	threads: func(of ordered) []func(*thread) int {
		inside := func(t *thread) int {
			was := t.load("data", plain)
			t.store("data", was+1, plain)
			t.exchange("state", 0, of("leave"), nil)
			return was
		}
		return []func(*thread) int{
			func(t *thread) int {
				t.exchange("state", 1, of("enter"), isZero)
				return inside(t)
			},
			func(t *thread) int {
				if t.exchange("state", 2, of("enter after a sleep"), nil) != 0 {
					t.exchange("state", 2, of("enter after a sleep"), isZero)
				}
				return inside(t)
			},
		}
	},
	wrong: func(results []int) bool { return results[0] == results[1] },
}

// line has a line of the clock overwritten while a thread reads it: its counter and its time or rate. There is room for two lines
// here. A reader may use the newest one until the next has been made.
func line(write, read string) program {
	return program{
		initial: map[string]int{"newest": 1, "counter0": 0, "counter1": 1, "part0": 0, "part1": 1},
		threads: func(of ordered) []func(*thread) int {
			return []func(*thread) int{
				func(t *thread) int {
					t.store("counter0", 2, of("write a line"))
					t.store("part0", 2, of(write))
					t.store("newest", 2, of("show a line"))
					t.store("counter1", 3, of("write a line"))
					t.store("part1", 3, of(write))
					t.store("newest", 3, of("show a line"))
					return 0
				},
				func(t *thread) int {
					number := t.load("newest", of("newest line"))
					slot := string(rune('0' + number%2))
					counter, part := t.load("counter"+slot, of("read a line")), t.load("part"+slot, of(read))
					if t.load("newest", of("is it whole")) != number || counter == number && part == number {
						return 0
					}
					return 1
				},
			}
		},
		wrong: func(results []int) bool { return results[1] == 1 },
	}
}

// reached: the clock ends, and a thread that sees no line must see the time that lines had reached.
var reached = program{
	initial: map[string]int{"newest": 1, "reached": 0},
	threads: func(of ordered) []func(*thread) int {
		return []func(*thread) int{
			func(t *thread) int {
				t.store("reached", 1, of("lines reached"))
				t.store("newest", 0, of("stop"))
				return 0
			},
			func(t *thread) int {
				if t.load("newest", of("is there a line")) == 0 && t.load("reached", of("how far")) == 0 {
					return 1
				}
				return 0
			},
		}
	},
	wrong: func(results []int) bool { return results[1] == 1 },
}

// lastPin has two threads use memory; the thread that takes the last pin ends it.
func lastPin(place, other string) program {
	side := func(t *thread, mine, its string, o order) int {
		t.store(mine, 1, plain)
		if t.add("pins", -1, o) == 1 {
			return t.load(its, plain)
		}
		return 1
	}
	return program{
		initial: map[string]int{"pins": 2, "one": 0, "two": 0},
		threads: func(of ordered) []func(*thread) int {
			return []func(*thread) int{
				func(t *thread) int { return side(t, "one", "two", of(place)) },
				func(t *thread) int { return side(t, "two", "one", of(other)) },
			}
		},
		wrong: func(results []int) bool { return results[0] != 1 || results[1] != 1 },
	}
}

var onlyPin = program{
	initial: map[string]int{"pins": 2, "data": 0},
	threads: func(of ordered) []func(*thread) int {
		return []func(*thread) int{
			func(t *thread) int {
				t.store("data", 1, plain)
				t.add("pins", -1, of("unpin"))
				return 1
			},
			func(t *thread) int {
				if t.load("pins", of("only pin")) != 1 {
					return 1
				}
				return t.load("data", plain)
			},
		}
	},
	wrong: func(results []int) bool { return results[1] != 1 },
}

var claim = program{
	initial: map[string]int{"pooled": 0, "entry": 0},
	threads: func(of ordered) []func(*thread) int {
		claimer := func(t *thread) int {
			if t.exchange("pooled", 0, of("claim"), nil) == 0 {
				return 0
			}
			t.store("entry", t.load("entry", plain)+1, plain)
			return 1
		}
		return []func(*thread) int{
			func(t *thread) int {
				t.store("entry", 1, plain)
				t.store("pooled", 1, of("pool"))
				return 0
			},
			claimer, claimer,
		}
	},
	wrong: func(results []int) bool { return results[1]+results[2] == 2 },
}

var storeBuffering = simple(map[string]int{"x": 0, "y": 0}, both,
	func(t *thread, o order) int { t.store("x", 1, o); return t.load("y", o) },
	func(t *thread, o order) int { t.store("y", 1, o); return t.load("x", o) })

var loadBuffering = simple(map[string]int{"x": 0, "y": 0}, func(r []int) bool { return r[0] == 1 && r[1] == 1 },
	func(t *thread, o order) int { r := t.load("x", o); t.store("y", 1, o); return r },
	func(t *thread, o order) int { r := t.load("y", o); t.store("x", 1, o); return r })

var messagePassing = simple(map[string]int{"x": 0, "y": 0}, func(r []int) bool { return r[1] == 1 },
	func(t *thread, o order) int { t.store("x", 1, o); t.store("y", 1, o); return 0 },
	func(t *thread, o order) int { return t.load("y", o) - t.load("x", o) })

var readsInOrder = simple(map[string]int{"x": 0}, func(r []int) bool { return r[1] == 1 },
	func(t *thread, o order) int { t.store("x", 1, o); return 0 },
	func(t *thread, o order) int { first := t.load("x", o); return first - t.load("x", o) })

var independentReads = simple(map[string]int{"x": 0, "y": 0}, func(r []int) bool { return r[2] == 1 && r[3] == 1 },
	func(t *thread, o order) int { t.store("x", 1, o); return 0 },
	func(t *thread, o order) int { t.store("y", 1, o); return 0 },
	func(t *thread, o order) int { return t.load("x", o) - t.load("y", o) },
	func(t *thread, o order) int { return t.load("y", o) - t.load("x", o) })

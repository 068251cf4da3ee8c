package tracer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/tracer/target"
)

const (
	// askPatience bounds how long drivers may take to say where their extension functions lie: some compile at first use.
	askPatience = 20 * time.Second
	// questionsMax bounds how many files are asked about.
	questionsMax = 16
	// givenMax bounds how many addresses of extension functions are taken from one process.
	givenMax = 256
)

// vendors asks drivers where those of their extension functions lie that have no symbol. The answer comes later.
type vendors struct {
	asked   map[target.Identity]bool // libraries that a question was about
	answers chan answer
	context context.Context //nolint:containedctx // of the questions under way, which end ends
	cancel  context.CancelFunc
	running sync.WaitGroup
}

// answer is what the drivers say about a library, and what is wrong with the rest.
type answer struct {
	list []target.Extension
	err  error
}

func newVendors() *vendors {
	ctx, cancel := context.WithCancel(context.Background())
	return &vendors{asked: map[target.Identity]bool{}, answers: make(chan answer, questionsMax), context: ctx, cancel: cancel}
}

// end ends the questions under way, and waits for those who ask.
func (v *vendors) end() {
	v.cancel()
	v.running.Wait()
}

// ask asks about what a library hides, once.
func (t *Tracer) ask(library *target.Library) {
	v, id := t.vendors, library.Identity
	if len(library.Missing) == 0 || t.options.Ask == nil || v.asked[id] || len(v.asked) == questionsMax || t.detached {
		return
	}
	v.asked[id] = true
	v.running.Go(func() {
		ctx, cancel := context.WithTimeout(v.context, askPatience)
		defer cancel()
		list, err := target.AskVendors(ctx, t.options.Ask, library.Missing)
		v.answers <- answer{list, err} // there is room for all
	})
}

// learn probes what drivers have told meanwhile, in all processes that have it mapped.
func (t *Tracer) learn() {
	select {
	case told := <-t.vendors.answers:
		if told.err != nil {
			t.warn(fmt.Errorf("extension functions are not seen until a program asks for them: %w", told.err))
		}
		if len(told.list) == 0 {
			return
		}
		t.catalog.Learn(told.list)
		for _, p := range t.processes {
			t.look(p.target)
		}
		for _, h := range t.hopes {
			if h.seen != nil {
				t.look(h.seen.target)
			}
		}
	default:
	}
}

// extension notes the address of an extension function that a process was given just now: mostly it asks for others, too.
func (t *Tracer) extension(p *process, name string, address uint64) {
	if _, known := t.links.numbers[name]; !known || p.asked[address] || len(p.asked) == givenMax {
		return
	}
	if p.asked == nil {
		p.asked = map[uint64]bool{}
	}
	p.asked[address] = true
	found, err := p.target.Locate(name, address)
	switch {
	case errors.Is(err, target.ErrGone):
		return // nothing will be called
	case err != nil:
		t.warn(fmt.Errorf("calls of %s are not seen: %w", name, err))
		return
	}
	p.given = append(p.given, found)
	t.changed[p.target.PID] = true
}

// give probes the extension functions that a process was given, in that process alone.
func (t *Tracer) give(p *process) {
	if len(p.given) == 0 {
		return
	}
	if err := t.links.probeOnly(p.given, p.target.PID); err != nil {
		t.warn(fmt.Errorf("calls of extension functions are not seen: %w", err))
	}
	p.given = nil
}

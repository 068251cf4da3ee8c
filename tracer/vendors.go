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
	// queryTimeout bounds a query: some drivers compile at first use.
	queryTimeout = 20 * time.Second
	// queriesMax bounds how many libraries we query.
	queriesMax = 16
	// receivedMax bounds how many addresses of extension functions we take from one process.
	receivedMax = 256
)

// vendors queries drivers, in the background, for extension functions that have no symbol.
type vendors struct {
	queried map[target.Identity]bool // libraries
	answers chan answer
	context context.Context //nolint:containedctx // of the running queries; close cancels it
	cancel  context.CancelFunc
	running sync.WaitGroup
}

// answer holds the functions that a driver returned before the error, if there is one.
type answer struct {
	list []target.Extension
	err  error
}

func newVendors() *vendors {
	ctx, cancel := context.WithCancel(context.Background())
	return &vendors{queried: map[target.Identity]bool{}, answers: make(chan answer, queriesMax), context: ctx, cancel: cancel}
}

// close cancels the running queries and waits for them.
func (v *vendors) close() {
	v.cancel()
	v.running.Wait()
}

// queryDriversOfLibrary starts a query for the extension functions of a library that have no symbol, once.
func (t *Tracer) queryDriversOfLibrary(library *target.Library) {
	v, id := t.vendors, library.Identity
	if len(library.Missing) == 0 || t.options.Ask == nil || v.queried[id] || len(v.queried) == queriesMax || t.detached != 0 {
		return
	}
	v.queried[id] = true
	v.running.Go(func() {
		ctx, cancel := context.WithTimeout(v.context, queryTimeout)
		defer cancel()
		list, err := target.QueryDrivers(ctx, t.options.Ask, library.Missing)
		v.answers <- answer{list, err} // never blocks
	})
}

// probeQueriedExtensions probes the functions that drivers have returned, in all processes that have them mapped.
func (t *Tracer) probeQueriedExtensions() {
	select {
	case a := <-t.vendors.answers:
		if a.err != nil {
			t.warnOnce(fmt.Errorf("calls of extension functions are not recorded until a program asks for their addresses: %w", a.err))
		}
		if len(a.list) == 0 {
			return
		}
		t.catalog.LearnExtensions(a.list)
		for p := range t.table.eachInStateOrLater(inspected) {
			t.attachLibraries(p.target)
		}
	default:
	}
}

// noteExtensionReceived notes the address of an extension function that a process has just received. Most ask for several,
// so they are probed together after this batch of calls.
func (t *Tracer) noteExtensionReceived(p *process, name string, address uint64) {
	if _, known := t.probes.numbers[name]; !known || p.extensions[address] || len(p.extensions) == receivedMax {
		return
	}
	if p.extensions == nil {
		p.extensions = map[uint64]bool{}
	}
	p.extensions[address] = true
	found, err := p.target.LocateFunction(name, address)
	switch {
	case errors.Is(err, target.ErrGone):
		return // it makes no more calls
	case err != nil:
		t.warnOnce(fmt.Errorf("calls of %s are not recorded: %w", name, err))
		return
	}
	p.pendingExtensions = append(p.pendingExtensions, found)
	t.remapped[p.pid] = true
}

// probeReceivedExtensions probes the extension functions that a process has received, in that process alone.
func (t *Tracer) probeReceivedExtensions(p *process) {
	if len(p.pendingExtensions) == 0 {
		return
	}
	if err := t.probes.attachExtensions(p.pendingExtensions, p.pid); err != nil {
		t.warnOnce(fmt.Errorf("calls of extension functions are not recorded: %w", err))
	}
	p.pendingExtensions = nil
}

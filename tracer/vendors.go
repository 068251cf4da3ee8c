package tracer

import (
	"context"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/tracer/target"
)

// askPatience bounds how long drivers may take to say where their extension functions lie: some compile at first use.
const askPatience = 20 * time.Second

// vendors asks drivers where those of their extension functions lie that have no symbol. The answer comes later.
type vendors struct {
	asked   map[uint64]bool // inodes of libraries that a question was about
	answers chan []target.Extension
	context context.Context //nolint:containedctx // of the questions under way, which Close ends
	close   context.CancelFunc
}

func newVendors() vendors {
	ctx, cancel := context.WithCancel(context.Background())
	return vendors{asked: map[uint64]bool{}, answers: make(chan []target.Extension, 16), context: ctx, close: cancel}
}

// ask asks about what a library hides, once.
func (t *Tracer) ask(library *target.Library) {
	if len(library.Missing) == 0 || t.options.Ask == nil || t.vendors.asked[library.Inode] || len(t.vendors.asked) == cap(t.vendors.answers) {
		return
	}
	t.vendors.asked[library.Inode] = true
	go func() {
		ctx, cancel := context.WithTimeout(t.vendors.context, askPatience)
		defer cancel()
		list, _ := target.AskVendors(ctx, t.options.Ask, library.Missing) // what a driver does not say cannot be seen
		t.vendors.answers <- list
	}()
}

// learn probes what drivers have told meanwhile.
func (t *Tracer) learn() {
	select {
	case list := <-t.vendors.answers:
		t.know(list)
	default:
	}
}

// know probes extension functions that were found, in all processes that have them mapped.
func (t *Tracer) know(list []target.Extension) {
	if len(list) == 0 {
		return
	}
	t.catalog.Learn(list)
	for _, p := range t.processes {
		t.look(p.target)
	}
}

// extension probes an extension function that a process was just given the address of.
func (t *Tracer) extension(p *process, name string, address uint64) {
	if _, known := t.links.numbers[name]; !known || address == 0 {
		return
	}
	if found, err := p.target.Locate(name, address); err == nil {
		t.know([]target.Extension{found})
	}
}

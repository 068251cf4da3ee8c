package main

import "fmt"

// outgrowing are programs whose pools used to keep memory that the programs no longer needed, and a program that needs all of it.
var outgrowing = [][]string{
	{"outgrows", "scratch", "16", "16M"},
	{"outgrows", "vector", "14", "4M"},
	{"outgrows", "phases", "16", "8M"},
	{"outgrows", "sweep", "16", "4M"},
	{"pipeline", "60", "1M"},
}

// proportion runs programs under futhark without its limits of unneeded memory, with them, under slab and under arena, in turns.
func (b *bench) proportion() error {
	modes := []mode{
		bare, {name: "futhark, all kept", policy: "futhark", flags: []string{"--set", "proportion=0,outgrown=off,max_age=0"}},
		{name: "futhark", policy: "futhark"}, {name: "slab", policy: "slab"}, {name: "arena", policy: "arena"},
	}
	b.row("program", "policy", "wall ×", "hits", "in use", "reserved", "reserved / in use")
	for _, workload := range outgrowing {
		path := b.example(workload[0])
		if workload[0] == "outgrows" {
			path = b.testProgram(workload[0])
		}
		results := make([][]result, len(modes))
		for range b.runs {
			for i, m := range modes {
				r, err := b.once(m, append([]string{path}, workload[1:]...)...)
				if err != nil {
					return err
				}
				results[i] = append(results[i], r)
			}
		}
		name := workload[0]
		if name == "outgrows" {
			name = workload[1]
		}
		for i, m := range modes {
			b.row(append([]any{name, m.name}, held(results[i], results[0])...)...)
		}
	}
	b.flush()
	fmt.Println("\nBytes are the most at one time, in MiB.")
	return nil
}

// held returns the cells of one mode.
func held(here, bare []result) []any {
	if here[0].sum.Policy == "" {
		return []any{fixed(median(bare, wallSeconds), 2) + " s", "", "", "", ""}
	}
	inUse, reserved := median(here, func(r *result) float64 { return r.sum.PeakInUse }), median(here, peakReserved)
	return []any{
		times(median(here, wallSeconds), median(bare, wallSeconds)), percent(median(here, func(r *result) float64 { return r.sum.HitRate })),
		fixed(inUse/(1<<20), 1), fixed(reserved/(1<<20), 1), fixed(reserved/inUse, 2),
	}
}

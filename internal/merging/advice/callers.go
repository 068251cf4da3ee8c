package advice

// mostCallers is how far up a stack is looked for what tells call sites apart.
const mostCallers = 8

// tellApart names call sites that are one place in the program, but reached in several ways, by that place and the first
// caller that differs: a function that makes all buffers of a program would be one site otherwise. All runs of a program
// are looked at together, so that names are the same in each.
func tellApart(runs []Run) {
	for depth := range mostCallers {
		callers := map[string]string{}
		differ := map[string]bool{}
		each(runs, depth, func(_ *Run, _ uint32, name, caller string) {
			if other, seen := callers[name]; seen && other != caller {
				differ[name] = true
			}
			callers[name] = caller
		})
		each(runs, depth, func(r *Run, site uint32, name, caller string) {
			if differ[name] {
				if caller != "" {
					r.Program.Names[site] = name + " via " + caller
				}
				delete(r.Callers, site) // once is enough
			}
		})
	}
}

// each calls visit for the call sites of all runs whose callers are known, and their callers at a depth, empty beyond the last.
func each(runs []Run, depth int, visit func(r *Run, site uint32, name, caller string)) {
	for i := range runs {
		for site, callers := range runs[i].Callers {
			caller := ""
			if depth < len(callers) {
				caller = callers[depth]
			}
			visit(&runs[i], site, runs[i].Program.Names[site], caller)
		}
	}
}

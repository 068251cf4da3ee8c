package allocator

// Auto names the policy that starts as AutoBase and switches to what an experiment in the program shows to be better. The session
// decides when (internal/whatif/auto); New returns AutoBase for it. It is not among PolicyNames, because it serves no requests
// itself.
const Auto = "auto"

// AutoBase is the policy that Auto starts with: it suits most programs.
const AutoBase = "futhark"

// autoDescription describes Auto; its limits are those of AutoBase.
var autoDescription = Description{
	Name:   Auto,
	Source: "gpumemtop's own",
	Summary: "Starts as " + AutoBase + " and tries other configurations on parts of the run: no pool, and policies that would have cut driver time by 10 % " +
		"or more in a simulation beside the run, with the limits that were set and at most 25 % more memory. Switches to one only if the interval of the " +
		"measured difference says that it is faster, or as fast with a quarter less memory. Each trial makes the next one rarer. Only for programs that gpumemtop runs.",
}

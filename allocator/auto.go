package allocator

// Auto names the policy that starts as AutoBase and switches to policies that would have done clearly better. The session
// decides when (internal/whatif/auto); New returns AutoBase for it. It is not among Names, because it serves no requests
// itself.
const Auto = "auto"

// AutoBase is the policy that Auto starts with: it suits most programs.
const AutoBase = "futhark"

// autoDescription describes Auto; its limits are those of AutoBase.
var autoDescription = Description{
	Name:   Auto,
	Source: "gpumemtop's own",
	Summary: "Starts as " + AutoBase + " and simulates the other policies beside the run, with the limits that were set. Switches to one that would have " +
		"cut driver time by 10 % or more for several windows in a row, by enough to matter, using at most 25 % more memory, and back to " +
		AutoBase + " when the program gets slower. Each switch makes the next one harder. Only for programs that gpumemtop runs.",
}

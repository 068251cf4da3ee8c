package allocator

// Auto is the policy of a program that begins under AutoBase and then goes over to what suits it. Whoever runs the program
// decides that, see internal/lab/auto: for New it is AutoBase. It is not among Names, since it serves nothing by itself.
const Auto = "auto"

// AutoBase is the policy that Auto begins with: it suits programs that nobody knows.
const AutoBase = "futhark"

// autoDescription is what Auto is, but for the limits, which are those that it begins with.
var autoDescription = Description{
	Name:   Auto,
	Source: "gpumemtop's own",
	Summary: "Begins as " + AutoBase + ". Beside the run others are simulated, with the limits that were set as far as they have them; what would have " +
		"spent a tenth less time in the driver for some windows on end, and time that counts, with at most a quarter more memory, takes " +
		"its place, and " + AutoBase + " comes back when the program really gets slower. Each change makes the next one harder. For programs that are run.",
}

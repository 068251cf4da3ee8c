/*
 * kernel.pml: what a count of references says of a kernel's argument under --spill (shim/spill/kernel.c).
 *
 * A kernel that gets a real object as an argument may retain it. A command that uses the object ends at any moment, and another one
 * begins.
 *
 * Claim: a kernel that keeps its argument is not taken for one that does not.
 *
 * Fault: 1 the count is compared with the one from before.
 */
#define FAULTS 1
#ifdef LARGE
#define COMMANDS 3
#else
#define COMMANDS 1
#endif

byte references = 1 + COMMANDS; /* of a real object: ours and each command's */

/* hand_real_object: clSetKernelArg, real_references */
active proctype setter()
{
	byte before = references;
	references++; /* the kernel's */
#if FAULT == 1
	assert(references > before)
#else
	assert(references > 1)
#endif
}

/* The end of a command, which drops the driver's reference: no code of ours. */
active [COMMANDS] proctype command()
{
	references--
}

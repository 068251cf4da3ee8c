// Package tracer watches programs that were not started by gpumemtop: an eBPF program tells of their OpenCL calls, and
// the tracer makes of these the events that the preload library writes with no pool.
//
// Data goes one way: package kernel tells of calls as they were, in an order in which nothing comes before what caused
// it; package target says which process that was and what lies in its files; package calls says what a call means;
// package stack where it came from. The targets are neither stopped nor changed: what is put into them are breakpoints
// that the kernel owns, and takes away with the last descriptor, whatever becomes of us.
package tracer

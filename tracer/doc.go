// Package tracer watches programs that gpumemtop did not start. An eBPF program reports their OpenCL calls, and the
// tracer turns these into the events that the preload library writes under the policy none.
//
// Data flows one way. Package kernel delivers the calls in an order in which causes precede effects. Package target
// identifies the process and finds OpenCL functions in its files. Package stack finds the call site, and package calls
// turns calls into events. The tracer never stops or changes a target: it only sets breakpoints, which the kernel owns
// and removes with our last descriptor, however we end.
//
// A library that is loaded later must be probed before its first call. The linkers of glibc and musl call the empty function
// _dl_debug_state after mapping anything, before its code runs. Calls within the millisecond that probing takes are missed.
package tracer

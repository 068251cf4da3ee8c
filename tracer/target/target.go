// Package target finds the processes that use OpenCL, the libraries that they have really mapped, and where the
// functions lie in those files. Everything comes from /proc and from the files themselves; nothing in a process is
// stopped or changed.
package target

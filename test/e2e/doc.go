// Package e2e holds the end-to-end tests: real programs on a real OpenCL runtime under the real gpumemtop. They need
// what make builds, and the Debian packages that the Makefile lists.
package e2e

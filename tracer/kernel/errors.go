package kernel

import (
	"errors"
	"fmt"
	"os"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

var (
	// ErrUnsupported is in errors whose reason is that this kernel lacks something.
	ErrUnsupported = errors.New("this kernel cannot do it")
	// ErrPermission is in errors whose reason is that the kernel does not let this process do it.
	ErrPermission = errors.New("the kernel does not permit it")
	// ErrGone is in errors of Attach whose reason is that there is no such process, or no such file, or not any more.
	ErrGone = errors.New("it is not there (any more)")
)

// ProbeError says which function could not be probed.
type ProbeError struct {
	File     string
	Function uint16
	Offset   uint64 // in the file
	Err      error
}

// Error implements error.
func (e *ProbeError) Error() string {
	return fmt.Sprintf("probe function %d at offset %#x of %s: %v", e.Function, e.Offset, e.File, e.Err)
}

// Unwrap implements errors.Unwrap.
func (e *ProbeError) Unwrap() error { return e.Err }

// explain adds what was done and which of these reasons it failed for. EACCES is the word of the verifier for a program
// it does not accept, and of others for a lack of rights.
func explain(doing string, err error) error {
	var rejected *ebpf.VerifierError
	switch {
	case errors.Is(err, unix.EPERM):
		return fmt.Errorf("%s: %w: %w", doing, ErrPermission, err)
	case errors.As(err, &rejected):
		return fmt.Errorf("%s: %w: %w", doing, ErrUnsupported, err)
	case errors.Is(err, unix.EACCES):
		return fmt.Errorf("%s: %w: %w", doing, ErrPermission, err)
	case errors.Is(err, ebpf.ErrNotSupported), errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EOPNOTSUPP):
		return fmt.Errorf("%s: %w: %w", doing, ErrUnsupported, err)
	case gone(err):
		return fmt.Errorf("%s: %w: %w", doing, ErrGone, err)
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// gone reports whether an error says that a process or a file is not there. Of a process, the kernel says ESRCH; the ebpf
// package makes ErrNotExist of that for multi links.
func gone(err error) bool { return errors.Is(err, unix.ESRCH) || errors.Is(err, os.ErrNotExist) }

package kernel

import (
	"errors"
	"fmt"
	"os"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

var (
	// ErrUnsupported is wrapped by errors whose reason is that this kernel lacks a feature.
	ErrUnsupported = errors.New("this kernel does not support it")
	// ErrPermission is wrapped by errors whose reason is that the kernel denies this process a right.
	ErrPermission = errors.New("the kernel does not permit it")
	// ErrGone is wrapped by errors of Attach whose reason is that the process or the file is gone.
	ErrGone = errors.New("it is gone")
)

// ProbeError names the function that could not be probed.
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

// explainKernelError adds what failed and for which of these reasons. EACCES means a program that the verifier rejects, or a missing
// right.
func explainKernelError(doing string, err error) error {
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
	case isGone(err):
		return fmt.Errorf("%s: %w: %w", doing, ErrGone, err)
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// isGone reports whether an error says that a process or file does not exist. For a process the kernel returns ESRCH, which
// the ebpf package turns into ErrNotExist for multi links.
func isGone(err error) bool { return errors.Is(err, unix.ESRCH) || errors.Is(err, os.ErrNotExist) }

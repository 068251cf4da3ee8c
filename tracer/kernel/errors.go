package kernel

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

var (
	// ErrUnsupported is in errors whose reason is that this kernel lacks something.
	ErrUnsupported = errors.New("this kernel cannot do it")
	// ErrPermission is in errors whose reason is that the kernel does not let this process do it.
	ErrPermission = errors.New("the kernel does not permit it")
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

// explain adds what was done and which of the two reasons it failed for. EACCES is the word of the verifier for a program
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
	}
	return fmt.Errorf("%s: %w", doing, err)
}

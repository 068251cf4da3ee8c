package rights

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// ExplainError adds to an error of attach which right, kernel feature or memory is missing, and what to do. It returns other
// errors, and those that say so already, unchanged. The result wraps the error.
func ExplainError(err error) error {
	if errors.Is(err, unix.ENOMEM) { // the kernel charges maps to our control group
		return fmt.Errorf("attach needs some 80 MiB of memory in the kernel: raise the limit of this container or service: %w", err)
	}
	if !isRightMissing(err) && !isUnsupported(err) {
		return err
	}
	return ExamineThisSystem().explainError(err)
}

// isRightMissing reports whether a right is missing. A program that the verifier rejects fails with EACCES, too.
func isRightMissing(err error) bool {
	var rejected *ebpf.VerifierError
	if err == nil || errors.As(err, &rejected) || strings.Contains(err.Error(), "CAP_") {
		return false
	}
	return errors.Is(err, fs.ErrPermission)
}

func isUnsupported(err error) bool {
	return errors.Is(err, ebpf.ErrNotSupported) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EOPNOTSUPP)
}

func (r *Report) explainError(err error) error {
	if refusal := r.RefusalError(); refusal != nil {
		return fmt.Errorf("%w: %w", refusal, err)
	}
	if !isRightMissing(err) {
		return fmt.Errorf("this kernel (Linux %s) lacks a feature: %w", r.Kernel, err)
	}
	var missing string
	var path *fs.PathError
	switch {
	case errors.As(err, &path) && strings.Contains(path.Path, "/map_files"):
		missing = FeatureRestore
	case errors.As(err, &path) && strings.HasPrefix(path.Path, "/proc/"):
		missing = FeaturePtrace
	case !r.Multi:
		missing = admin
	}
	if missing == "" || r.system.heldCapabilities().hasCapability(bits[missing]) {
		return fmt.Errorf("refused although the capabilities are held, by the file's permissions, a seccomp filter or a security module: %w", err)
	}
	return fmt.Errorf("%s is missing: %s: %w", missing, r.system.howToGrantText(append(r.leastCapabilities(), missing)...), err)
}

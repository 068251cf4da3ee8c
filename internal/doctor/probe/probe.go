// Package probe asks this machine's drivers in a process of its own, which carries the preload library's probe
// (shim/entry/probe.c): a driver that crashes or hangs takes nothing else with it.
package probe

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"codeberg.org/gpumemtop/gpumemtop/internal/session"
	"codeberg.org/gpumemtop/gpumemtop/internal/session/payload"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// carriers are programs that do nothing; the first that is there carries the probe.
var carriers = []string{"/bin/true", "/usr/bin/true", "/bin/sh"}

// niceness is what this process was started at: it may be more urgent by now, and drivers shall not be.
var niceness = currentNiceness()

// currentNiceness returns that of the calling thread, -20 to 19.
func currentNiceness() int {
	value, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	if err != nil {
		return 0
	}
	return 20 - value // what the system call itself returns is 1 to 40
}

// RunWithPreload writes the preload library to where it can be loaded, and runs a program with it and with environment. The variable
// wire.ProbeEnv says which question the probe answers. Run returns what the probe wrote, even with an error: the process was
// killed, crashed or, when ctx is done, hung; the error is ctx's cause then. Any goroutine may call it.
func RunWithPreload(ctx context.Context, environment []string) ([]byte, error) {
	shim, err := payload.OpenShim()
	if err != nil {
		return nil, err
	}
	library, err := io.ReadAll(shim)
	if err != nil {
		return nil, fmt.Errorf("read the embedded library: %w", err)
	}
	place, err := session.FirstFolderPlace()
	if err != nil {
		return nil, err
	}
	// Named as a session's folder is, so that the next session removes it should we be killed.
	dir, err := os.MkdirTemp(place, fmt.Sprintf("gpumemtop-%d-probe-", os.Getpid()))
	if err != nil {
		return nil, fmt.Errorf("make a folder: %w", err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, wire.ShimName)
	if err := os.WriteFile(path, library, 0o600); err != nil {
		return nil, fmt.Errorf("write the preload library: %w", err)
	}
	return runFirstCarrier(ctx, carriers, append(environment, "LD_PRELOAD="+path))
}

// runFirstCarrier runs the first of the carriers that is there and returns what it wrote.
func runFirstCarrier(ctx context.Context, carriers, environment []string) ([]byte, error) {
	carrier := ""
	for _, path := range carriers {
		if _, err := os.Stat(path); err == nil && session.PreloadObstacle(path) == "" {
			carrier = path
			break
		}
	}
	if carrier == "" {
		return nil, fmt.Errorf("none of %s is there and dynamically linked", strings.Join(carriers, ", "))
	}
	cmd := exec.CommandContext(ctx, carrier)
	cmd.Env = append(EnvironmentWithoutPreloads(os.Environ()), environment...)
	cmd.SysProcAttr = &unix.SysProcAttr{Setpgid: true, Pdeathsig: unix.SIGKILL}
	// Whatever it started goes with it, and cannot hold the pipe open.
	cmd.Cancel = func() error { return unix.Kill(-cmd.Process.Pid, unix.SIGKILL) }
	cmd.WaitDelay = time.Second
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Start()
	if err == nil {
		// All its threads, and what it has started; it may be gone.
		_ = unix.Setpriority(unix.PRIO_PGRP, cmd.Process.Pid, niceness)
		err = cmd.Wait()
	}
	switch {
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case err != nil && stderr.Len() > 0:
		err = fmt.Errorf("%w: %s", err, lastLineOf(stderr.String()))
	case strings.Contains(stderr.String(), "cannot be preloaded"):
		err = errors.New(lastLineOf(stderr.String()))
	}
	return stdout.Bytes(), err
}

// EnvironmentWithoutPreloads returns an environment without what would load other libraries, or lead to a session: that of a process
// that asks drivers.
func EnvironmentWithoutPreloads(base []string) []string {
	var env []string
	for _, entry := range base {
		switch name, _, _ := strings.Cut(entry, "="); name {
		case "LD_PRELOAD", "OPENCL_LAYERS", wire.SessionEnv, wire.ProbeEnv:
		default:
			env = append(env, entry)
		}
	}
	return env
}

func lastLineOf(text string) string {
	text = strings.TrimSpace(text)
	return text[strings.LastIndexByte(text, '\n')+1:]
}
